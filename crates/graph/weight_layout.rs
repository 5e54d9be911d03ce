//! Weight layout of a layer: the input and output channel of each weight.
use crate::Node;

/// Layouts of weights, by operator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LayoutKind {
    /// `[outputs, inputs of a group, …]`.
    Conv,
    /// `[inputs, outputs of a group, …]`.
    ConvTranspose,
    /// `[inputs, outputs]`.
    Product,
    /// `[outputs, inputs]`.
    TransposedProduct,
}

/// Weight layout of a Conv, ConvTranspose, Gemm or MatMul. The weights of one pair of channels form
/// a kernel window, consecutive in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerWeightLayout {
    kind: LayoutKind,
    /// Second extent of the weight.
    second: usize,
    groups: usize,
    /// Number of input channels.
    pub inputs: usize,
    /// Number of output channels.
    pub outputs: usize,
    /// Weights per window.
    pub taps: usize,
}

impl LayerWeightLayout {
    /// Returns `None` if the operator has no such weights, or not of this shape.
    pub fn from_node(node: &Node, shape: &[usize]) -> Option<LayerWeightLayout> {
        let (&[first, second], kernel) = shape.split_first_chunk::<2>()?;
        let mut groups = 1;
        let kind = if node.is("Conv") || node.is("ConvTranspose") {
            groups = usize::try_from(node.int("group").unwrap_or(1)).ok()?;
            match (kernel, node.is("Conv")) {
                ([], _) => return None,
                (_, true) => LayoutKind::Conv,
                (_, false) => LayoutKind::ConvTranspose,
            }
        } else if node.is("Gemm") || node.is("MatMul") {
            match (kernel, node.int("transB").unwrap_or(0)) {
                ([], 0) => LayoutKind::Product,
                ([], _) => LayoutKind::TransposedProduct,
                _ => return None,
            }
        } else {
            return None;
        };
        let (inputs, outputs) = match kind {
            LayoutKind::Conv => (second.checked_mul(groups)?, first),
            LayoutKind::ConvTranspose => (first, second.checked_mul(groups)?),
            LayoutKind::Product => (first, second),
            LayoutKind::TransposedProduct => (second, first),
        };
        let fits = groups > 0 && inputs > 0 && outputs > 0;
        let whole = fits && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups);
        whole.then(|| LayerWeightLayout {
            kind,
            second,
            groups,
            inputs,
            outputs,
            taps: kernel.iter().product::<usize>().max(1),
        })
    }

    /// Input and output channel of a window. Windows are numbered in memory order.
    #[inline]
    pub fn of_window(&self, window: usize) -> (usize, usize) {
        let (first, second) = (self.index(window, 0), self.index(window, 1));
        match self.kind {
            LayoutKind::Conv => {
                let group = first / (self.outputs / self.groups);
                (group * self.second + second, first)
            }
            LayoutKind::ConvTranspose => {
                let group = first / (self.inputs / self.groups);
                (first, group * self.second + second)
            }
            LayoutKind::Product => (first, second),
            LayoutKind::TransposedProduct => (second, first),
        }
    }

    /// Number of windows from this one on that belong to one output and consecutive inputs.
    #[inline]
    pub fn along_inputs(&self, window: usize) -> usize {
        match self.kind {
            LayoutKind::Conv | LayoutKind::TransposedProduct => self.second - self.index(window, 1),
            LayoutKind::ConvTranspose | LayoutKind::Product => 1,
        }
    }

    /// Index of a window along one of the first two axes.
    #[inline]
    pub fn index(&self, window: usize, axis: usize) -> usize {
        match axis {
            0 => window / self.second,
            _ => window % self.second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attribute;

    fn layout(
        operator: &str,
        shape: &[usize],
        attribute: Option<(&str, i64)>,
    ) -> Option<LayerWeightLayout> {
        let node = Node::new(operator, "n", &["x", "w", "b"], &["y"]);
        let node = match attribute {
            Some((name, value)) => node.with(Attribute::int(name, value)),
            None => node,
        };
        LayerWeightLayout::from_node(&node, shape)
    }

    #[test]
    fn windows_have_the_channels_of_their_operator() {
        let grouped = layout("Conv", &[4, 3, 1], Some(("group", 2))).unwrap();
        assert_eq!((grouped.inputs, grouped.outputs), (6, 4));
        // The last window: the third channel of the second group, and the last output.
        assert_eq!(grouped.of_window(11), (5, 3));
        assert_eq!(grouped.along_inputs(10), 2);
        let transposed = layout("ConvTranspose", &[4, 3, 1], Some(("group", 2))).unwrap();
        assert_eq!((transposed.inputs, transposed.outputs), (4, 6));
        assert_eq!(transposed.of_window(11), (3, 5));
        assert_eq!(transposed.along_inputs(10), 1);
        for operator in ["Gemm", "MatMul"] {
            assert_eq!(
                layout(operator, &[2, 3], None).unwrap().of_window(5),
                (1, 2)
            );
        }
        let turned = layout("Gemm", &[3, 2], Some(("transB", 1))).unwrap();
        assert_eq!(turned.of_window(5), (1, 2));
        assert_eq!(layout("Conv", &[8, 4, 3, 5], None).unwrap().taps, 15);
    }

    #[test]
    fn weights_of_other_shapes_have_no_layout() {
        assert_eq!(layout("Conv", &[4, 3], None), None);
        assert_eq!(layout("Conv", &[4, 3, 1], Some(("group", 0))), None);
        assert_eq!(layout("Conv", &[4, 3, 1], Some(("group", 3))), None);
        assert_eq!(
            layout("Conv", &[4, usize::MAX, 1], Some(("group", 2))),
            None
        );
        assert_eq!(layout("MatMul", &[2, 3, 4], None), None);
        assert_eq!(layout("Relu", &[2, 3], None), None);
        assert_eq!(layout("Gemm", &[3], None), None);
        assert_eq!(layout("MatMul", &[0, 3], None), None);
    }
}
