//! The operation of a step: everything that the compiler asks of an operator, apart from matching.

use std::fmt;
use std::sync::Arc;

use crate::error::ProgramError;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::table_functions::{TableFunction, TableFunctions};
use crate::values::{IrOperand, StepValues};

/// Operation of a step, with all parameters that do not depend on memory layout.
///
/// Its file in `operators/` also holds the matcher that reads it from a node, and the kernels of
/// its instructions.
pub(crate) trait Operation: Send + Sync {
    /// Display name.
    fn name(&self) -> &'static str;

    /// The layout in which it prefers its inputs. `own` is the preferred layout of its output.
    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        MemoryLayout::Plain
    }

    /// True if it has an implementation on reals, for these inputs and an output of which at least
    /// one has 16 bits.
    fn is_on_reals(&self, _inputs: &[IrOperand]) -> bool {
        false
    }

    /// True if arithmetic in the region may read its float output.
    fn has_float_output(&self) -> bool {
        false
    }

    /// Display name of the type of an input, if it is not that of the operand.
    fn input_type(&self, _at: usize) -> Option<&'static str> {
        None
    }

    /// The operation as a table of a value that it, or an earlier table, reads.
    fn merged(&self, _values: &StepValues, _known: &TableFunctions) -> Option<MergedTable> {
        None
    }

    /// Adds its instructions to the program.
    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError>;
}

/// The name only: a derived implementation would print all weights, and add code to do so.
impl fmt::Debug for dyn Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A table that replaces an operation: the function, and the operation that computes it.
pub(crate) struct MergedTable {
    pub(crate) function: TableFunction,
    pub(crate) operation: Arc<dyn Operation>,
}
