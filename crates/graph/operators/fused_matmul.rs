//! Matrix products with transposed or scaled operands.

use super::decomposer::FusedOperatorDecomposer;
use crate::{Attribute, Node};
use octet_onnx::schema::DataType;

impl FusedOperatorDecomposer<'_> {
    /// FusedMatMul: α times the product of two stacks of matrices, each transposed if its attribute
    /// says so.
    pub(super) fn matmul(&mut self, node: &Node) -> Option<()> {
        let (title, output) = (node.title(), node.output.first()?);
        let is_set = |name| node.int(name).unwrap_or(0) != 0;
        if is_set("transBatchA") || is_set("transBatchB") {
            return None;
        }
        let sides = [
            (node.input_at(0)?, is_set("transA")),
            (node.input_at(1)?, is_set("transB")),
        ];
        // Ranks of the operands to transpose; a vector can't be transposed.
        let mut ranks = [None; 2];
        for (rank, (side, turned)) in ranks.iter_mut().zip(sides) {
            if turned {
                let known = self.shape(Some(side))?.len();
                *rank = Some(Some(known).filter(|&rank| rank > 1)?);
            }
        }
        let mut read = |at: usize| match ranks[at] {
            Some(rank) => self.transposed(sides[at].0, rank, title),
            None => sides[at].0.to_owned(),
        };
        let (one, other) = (read(0), read(1));
        let alpha = node.float("alpha").filter(|&alpha| alpha != 1.0);
        let steps = &mut self.steps;
        let product = match alpha {
            Some(_) => steps.names.fresh(&format!("{title}.product")),
            None => output.clone(),
        };
        steps.last("MatMul", &[&one, &other], title, &product, Vec::new());
        if let Some(alpha) = alpha {
            let alpha = steps.number(title, alpha);
            let name = steps.names.fresh(&format!("{title}.scaled"));
            steps.last("Mul", &[&product, &alpha], &name, output, Vec::new());
        }
        Some(())
    }

    /// The value with its last two axes swapped; a constant matrix becomes a transposed constant.
    fn transposed(&mut self, name: &str, rank: usize, title: &str) -> String {
        if let Some(turned) = self.transposed.get(name) {
            return turned.clone();
        }
        let constant = self.graph.initializers.get(name);
        let floats = constant.filter(|tensor| tensor.element() == Ok(DataType::Float));
        if let Some(Ok(Some(mut tensor))) = floats.map(|tensor| tensor.transposed()) {
            let turned = self.steps.names.fresh(&format!("{name}.turned"));
            tensor.name = Some(turned.clone());
            self.steps.constants.push(tensor);
            self.transposed.insert(name.to_owned(), turned.clone());
            return turned;
        }
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order.swap(rank - 2, rank - 1);
        let order = Attribute::ints("perm", &order);
        self.steps
            .step_with("Transpose", &[name], title, "turned", vec![order])
    }
}
