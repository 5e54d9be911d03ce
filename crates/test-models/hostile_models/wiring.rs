//! Damage that keeps a graph connected: other inputs, inserted or skipped operators, other input
//! shapes.

use octet_onnx::schema::*;

use crate::RandomChoice;

/// Changes an input of a node, inserts or skips an operator, or changes the model's input shape.
pub fn rewire(graph: &mut GraphProto, place: usize, random: &mut RandomChoice) {
    let slots = graph.node[place].input.len();
    if slots == 0 {
        return;
    }
    let slot = random.below(slots);
    match random.below(8) {
        // A value of the same kind: an earlier output, or a constant.
        0..=3 => {
            let values = same_kind(graph, place, slot);
            if !values.is_empty() {
                graph.node[place].input[slot] = random.one(&values).clone();
            }
        }
        4 | 5 => between(graph, place, slot, random),
        // Skips the node: its consumers read its input.
        6 => {
            let (from, to) = {
                let node = &graph.node[place];
                let Some(output) = node.output.first() else {
                    return;
                };
                (output.clone(), node.input[slot].clone())
            };
            for node in &mut graph.node[place + 1..] {
                for input in node.input.iter_mut().filter(|input| **input == from) {
                    input.clone_from(&to);
                }
            }
        }
        _ => sizes(graph, random),
    }
}

/// Names of values of the same kind, floats or integers, as the input in this slot.
fn same_kind(graph: &GraphProto, place: usize, slot: usize) -> Vec<String> {
    let whole = |tensor: &TensorProto| tensor.data_type == Some(DataType::Int64 as i32);
    let here = &graph.node[place].input[slot];
    let constant = graph
        .initializer
        .iter()
        .find(|t| t.name.as_ref() == Some(here));
    let wanted = constant.is_some_and(whole);
    let constants = graph.initializer.iter().filter(|t| whole(t) == wanted);
    let constants = constants.filter_map(|tensor| tensor.name.clone());
    let outputs = graph.node[..place]
        .iter()
        .flat_map(|node| node.output.clone());
    let fed = graph.input.iter().filter_map(|input| input.name.clone());
    // Outputs are listed twice, because they would be rare among many constants.
    let outputs: Vec<String> = outputs.chain(fed).collect();
    constants
        .chain(outputs.iter().cloned())
        .chain(outputs.clone())
        .collect()
}

/// Inserts an operator before an input.
fn between(graph: &mut GraphProto, place: usize, slot: usize, random: &mut RandomChoice) {
    let name = format!("between{}", graph.node.len());
    let read = graph.node[place].input[slot].clone();
    let node = |operator: &str| NodeProto::new(operator, &name, &[&read], &[&name]);
    let inserted = match random.below(8) {
        0 => node("Transpose"),
        1 => node("Flatten"),
        2 => node("Shape"),
        3 => node("NonZero"),
        4 => node("Cast").with(AttributeProto::int("to", [1, 6, 7, 9, 10][random.below(5)])),
        5 => node("ReduceMax").with(AttributeProto::int("keepdims", random.below(2) as i64)),
        6 => {
            let list = format!("{name}.list");
            let count = random.below(4);
            let sizes: Vec<i64> = (0..count).map(|_| random.below(5) as i64 - 1).collect();
            graph
                .initializer
                .push(TensorProto::from_i64(&list, &[count], &sizes));
            let operators = ["Reshape", "Expand", "Tile", "Unsqueeze", "Squeeze", "Pad"];
            let mut inserted = node(random.one::<&str>(&operators));
            inserted.input.push(list);
            inserted
        }
        _ => node(random.one::<&str>(&["Identity", "Relu", "Neg", "Softmax", "GlobalMaxPool"])),
    };
    graph.node[place].input[slot] = name;
    graph.node.insert(place, inserted);
}

/// Changes a dimension of the model's input: a number, a name or unknown.
fn sizes(graph: &mut GraphProto, random: &mut RandomChoice) {
    let input = graph.input.first_mut();
    let kind = input.and_then(|input| input.r#type.as_mut()?.value.as_mut());
    let Some(TypeValue::TensorType(tensor)) = kind else {
        return;
    };
    let Some(shape) = &mut tensor.shape else {
        return;
    };
    if shape.dim.is_empty() {
        return;
    }
    let at = random.below(shape.dim.len());
    match random.below(6) {
        0 => drop(shape.dim.remove(at)),
        1 => shape.dim.push(shape.dim[at].clone()),
        2 => shape.dim[at].value = None,
        3 => shape.dim[at].value = Some(DimensionValue::DimParam("n".into())),
        _ => shape.dim[at].value = Some(DimensionValue::DimValue(random.below(20) as i64)),
    }
}
