//! Frees the bytes of a model file that are no longer read.
//!
//! All weights of a file are slices of one buffer, which lives as long as any of them. Preparation
//! replaces many weights, for example when it folds batch normalization; the old ones would stay in
//! memory beside the new. The remaining weights are therefore copied out of the buffer from its
//! end, and the buffer shrinks as it goes. At no moment is more than one of them in memory twice.

use bytes::Bytes;
use prost::Message;

use super::error::Error;
use crate::broken_invariant::BrokenInvariant;
use crate::graph::Model;
use crate::onnx::schema::{DataType, ModelProto};

/// Divisor of the file size: freeing less than this part of it is not worth the work.
const WORTH: usize = 8;

/// Minimum number of bytes to give back at a time.
const PORTION: usize = 1 << 20;

/// Start and length of a slice of the file.
type FileSlice = (usize, usize);

/// Frees the bytes of `file` that `model`, which was made from it, doesn't need, if they are many.
/// `header`, which was read from the file, then loses its weights.
pub(super) fn free_unused(
    file: &mut Bytes,
    header: &mut ModelProto,
    model: &mut Model,
) -> Result<(), Error> {
    let begin = file.as_ptr() as usize;
    let size = file.len();
    let file_slice = |raw: &Bytes| {
        let at = (raw.as_ptr() as usize).checked_sub(begin)?;
        (at + raw.len() <= size).then_some((at, raw.len()))
    };
    let constants = || model.graph.initializers.iter();
    let slices = constants().filter_map(|tensor| file_slice(tensor.raw_data.as_ref()?));
    let used = merged(slices.collect());
    let needed: usize = used.iter().map(|(_, length)| length).sum();
    if size - needed < (size / WORTH).max(PORTION) {
        return Ok(());
    }
    let weights: Vec<(String, Bytes)> = constants()
        .filter_map(|tensor| Some((tensor.name.clone()?, tensor.raw_data.clone()?)))
        .collect();
    // Everything that can fail precedes the first change.
    let without = Model::from_proto(weightless(model.to_proto())?)?;
    *header = weightless(header.clone())?;
    *model = without;
    let weights: Vec<(String, Result<FileSlice, Bytes>)> = weights
        .into_iter()
        .map(|(name, raw)| (name, file_slice(&raw).ok_or(raw)))
        .collect();
    let pieces = take_slices(file, &used);
    let piece = |(at, length): FileSlice| {
        let (first, piece) = pieces.iter().rfind(|&&(first, _)| first <= at)?;
        Some(piece.slice(at - first..at - first + length))
    };
    for (name, raw) in weights {
        let Some(mut tensor) = model.graph.initializers.get(&name).cloned() else {
            continue;
        };
        tensor.raw_data = raw.map_or_else(Some, piece);
        model.graph.initializers.insert(tensor);
    }
    Ok(())
}

/// Frees the half-precision weights in `header`. Preparation has converted them to float32 and
/// doesn't read them again. Those from external data would otherwise stay in memory.
pub(super) fn free_half_weights(header: &mut ModelProto) {
    for tensor in header.graph.iter_mut().flat_map(|g| &mut g.initializer) {
        if tensor.element().is_ok_and(DataType::is_half) {
            tensor.raw_data = None;
        }
    }
}

/// Copies a message without its weights into memory of its own. Strings of attributes are slices of
/// the file, too.
fn weightless(mut proto: ModelProto) -> Result<ModelProto, Error> {
    for tensor in proto.graph.iter_mut().flat_map(|g| &mut g.initializer) {
        tensor.raw_data = None;
    }
    let bytes = Bytes::from(proto.encode_to_vec());
    ModelProto::decode(bytes).map_err(|_| BrokenInvariant::Unreadable.into())
}

/// Sorts slices and merges those that overlap.
fn merged(mut slices: Vec<FileSlice>) -> Vec<FileSlice> {
    slices.sort_unstable();
    let mut merged: Vec<FileSlice> = Vec::with_capacity(slices.len());
    for (at, length) in slices {
        match merged.last_mut() {
            Some((first, before)) if at < *first + *before => {
                *before = (*before).max(at + length - *first);
            }
            _ => merged.push((at, length)),
        }
    }
    merged
}

/// Takes these slices out of a file, each with its start, in order; the file is empty afterwards.
/// If the file has other owners, the slices share its memory.
fn take_slices(file: &mut Bytes, slices: &[FileSlice]) -> Vec<(usize, Bytes)> {
    if !file.is_unique() {
        let piece = |&(at, length): &FileSlice| (at, file.slice(at..at + length));
        return slices.iter().map(piece).collect();
    }
    let mut left = Vec::from(std::mem::take(file));
    let mut pieces = Vec::with_capacity(slices.len());
    for &(at, length) in slices.iter().rev() {
        pieces.push((at, Bytes::copy_from_slice(&left[at..at + length])));
        left.truncate(at);
        if left.capacity() - at >= PORTION {
            left.shrink_to_fit();
        }
    }
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{GraphProto, NodeProto, TensorProto, ValueInfoProto};
    use crate::onnx::{read, write};

    fn file() -> Bytes {
        let large = |name, value| TensorProto::from_f32(name, &[400_000], &vec![value; 400_000]);
        let named = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        };
        let graph = GraphProto {
            node: vec![NodeProto::new("Sum", "sum", &["x", "a", "b", "c"], &["y"])],
            input: vec![named("x")],
            output: vec![named("y")],
            initializer: vec![large("a", 1.0), large("b", 2.0), large("c", 3.0)],
            ..Default::default()
        };
        let proto = ModelProto::from_graph(graph, 17);
        write(&proto).unwrap().into()
    }

    /// Reads the file and replaces these weights.
    fn opened(file: &Bytes, anew: &[&str]) -> (ModelProto, Model) {
        let header = read(file.clone()).unwrap();
        let mut model = Model::from_proto(header.clone()).unwrap();
        for name in anew {
            let folded = TensorProto::from_f32(name, &[400_000], &vec![9.0; 400_000]);
            model.graph.initializers.insert(folded);
        }
        (header, model)
    }

    #[test]
    fn replaced_weights_are_freed_and_the_others_unchanged() {
        for anew in [&["a"][..], &["b"], &["c"], &["a", "c"], &["a", "b", "c"]] {
            let mut file = file();
            let (mut header, mut model) = opened(&file, anew);
            let before = write(&model.to_proto()).unwrap();
            free_unused(&mut file, &mut header, &mut model).unwrap();
            assert!(write(&model.to_proto()).unwrap() == before, "{anew:?}");
            assert!(file.is_empty());
            let graph = header.graph.unwrap();
            assert!(graph.initializer.iter().all(|t| t.raw_data.is_none()));
        }
    }

    #[test]
    fn a_file_that_is_needed_or_shared_stays() {
        let mut needed = file();
        let (mut header, mut model) = opened(&needed, &[]);
        let before = (header.clone(), model.clone());
        free_unused(&mut needed, &mut header, &mut model).unwrap();
        assert_eq!((header, model), before);
        let mut shared = file();
        let other = shared.clone();
        let (mut header, mut model) = opened(&shared, &["b"]);
        let before = model.clone();
        free_unused(&mut shared, &mut header, &mut model).unwrap();
        assert_eq!(model, before);
        assert_eq!(shared, other);
    }

    #[test]
    fn overlapping_slices_are_merged() {
        let slices = merged(vec![(10, 5), (0, 4), (12, 9), (21, 1), (4, 2)]);
        assert_eq!(slices, [(0, 4), (4, 2), (10, 11), (21, 1)]);
    }
}
