//! Conv, Gemm and MatMul.

use octet_graph::{Node, SlidingWindow};
use octet_quantize::WeightRows;
use octet_stats::Im2colView;
use octet_training::reverse::{
    MatrixProducts, PlaneConvolution, PlaneWindows, ReverseOperation, RowProducts, WindowAxis,
};

use super::Builder;
use super::builder::repeated_places;

/// The windows of slides over a plane of these extents.
pub(super) fn windows(slides: &[SlidingWindow], extents: &[usize]) -> Option<PlaneWindows> {
    let mut axes = [WindowAxis::NONE; 3];
    let first = 3usize.checked_sub(slides.len())?;
    if slides.len() != extents.len() {
        return None;
    }
    for ((axis, slide), &extent) in axes[first..].iter_mut().zip(slides).zip(extents) {
        let (before, places) = slide.places(extent as i64);
        let size = |size: i64| usize::try_from(size).ok();
        *axis = WindowAxis {
            extent,
            places: size(places)?,
            taps: size(slide.taps)?,
            stride: size(slide.stride)?,
            dilation: size(slide.dilation)?,
            before,
        };
    }
    Some(PlaneWindows(axes))
}

/// The sizes of a constant weight, without computing its reals.
fn weight_shape(builder: &Builder, node: &Node) -> Option<Vec<usize>> {
    let (graph, name) = (builder.graph(), node.input_at(1)?);
    let constant = match graph.producer(name) {
        Some(linear) if graph.nodes()[linear].op_type == "DequantizeLinear" => {
            graph.nodes()[linear].input_at(0)?
        }
        _ => name,
    };
    graph.initializers.get(constant)?.shape().ok()
}

pub(super) fn compile(builder: &mut Builder, index: usize, node: &Node) -> Option<usize> {
    let plain = |name: &str| node.float(name).is_none_or(|value| value == 1.0);
    if !(node.is("Conv") || node.is("Gemm") || node.is("MatMul")) {
        return None;
    }
    let Some(shape) = weight_shape(builder, node).filter(|shape| shape.len() > 1) else {
        return node.is("MatMul").then(|| matrices(builder, node))?;
    };
    let Some(rows) =
        WeightRows::from_node(node, &shape).filter(|_| plain("alpha") && plain("beta"))
    else {
        return node.is("MatMul").then(|| matrices(builder, node))?;
    };
    let x = builder.at(node, 0)?;
    let (inputs, outputs) = (rows.inputs(), rows.outputs());
    let mut operands = vec![x];
    match builder.learned_layer(index, inputs * outputs) {
        Some(leaves) => {
            operands.push(leaves.weights);
            operands.extend(leaves.bias);
        }
        None => {
            let numbers = builder.numbers(node, 1)?;
            let places =
                (0..outputs).flat_map(|output| (0..inputs).map(move |input| (output, input)));
            let by_output = places.map(|(output, input)| numbers[rows.place(output, input)]);
            let by_output: Vec<f32> = by_output.collect();
            operands.push(builder.constant(&[outputs, inputs], by_output)?);
            if node.input_at(2).is_some() {
                operands.push(builder.at(node, 2)?);
            }
        }
    }
    let shape = builder.shape(x).to_vec();
    match rows.view() {
        Im2colView::Rows => {
            let (&last, before) = shape.split_last()?;
            let count = before.iter().product();
            let of = RowProducts {
                count,
                inputs,
                outputs,
            };
            let shape = [before, &[outputs]].concat();
            (last == inputs).then(|| builder.push(ReverseOperation::Rows(of), &operands, &shape))
        }
        Im2colView::Windows { groups, slides } => {
            let (&[images, _], extents) = shape.split_first_chunk()?;
            let windows = windows(slides, extents)?;
            let places = windows.0[3 - slides.len()..].iter().map(|axis| axis.places);
            let shape: Vec<usize> = [images, outputs].into_iter().chain(places).collect();
            let of = PlaneConvolution {
                images,
                groups: *groups,
                channels: inputs / windows.taps().max(1),
                outputs: outputs / groups,
                windows,
            };
            Some(builder.push(ReverseOperation::Convolution(of), &operands, &shape))
        }
    }
}

/// The product of two activations.
fn matrices(builder: &mut Builder, node: &Node) -> Option<usize> {
    let operands = [builder.at(node, 0)?, builder.at(node, 1)?];
    let [a, b] = operands.map(|value| builder.shape(value).to_vec());
    let (before_a, &[rows, inner]) = a.split_last_chunk()?;
    let (before_b, &[same, columns]) = b.split_last_chunk()?;
    let rank = before_a.len().max(before_b.len());
    let size = |of: &[usize], axis: usize| match (axis + of.len()).checked_sub(rank) {
        Some(own) => of[own],
        None => 1,
    };
    let before: Vec<usize> = (0..rank)
        .map(|axis| match (size(before_a, axis), size(before_b, axis)) {
            (1, other) => other,
            (one, _) => one,
        })
        .collect();
    let places = [before_a, before_b].map(|own| repeated_places(own, &before));
    let [Some(first), Some(second)] = places else {
        return None;
    };
    let pairs = first.iter().zip(&second);
    let of = MatrixProducts {
        pairs: pairs.map(|(&a, &b)| [a as usize, b as usize]).collect(),
        rows,
        inner,
        columns,
    };
    let shape = [before.as_slice(), &[rows, columns]].concat();
    (inner == same).then(|| builder.push(ReverseOperation::Matrices(of), &operands, &shape))
}
