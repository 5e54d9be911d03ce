//! Lowering of a region: the layout that each value is preferred in, then the instructions of each
//! step.

use std::collections::HashMap;

use crate::error::{CompilerBug, ProgramError};
use crate::ir::Ir;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::processor::Processor;
use crate::program::{LoweredRegion, Program};
use crate::region::Region;

/// A step that cannot be compiled, with the reason.
pub(crate) struct LoweringError {
    pub(crate) step: usize,
    pub(crate) error: ProgramError,
}

/// Compiles a region.
pub(crate) fn lower_region(
    ir: &Ir,
    region: &Region,
    processor: Processor,
) -> Result<Program, LoweringError> {
    let preferences = preferences(ir, region);
    let mut compiler = Compiler::new(&ir.values, &region.inputs, processor);
    for (at, &index) in region.steps.iter().enumerate() {
        compiler.step = at;
        lower_step(ir, index, &preferences, &mut compiler)
            .map_err(|error| LoweringError { step: index, error })?;
    }
    let value = |name: &String| ir.values.get(name).cloned();
    let mut outputs = Vec::new();
    for name in &region.outputs {
        let buffer = compiler.output(name).map_err(|error| LoweringError {
            step: region.steps.last().copied().unwrap_or(0),
            error,
        })?;
        outputs.extend(value(name).map(|value| (buffer, value)));
    }
    Ok(Program::new(LoweredRegion {
        instructions: compiler.instructions,
        buffers: compiler.buffers,
        inputs: region.inputs.iter().filter_map(value).collect(),
        outputs,
        steps: region.steps.clone(),
    }))
}

fn lower_step<'a>(
    ir: &'a Ir,
    index: usize,
    preferences: &HashMap<&'a str, MemoryLayout>,
    compiler: &mut Compiler<'a>,
) -> Result<(), ProgramError> {
    let step = &ir.steps[index];
    let values = &step.values;
    let first = values.inputs.first().ok_or(CompilerBug::MissingOperand)?;
    let lowered = LoweredStep {
        values,
        first,
        shape: compiler.shape_of(first)?,
        output: compiler.shape(&values.output)?,
        preference: preference(preferences, &values.output),
    };
    step.operation.lower(&lowered, compiler)
}

/// Preferred layout of each value, propagated from the last step to the first.
fn preferences<'a>(ir: &'a Ir, region: &Region) -> HashMap<&'a str, MemoryLayout> {
    let mut preferences: HashMap<&str, MemoryLayout> = HashMap::new();
    for &index in region.steps.iter().rev() {
        let step = &ir.steps[index];
        let own = preference(&preferences, &step.values.output);
        let preferred = step.operation.preference(own);
        for name in step.values.read() {
            // Steps are visited in reverse, so the preference of the first reader wins.
            preferences.insert(name, preferred);
        }
    }
    preferences
}

fn preference(preferences: &HashMap<&str, MemoryLayout>, name: &str) -> MemoryLayout {
    let known = preferences.get(name).copied();
    known.unwrap_or(MemoryLayout::Plain)
}
