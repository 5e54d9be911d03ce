//! Scatter and its relatives: elements written by index.

use super::Operator;
use super::Property::MergesInputs;
use super::gather::indices_by_element;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Scatter")
        .changed(&[(13, |to, mut node| {
            node.op_type = "ScatterElements".to_owned();
            to.write(node);
            Ok(())
        })])
        .infers_same(),
    Operator::onnx("ScatterElements")
        .with(&[MergesInputs])
        .requires(3)
        .ranks(&[(0, 1)])
        .checks(indices_by_element)
        .infers_same(),
    Operator::onnx("ScatterND")
        .with(&[MergesInputs])
        .requires(3)
        .ranks(&[(0, 1), (1, 1)])
        .infers_same(),
    Operator::onnx("TensorScatter").with(&[MergesInputs]),
];
