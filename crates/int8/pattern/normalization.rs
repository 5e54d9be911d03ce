//! Normalizations of rows. For images, a row is a channel or a group of channels.

use super::ir::{Operation, RowNormalization};
use super::reader::{Reader, Reason, is_row};
use super::select::axis;
use super::weighted_products::{slot, without_leading_ones};
use octet_onnx::schema::NodeProto;

/// LayerNormalization over all axes from `axis` on.
pub(super) fn layer_normalization(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
) -> Result<Operation, Reason> {
    let axis = axis(node.int("axis").unwrap_or(-1), shape.len())?;
    if node.output.iter().skip(1).any(|name| !name.is_empty()) {
        return Err("its output for the mean or deviation is used".into());
    }
    let length: usize = shape[axis..].iter().product();
    // An equal count of values could also belong to another axis.
    let along = &shape[axis..];
    let fits = |sizes: &[usize]| {
        is_row(sizes, length) || without_leading_ones(sizes) == without_leading_ones(along)
    };
    normalized(node, reader, (length, 1), fits)
}

/// InstanceNormalization and GroupNormalization of channels-first images.
pub(super) fn image_normalization(
    node: &NodeProto,
    reader: &Reader,
    shape: &[usize],
) -> Result<Operation, Reason> {
    let [_, channels, plane @ ..] = shape else {
        return Err(format!("its input has the shape {shape:?}"));
    };
    let groups = match node.is("GroupNormalization") {
        true => node.int("num_groups").unwrap_or(0),
        false => *channels as i64,
    };
    let groups = usize::try_from(groups).ok();
    let groups = groups.filter(|&groups| groups > 0 && channels.is_multiple_of(groups));
    let groups = groups.ok_or_else(|| format!("its groups don't divide {channels} channels"))?;
    let pixels: usize = plane.iter().product();
    let length = channels / groups * pixels;
    if length == 0 {
        return Err("its input is empty".into());
    }
    // Before opset 21 there was one scale per group.
    let (count, each) = match node.is("GroupNormalization") && reader.opset < 21 {
        true => (groups, length),
        false => (*channels, pixels),
    };
    normalized(node, reader, (length, each), |sizes| sizes == [count])
}

/// A normalization of rows of `length` values, with one scale for each run of `each` values. `fits`
/// checks the shape of the scales.
fn normalized(
    node: &NodeProto,
    reader: &Reader,
    (length, each): (usize, usize),
    fits: impl Fn(&[usize]) -> bool,
) -> Result<Operation, Reason> {
    let numbers = |at: usize, what: &str| -> Result<Vec<f32>, Reason> {
        let name = slot(node, at)?;
        let (sizes, values) = reader
            .reals(name)
            .ok_or_else(|| format!("its {what} is not constant"))?;
        match fits(&sizes) {
            true => Ok(values),
            false => Err(format!(
                "its {what} has the shape {sizes:?}, which does not fit"
            )),
        }
    };
    Ok(Operation::Normalize(RowNormalization {
        length,
        each,
        epsilon: node.float("epsilon").unwrap_or(1e-5),
        scale: numbers(1, "scale")?,
        shift: match node.input_at(2) {
            Some(_) => Some(numbers(2, "shift")?),
            None => None,
        },
    }))
}
