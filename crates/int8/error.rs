//! Errors of programs: those of kernels, and broken invariants of the compiler.

use octet_kernels::int8::Error;

/// Error of the lowering or the run of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProgramError {
    #[error(transparent)]
    Kernel(#[from] Error),
    #[error("a fault of the int8 compiler: {0}")]
    Bug(#[from] CompilerBug),
    #[error("the inputs of an integer region: expected {expected}, actual {actual}")]
    Inputs { expected: usize, actual: usize },
    #[error("the outputs of an integer region: expected {expected}, actual {actual}")]
    Outputs { expected: usize, actual: usize },
}

/// A broken invariant of the compiler. No model should cause one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum CompilerBug {
    #[error("a step has fewer operands than its operation needs")]
    MissingOperand,
    #[error("a step reads or writes a value that has no shape")]
    MissingShape,
    #[error("a step reads a value that no earlier step has written")]
    MissingValue,
    #[error("an operand or an output has no quantization")]
    MissingQuantization,
    #[error("accumulators have no channels-last layout")]
    AccumulatorLayout,
    #[error("an operand of eight bits is read as one of 16 bits")]
    NotInt16,
    #[error("an operand has more axes than the output")]
    OperandRank,
    #[error("an operation has no implementation on reals")]
    NoReals,
    #[error("an output of a region is in no buffer")]
    MissingBuffer,
    #[error("an instruction has no input {0}, or one of another type")]
    InstructionInput(usize),
    #[error("an instruction has an output of another type")]
    InstructionOutput,
    #[error("a scalar is empty")]
    EmptyScalar,
}
