//! Softmax, normalizations, and means over axes.

use octet_graph::Node;
use octet_training::reverse::{
    GroupedSums, Normalization, Pairwise, ReverseOperation, SoftmaxRows,
};

use super::Builder;
use super::builder::repeated_places;
use super::elements::pair;

/// The place of an axis.
fn axis_of(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

pub(super) fn compile(builder: &mut Builder, node: &Node) -> Option<usize> {
    let centred = node.is("LayerNormalization");
    if node.is("Softmax") {
        return softmax(builder, node);
    }
    if centred || node.is("RMSNormalization") || node.is("SimplifiedLayerNormalization") {
        let value = builder.at(node, 0)?;
        let shape = builder.shape(value).to_vec();
        let axis = axis_of(node.int("axis").unwrap_or(-1), shape.len())?;
        let count = shape[axis..].iter().product();
        return normalized(builder, node, value, (count, centred), None);
    }
    if node.is("InstanceNormalization") {
        let value = builder.at(node, 0)?;
        let (&[_, channels], extents) = builder.shape(value).split_first_chunk()?;
        let (count, axes) = (extents.iter().product(), extents.len());
        let by_channel = [&[channels], vec![1; axes].as_slice()].concat();
        return normalized(builder, node, value, (count, true), Some(&by_channel));
    }
    let value = ["ReduceMean", "ReduceSum", "GlobalAveragePool"]
        .iter()
        .any(|name| node.is(name))
        .then(|| builder.at(node, 0))??;
    let shape = builder.shape(value).to_vec();
    let pool = node.is("GlobalAveragePool");
    let axes: Vec<i64> = match (pool, node.ints("axes"), node.input_at(1)) {
        (true, ..) => (2..shape.len() as i64).collect(),
        (_, Some(axes), _) => axes.to_vec(),
        (_, None, Some(name)) => builder.integers(name)?,
        (_, None, None) if node.int("noop_with_empty_axes").unwrap_or(0) != 0 => return None,
        (_, None, None) => (0..shape.len() as i64).collect(),
    };
    let axes = axes.iter().map(|&axis| axis_of(axis, shape.len()));
    let axes = axes.collect::<Option<Vec<usize>>>()?;
    let mut kept = shape.clone();
    axes.iter().for_each(|&axis| kept[axis] = 1);
    let sums: usize = kept.iter().product();
    let count = shape.iter().product::<usize>() / sums.max(1);
    let of = GroupedSums {
        places: repeated_places(&kept, &shape)?,
        factor: if node.is("ReduceSum") {
            1.0
        } else {
            1.0 / count as f32
        },
    };
    if !pool && node.int("keepdims") == Some(0) {
        let rest = (0..shape.len()).filter(|axis| !axes.contains(axis));
        kept = rest.map(|axis| shape[axis]).collect();
    }
    Some(builder.push(ReverseOperation::Sums(of), &[value], &kept))
}

/// A normalization, its scale and its shift. `shape` is that of scale and shift.
fn normalized(
    builder: &mut Builder,
    node: &Node,
    value: usize,
    (count, centred): (usize, bool),
    shape: Option<&[usize]>,
) -> Option<usize> {
    let of = Normalization {
        count,
        epsilon: node.float("epsilon").unwrap_or(1e-5),
        centred,
    };
    let mut value = builder.push_alike(ReverseOperation::Normalization(of), &[value]);
    for (slot, of) in [(1, Pairwise::Multiply), (2, Pairwise::Add)] {
        if node.input_at(slot).is_some() {
            let mut more = builder.at(node, slot)?;
            if let Some(shape) = shape {
                more = builder.reshaped(more, shape);
            }
            value = pair(builder, of, value, more)?;
        }
    }
    Some(value)
}

fn softmax(builder: &mut Builder, node: &Node) -> Option<usize> {
    let value = builder.at(node, 0)?;
    let shape = builder.shape(value);
    // Before opset 13, all axes from the named one on are taken together.
    let flat = builder.model.opset() < 13;
    let usual = if flat { 1 } else { -1 };
    let axis = axis_of(node.int("axis").unwrap_or(usual), shape.len())?;
    let behind: usize = shape[axis + 1..].iter().product();
    let of = match flat {
        true => SoftmaxRows {
            count: shape[axis] * behind,
            inner: 1,
        },
        false => SoftmaxRows {
            count: shape[axis],
            inner: behind,
        },
    };
    Some(builder.push_alike(ReverseOperation::Softmax(of), &[value]))
}
