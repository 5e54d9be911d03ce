//! Layout preferences: the layout in which the readers of a value prefer it.

use std::collections::HashMap;

use super::layout::MemoryLayout;
use crate::pattern::{Ir, Multiplier, Operand, Operation};
use crate::region::Region;

/// Preferred layout of each value, propagated from the last step to the first.
pub(super) fn preferences<'a>(ir: &'a Ir, region: &Region) -> HashMap<&'a str, MemoryLayout> {
    let mut preferences: HashMap<&str, MemoryLayout> = HashMap::new();
    for &index in region.steps.iter().rev() {
        let step = &ir.steps[index];
        let own = preferences
            .get(step.output.as_str())
            .copied()
            .unwrap_or(MemoryLayout::Plain);
        let preference = match &step.operation {
            Operation::Convolution { .. }
            | Operation::MaxPool(_)
            | Operation::AveragePool { .. }
            | Operation::Resize { .. }
            | Operation::DepthSpace { .. } => MemoryLayout::ChannelsLast,
            Operation::IntegerProduct(sums) if matches!(sums.by, Multiplier::Image(..)) => {
                MemoryLayout::ChannelsLast
            }
            Operation::Mean { axes, .. } | Operation::MinMax { axes, .. } if axes.start == 2 => {
                MemoryLayout::ChannelsLast
            }
            Operation::Softmax { axes } if *axes == (1..2) => MemoryLayout::ChannelsLast,
            Operation::Table(_)
            | Operation::ChannelTables(_)
            | Operation::Binary(_)
            | Operation::Reals(_)
            | Operation::Where
            | Operation::RealTable(_)
            | Operation::WideTable(_)
            | Operation::WideToBytes(_)
            | Operation::RoundToInt16
            | Operation::Int16ToFloats
            | Operation::Concat { .. }
            | Operation::Select { .. } => own,
            _ => MemoryLayout::Plain,
        };
        for name in step.inputs.iter().filter_map(Operand::value) {
            // Steps are visited in reverse, so the preference of the first reader wins.
            preferences.insert(name, preference);
        }
    }
    preferences
}
