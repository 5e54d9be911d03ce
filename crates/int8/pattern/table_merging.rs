//! Table merging: a composition of functions of one integer becomes one table.

use std::sync::Arc;

use crate::ir::IrStep;
use crate::operation::MergedTable;
use crate::table_functions::TableFunctions;

/// Merges arithmetic of a value with tables of the same value, such as x · sigmoid(x), even with
/// quantization in between.
pub(super) fn merge(steps: &mut [IrStep]) {
    let mut known = TableFunctions::new();
    for step in steps {
        let merged = step.operation.merged(&step.values, &known);
        let Some(MergedTable {
            function,
            operation,
        }) = merged
        else {
            continue;
        };
        step.values.inputs = vec![function.source.clone()];
        step.values.bounds = [0, 255];
        step.operation = operation;
        known.insert(step.values.output.clone(), Arc::new(function));
    }
}
