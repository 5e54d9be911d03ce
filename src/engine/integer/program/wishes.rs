//! Layout preferences: the layout in which the readers of a value prefer it.

use std::collections::HashMap;

use super::layout::Layout;
use crate::engine::integer::pattern::{Multiplier, Network, Operand, Operation};
use crate::engine::integer::region::Region;

/// Preferred layout of each value, propagated from the last step to the first.
pub(super) fn wishes<'a>(network: &'a Network, region: &Region) -> HashMap<&'a str, Layout> {
    let mut wishes: HashMap<&str, Layout> = HashMap::new();
    for &index in region.steps.iter().rev() {
        let step = &network.steps[index];
        let own = wishes
            .get(step.output.as_str())
            .copied()
            .unwrap_or(Layout::Plain);
        let wish = match &step.operation {
            Operation::Convolution { .. }
            | Operation::MaxPool(_)
            | Operation::AveragePool { .. }
            | Operation::Resize { .. }
            | Operation::Blocks { .. } => Layout::ChannelsLast,
            Operation::Sums(sums) if matches!(sums.by, Multiplier::Image(..)) => {
                Layout::ChannelsLast
            }
            Operation::Mean { axes, .. } | Operation::Extreme { axes, .. } if axes.start == 2 => {
                Layout::ChannelsLast
            }
            Operation::Softmax { axes } if *axes == (1..2) => Layout::ChannelsLast,
            Operation::Table(_)
            | Operation::ChannelTables(_)
            | Operation::Binary(_)
            | Operation::Reals(_)
            | Operation::Choice
            | Operation::RealTable(_)
            | Operation::WideTable(_)
            | Operation::WideToBytes(_)
            | Operation::Snap
            | Operation::Unsnap
            | Operation::Concat { .. }
            | Operation::Select { .. } => own,
            _ => Layout::Plain,
        };
        for name in step.inputs.iter().filter_map(Operand::value) {
            // Steps are visited in reverse, so the preference of the first reader wins.
            wishes.insert(name, wish);
        }
    }
    wishes
}
