//! Products of matrices that are turned over or scaled on the way.

use super::Writer;
use crate::onnx::schema::{AttributeProto, DataType, NodeProto};

impl Writer<'_> {
    /// FusedMatMul: α times the product of two stacks of matrices, each turned over where the node says so.
    pub(super) fn product(&mut self, node: &NodeProto) -> Option<()> {
        let (title, output) = (node.title(), node.output.first()?);
        let is_set = |name| node.int(name).unwrap_or(0) != 0;
        if is_set("transBatchA") || is_set("transBatchB") {
            return None;
        }
        let sides = [(0, "transA"), (1, "transB")];
        let sides = sides.map(|(slot, name)| (node.input_at(slot), is_set(name)));
        let ranks = sides.map(|(side, _)| self.shape(side).map(<[_]>::len));
        // Of a vector there is nothing to turn over.
        let known = |(&(_, turned), rank): (&(_, bool), &Option<usize>)| {
            !turned || rank.is_some_and(|rank| rank > 1)
        };
        if !sides.iter().zip(&ranks).all(known) {
            return None;
        }
        let mut read = Vec::new();
        for ((side, turned), rank) in sides.into_iter().zip(ranks) {
            read.push(match rank {
                Some(rank) if turned => self.turned(side?, rank, title),
                _ => side?.to_owned(),
            });
        }
        let inputs = [read.first()?.as_str(), read.get(1)?.as_str()];
        let alpha = node.float("alpha").unwrap_or(1.0);
        if alpha == 1.0 {
            self.last("MatMul", &inputs, title, output, Vec::new());
            return Some(());
        }
        let product = self.steps.names.fresh(&format!("{title}.product"));
        self.last("MatMul", &inputs, title, &product, Vec::new());
        let alpha = self.steps.number(title, alpha);
        let name = self.steps.names.fresh(&format!("{title}.scaled"));
        self.last("Mul", &[&product, &alpha], &name, output, Vec::new());
        Some(())
    }

    /// The value with its last two axes changed over; of a constant matrix another constant.
    fn turned(&mut self, name: &str, rank: usize, title: &str) -> String {
        if let Some(turned) = self.turned.get(name) {
            return turned.clone();
        }
        let constant = self.graph.initializers.get(name);
        let floats = constant.filter(|tensor| tensor.element() == Ok(DataType::Float));
        if let Some(Ok(Some(mut tensor))) = floats.map(|tensor| tensor.transposed()) {
            let turned = self.steps.names.fresh(&format!("{name}.turned"));
            tensor.name = Some(turned.clone());
            self.steps.constants.push(tensor);
            self.turned.insert(name.to_owned(), turned.clone());
            return turned;
        }
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order.swap(rank - 2, rank - 1);
        let order = AttributeProto::ints("perm", &order);
        self.steps
            .step_with("Transpose", &[name], title, "turned", [order])
    }
}
