//! ONNX Runtime's `Attention`: several heads over one sequence, as in BERT.

use super::decomposer::FusedOperatorDecomposer;
use crate::{Attribute, Dim, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// Default addend of the scores of masked tokens.
const MASKED_SCORE: f32 = -10000.0;

/// Input slots of the mask, the past and the addend of the scores.
const MASK: usize = 3;
const PAST: usize = 4;
const ADDED: usize = 5;

/// Meaning of a mask input.
enum Mask {
    /// One number for each sequence: its first tokens are valid.
    Counts,
    /// One flag for each token or pair of tokens, with the axes to insert.
    Shown(&'static [i64]),
}

impl FusedOperatorDecomposer<'_> {
    pub(super) fn attention(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (x, weight, output) = (slot(0)?, slot(1)?, node.output.first()?);
        let title = node.title();
        let is_set = |name| node.int(name).unwrap_or(0) != 0;
        let has_past =
            slot(PAST).is_some() || node.output.get(1).is_some_and(|name| !name.is_empty());
        if has_past || is_set("unidirectional") || is_set("do_rotary") || slot(6).is_some() {
            return None;
        }
        let heads = node.int("num_heads").filter(|&heads| heads > 0)?;
        let [query, key, value] = self.widths(node, weight)?;
        if [query, key, value].iter().any(|width| width % heads != 0) || query != key {
            return None;
        }
        let mask = match slot(MASK) {
            Some(mask) => Some((mask, self.kind(mask, x)?)),
            None => None,
        };

        let product = self.steps.names.fresh(&format!("{title}.product"));
        self.steps
            .last("MatMul", &[x, weight], title, &product, Vec::new());
        let all = match slot(2) {
            Some(bias) => self.steps.step("Add", &[&product, bias], title, "biased"),
            None => product,
        };
        let steps = &mut self.steps;
        let widths = steps.integers(title, &[query, key, value]);
        let parts =
            ["query", "key", "value"].map(|part| steps.names.fresh(&format!("{title}.{part}")));
        let [q, k, v] = parts.each_ref().map(String::as_str);
        let name = steps.names.fresh(&format!("{title}.split"));
        let split = Node::new("Split", &name, &[&all, &widths], &[q, k, v]);
        steps.nodes.push(split.with(Attribute::int("axis", 2)));
        let by_head = steps.integers(title, &[0, 0, heads, -1]);
        let mut in_heads = |part: &str, word: &str, order: &[i64]| {
            let apart = steps.step(
                "Reshape",
                &[part, &by_head],
                title,
                &format!("{word}_heads"),
            );
            let order = Attribute::ints("perm", order);
            steps.step_with(
                "Transpose",
                &[&apart],
                title,
                &format!("{word}_turned"),
                vec![order],
            )
        };
        let q = in_heads(q, "query", &[0, 2, 1, 3]);
        let k = in_heads(k, "key", &[0, 2, 3, 1]);
        let v = in_heads(v, "value", &[0, 2, 1, 3]);

        let scale = node.float("scale").filter(|&scale| scale != 0.0);
        let scale = scale.unwrap_or_else(|| 1.0 / ((query / heads) as f32).sqrt());
        let scale = steps.number(title, scale);
        let scores = steps.step("MatMul", &[&q, &k], title, "scores");
        let mut scores = steps.step("Mul", &[&scores, &scale], title, "scaled");
        if let Some((mask, kind)) = mask {
            let hidden = node.float("mask_filter_value").unwrap_or(MASKED_SCORE);
            let hidden = self.hidden(mask, kind, x, hidden, title);
            scores = self.steps.step("Add", &[&scores, &hidden], title, "masked");
        }
        if let Some(added) = slot(ADDED) {
            scores = self.steps.step("Add", &[&scores, added], title, "moved");
        }
        let steps = &mut self.steps;
        let along = Attribute::int("axis", -1);
        let shares = steps.step_with("Softmax", &[&scores], title, "shares", vec![along]);
        let mixed = steps.step("MatMul", &[&shares, &v], title, "mixed");
        let order = Attribute::ints("perm", &[0, 2, 1, 3]);
        let back = steps.step_with("Transpose", &[&mixed], title, "back", vec![order]);
        let whole = steps.integers(title, &[0, 0, value]);
        let name = steps.names.fresh(&format!("{title}.whole"));
        self.steps
            .last("Reshape", &[&back, &whole], &name, output, Vec::new());
        Some(())
    }

    /// Widths of queries, keys and values over all heads.
    fn widths(&self, node: &Node, weight: &str) -> Option<[i64; 3]> {
        if let Some(&[query, key, value]) = node.ints("qkv_hidden_sizes") {
            return Some([query, key, value]);
        }
        let &[_, all] = self.known(Some(weight))?.sizes()?.as_slice() else {
            return None;
        };
        let each = i64::try_from(all).ok().filter(|all| all % 3 == 0)? / 3;
        Some([each; 3])
    }

    fn kind(&self, mask: &str, x: &str) -> Option<Mask> {
        if self.token_counts.contains(mask) {
            return Some(Mask::Counts);
        }
        let known = self.known(Some(mask))?;
        if known.element != DataType::Int32 {
            return None;
        }
        match known.shape.as_deref()? {
            // A longer vector also holds start positions.
            [lines] => {
                let all = self.shape(Some(x))?.first()?;
                let alike = lines == all && !matches!(lines, Dim::Unknown);
                alike.then_some(Mask::Counts)
            }
            [_, _] => Some(Mask::Shown(&[1, 2])),
            [_, _, _] => Some(Mask::Shown(&[1])),
            _ => None,
        }
    }

    /// The addend of the scores: 0 for valid tokens, `hidden` for masked ones.
    fn hidden(&mut self, mask: &str, kind: Mask, x: &str, hidden: f32, title: &str) -> String {
        let steps = &mut self.steps;
        let (shown, axes): (_, &[i64]) = match kind {
            Mask::Counts => {
                let [first, second] = [1, 2].map(|at| steps.integers(title, &[at]));
                let shape = steps.step("Shape", &[x], title, "shape");
                let length = steps.step("Slice", &[&shape, &first, &second], title, "length");
                let none = steps.integers(title, &[]);
                let length = steps.step("Reshape", &[&length, &none], title, "words");
                let [from, step] = [0, 1].map(|number| {
                    steps.constant(title, |name| TensorProto::from_i64(name, &[], &[number]))
                });
                let places = steps.step("Range", &[&from, &length, &step], title, "places");
                let long = Attribute::int("to", DataType::Int64 as i64);
                let counts = steps.step_with("Cast", &[mask], title, "counts", vec![long]);
                let counts = steps.step("Unsqueeze", &[&counts, &first], title, "column");
                let shown = steps.step("Less", &[&places, &counts], title, "shown");
                (shown, &[1, 2])
            }
            Mask::Shown(axes) => {
                let none = steps.constant(title, |name| TensorProto::from_i32(name, &[], &[0]));
                (steps.step("Greater", &[mask, &none], title, "shown"), axes)
            }
        };
        let float = Attribute::int("to", DataType::Float as i64);
        let shown = steps.step_with("Cast", &[&shown], title, "kept", vec![float]);
        let [one, by] = [1.0, hidden].map(|number| steps.number(title, number));
        let away = steps.step("Sub", &[&one, &shown], title, "away");
        let away = steps.step("Mul", &[&away, &by], title, "hidden");
        let axes = steps.integers(title, axes);
        steps.step("Unsqueeze", &[&away, &axes], title, "spread")
    }
}
