//! Sequences and optional values. `prepare` replaces most of them.

use super::Operator;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("ConcatFromSequence"),
    Operator::onnx("Optional").requires(0),
    Operator::onnx("OptionalGetElement"),
    Operator::onnx("OptionalHasElement"),
    Operator::onnx("SequenceAt"),
    Operator::onnx("SequenceConstruct"),
    Operator::onnx("SequenceEmpty").requires(0),
    Operator::onnx("SequenceErase"),
    Operator::onnx("SequenceInsert"),
    Operator::onnx("SequenceLength"),
    Operator::onnx("SequenceMap"),
    Operator::onnx("SplitToSequence").moved(&[("split", 13)]),
];
