//! Slices tensors along an axis and stacks them.

use bytes::Bytes;

use octet_graph::prepare::count;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, TensorProto};

/// An element type.
trait SliceElement: Copy {
    fn from_values(values: &Values) -> Option<&[Self]>;
    fn wrap(values: Vec<Self>) -> Values;
}

macro_rules! elements {
    ($($form:ident: $number:ty),*) => {
        $(impl SliceElement for $number {
            fn from_values(values: &Values) -> Option<&[$number]> {
                match values {
                    Values::$form(values) => Some(values),
                    _ => None,
                }
            }

            fn wrap(values: Vec<$number>) -> Values {
                Values::$form(values)
            }
        })*

        /// The slice at one index of an axis.
        pub(super) fn slice(tensor: &Tensor, axis: usize, place: usize) -> Option<Tensor> {
            match tensor.values() {
                $(Values::$form(_) => slice_of::<$number>(tensor, axis, place),)*
            }
        }

        /// Stacks tensors of one shape along a new axis; `None` if types or shapes differ, or if
        /// there are none.
        pub(super) fn stacked(tensors: &[Tensor], axis: usize) -> Option<Tensor> {
            match tensors.first()?.values() {
                $(Values::$form(_) => stacked_of::<$number>(tensors, axis),)*
            }
        }
    };
}

elements!(
    F32: f32, F64: f64, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, Bool: bool
);

fn slice_of<T: SliceElement>(tensor: &Tensor, axis: usize, place: usize) -> Option<Tensor> {
    let values = T::from_values(tensor.values())?;
    let mut shape = tensor.shape().to_vec();
    let size = shape.remove(axis);
    let inner = count(&shape[axis..]);
    let rows = (0..count(&shape[..axis])).map(|outer| (outer * size + place) * inner);
    let rows = rows.map(|at| values.get(at..at + inner));
    let taken = rows.collect::<Option<Vec<_>>>()?.concat();
    Tensor::new(shape, T::wrap(taken))
}

fn stacked_of<T: SliceElement>(tensors: &[Tensor], axis: usize) -> Option<Tensor> {
    let mut shape = tensors.first()?.shape().to_vec();
    let lists = tensors.iter().map(|tensor| {
        let values = T::from_values(tensor.values())?;
        (tensor.shape() == shape).then_some(values)
    });
    let lists: Vec<&[T]> = lists.collect::<Option<_>>()?;
    let inner = count(shape.get(axis..)?);
    let mut made = Vec::with_capacity(count(&shape).saturating_mul(lists.len()));
    for outer in 0..count(&shape[..axis]) {
        for list in &lists {
            made.extend_from_slice(list.get(outer * inner..(outer + 1) * inner)?);
        }
    }
    shape.insert(axis, lists.len());
    Tensor::new(shape, T::wrap(made))
}

/// A tensor without elements; `None` if its shape has elements, or if the engine can't represent
/// the type.
pub(super) fn empty(element: DataType, shape: &[usize]) -> Option<Tensor> {
    let empty = TensorProto::from_raw("", element, shape, Bytes::new());
    empty.to_tensor().ok()
}
