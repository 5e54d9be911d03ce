//! ONNX's `Attention` (opset 23): several heads; query heads may share key and value heads.

use super::decomposer::FusedOperatorDecomposer;
use crate::{Attribute, Dim, Node};
use octet_onnx::schema::{DataType, TensorProto};

const MASK: usize = 3;
const PAST: [usize; 2] = [4, 5];
/// Limit on the number of heads; nodes with more stay as they are.
const MAX_HEADS: i64 = 4096;
/// Input slot of the number of valid tokens in each sequence.
const TOKEN_COUNTS: usize = 6;

impl FusedOperatorDecomposer<'_> {
    /// `None` if a window hides tokens, or if sizes are unknown.
    pub(super) fn onnx_attention(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let windowed = |name| node.int(name).is_some_and(|size| size >= 0);
        let counts = slot(TOKEN_COUNTS);
        // Token counts belong to a cache outside of the node, a past to one inside.
        let two_caches = counts.is_some() && PAST.iter().any(|&past| slot(past).is_some());
        if two_caches || windowed("left_window_size") || windowed("right_window_size") {
            return None;
        }
        let title = node.title();
        // Number of heads and width of one, of queries, keys and values.
        let mut sizes = [[0; 2]; 3];
        for (at, sizes) in sizes.iter_mut().enumerate() {
            let known = |dim: &Dim| match dim {
                Dim::Known(size) => i64::try_from(*size).ok(),
                _ => None,
            };
            *sizes = match self.shape(slot(at))? {
                [_, _, all] => {
                    let key = ["q_num_heads", "kv_num_heads"][at.min(1)];
                    let heads = node.int(key).filter(|&heads| heads > 0)?;
                    [heads, known(all).filter(|all| all % heads == 0)? / heads]
                }
                [_, heads, _, wide] => [known(heads)?, known(wide)?],
                _ => return None,
            };
        }
        let [[heads, wide], [shared, _], [others, _]] = sizes;
        let mode = usize::try_from(node.int("qk_matmul_output_mode").unwrap_or(0)).ok()?;
        let apart = self.shape(slot(0))?.len() == 3;
        if shared < 1
            || heads % shared != 0
            || shared != others
            || wide < 1
            || mode > 3
            || heads > MAX_HEADS
        {
            return None;
        }
        let mask = match slot(MASK) {
            Some(mask) => Some((mask, self.known(Some(mask))?.element)),
            None => None,
        };
        let asked = |at: usize| node.output.get(at).filter(|name| !name.is_empty());

        let steps = &mut self.steps;
        let order = |order: &[i64]| vec![Attribute::ints("perm", order)];
        let mut parts = Vec::with_capacity(3);
        for (at, word) in ["query", "key", "value"].into_iter().enumerate() {
            let mut part = slot(at)?.to_owned();
            if apart {
                let by_head = steps.integers(title, &[0, 0, sizes[at][0], -1]);
                part = steps.step(
                    "Reshape",
                    &[&part, &by_head],
                    title,
                    &format!("{word}_heads"),
                );
                let turned = format!("{word}_turned");
                part = steps.step_with("Transpose", &[&part], title, &turned, order(&[0, 2, 1, 3]));
            }
            if at > 0 {
                if let Some(past) = slot(PAST[at - 1]) {
                    let along = vec![Attribute::int("axis", 2)];
                    let all = format!("{word}_all");
                    part = steps.step_with("Concat", &[past, &part], title, &all, along);
                }
                if let Some(present) = asked(at) {
                    steps.last("Identity", &[&part], present, present, Vec::new());
                }
                if heads != shared {
                    let each: Vec<i64> = (0..heads).map(|head| head / (heads / shared)).collect();
                    let each = steps.integers(title, &each);
                    let along = vec![Attribute::int("axis", 1)];
                    let repeated = format!("{word}_repeated");
                    part = steps.step_with("Gather", &[&part, &each], title, &repeated, along);
                }
            }
            parts.push(part);
        }
        let [query, key, value] = &parts[..] else {
            return None;
        };
        let key = steps.step_with(
            "Transpose",
            &[key],
            title,
            "key_across",
            order(&[0, 1, 3, 2]),
        );
        let scale = node.float("scale");
        let scale = scale.unwrap_or_else(|| 1.0 / (wide as f32).sqrt());
        let scale = steps.number(title, scale);
        let scores = steps.step("MatMul", &[query, &key], title, "scores");
        let mut scores = steps.step("Mul", &[&scores, &scale], title, "scaled");
        // Variants of the scores output, indexed by mode: raw, capped, masked, after Softmax.
        let mut shown = vec![scores.clone()];
        if let Some(cap) = node.float("softcap").filter(|&cap| cap > 0.0) {
            let cap = steps.number(title, cap);
            let part = steps.step("Div", &[&scores, &cap], title, "part");
            let bent = steps.step("Tanh", &[&part], title, "bent");
            scores = steps.step("Mul", &[&bent, &cap], title, "capped");
        }
        shown.push(scores.clone());
        let hidden = f32::NEG_INFINITY;
        if let Some((mut mask, element)) = mask.map(|(mask, element)| (mask.to_owned(), element)) {
            if element == DataType::Bool {
                let [none, hidden] = [0.0, hidden].map(|number| steps.number(title, number));
                mask = steps.step("Where", &[&mask, &none, &hidden], title, "mask");
            }
            scores = steps.step("Add", &[&scores, &mask], title, "masked");
        }
        let causal = node.int("is_causal") == Some(1);
        if let Some(counts) = counts {
            scores = self.hide_empty_places(title, &scores, counts, causal);
        } else if causal {
            // Hide everything above the diagonal, which a past moves.
            let steps = &mut self.steps;
            let from = |at: i64| vec![Attribute::int("start", at)];
            let shape = steps.step_with("Shape", &[&scores], title, "shape", from(-2));
            let hidden = TensorProto::from_f32("", &[1], &[hidden]);
            let hidden = vec![Attribute::tensor("value", hidden)];
            let all = steps.step_with("ConstantOfShape", &[&shape], title, "hidden", hidden);
            let one = |name: &str| TensorProto::from_i64(name, &[], &[1]);
            let mut above = steps.constant(title, one);
            if let Some(past) = slot(PAST[0]) {
                let long = steps.step_with("Shape", &[past], title, "past_shape", from(0));
                let axis = steps.constant(title, |name| TensorProto::from_i64(name, &[], &[2]));
                let long = steps.step("Gather", &[&long, &axis], title, "past");
                above = steps.step("Add", &[&long, &above], title, "above");
            }
            let later = steps.step("Trilu", &[&all, &above], title, "later");
            scores = steps.step("Add", &[&scores, &later], title, "causal");
        }
        let steps = &mut self.steps;
        shown.push(scores.clone());
        let along = vec![Attribute::int("axis", -1)];
        let mut shares = steps.step_with("Softmax", &[&scores], title, "shares", along);
        if slot(MASK).is_some() || counts.is_some() {
            // Softmax over a row of -∞ yields NaN: a token that sees nothing gets weights of 0.
            let none = steps.number(title, 0.0);
            let blind = steps.step("IsNaN", &[&shares], title, "blind");
            shares = steps.step("Where", &[&blind, &none, &shares], title, "seen");
        }
        shown.push(shares.clone());
        if let Some(output) = asked(3) {
            steps.last("Identity", &[&shown[mode]], output, output, Vec::new());
        }
        let output = node.output.first()?;
        if !apart {
            steps.last("MatMul", &[&shares, value], title, output, Vec::new());
            return Some(());
        }
        let mixed = steps.names.fresh(&format!("{title}.mixed"));
        steps.last("MatMul", &[&shares, value], title, &mixed, Vec::new());
        let back = steps.step_with("Transpose", &[&mixed], title, "back", order(&[0, 2, 1, 3]));
        let whole = steps.integers(title, &[0, 0, -1]);
        let name = steps.names.fresh(&format!("{title}.whole"));
        steps.last("Reshape", &[&back, &whole], &name, output, Vec::new());
        Some(())
    }

    /// The scores with -∞ for the keys behind the valid ones of each sequence. If the attention is
    /// causal, the last query is that of the last valid key.
    fn hide_empty_places(
        &mut self,
        title: &str,
        scores: &str,
        counts: &str,
        causal: bool,
    ) -> String {
        let steps = &mut self.steps;
        let from = |at: i64| vec![Attribute::int("start", at)];
        let shape = steps.step_with("Shape", &[scores], title, "shape", from(-2));
        let number = |name: &str, value: i64| TensorProto::from_i64(name, &[], &[value]);
        let [none, one] = [0, 1].map(|value| steps.constant(title, |name| number(name, value)));
        let keys = steps.step("Gather", &[&shape, &one], title, "keys");
        let places = steps.step("Range", &[&none, &keys, &one], title, "places");
        let apart = steps.integers(title, &[-1, 1, 1, 1]);
        let mut ends = steps.step("Reshape", &[counts, &apart], title, "ends");
        if causal {
            let queries = steps.step("Gather", &[&shape, &none], title, "queries");
            let later = steps.step("Sub", &[&one, &queries], title, "later");
            let rows = steps.step("Range", &[&later, &one, &one], title, "rows");
            let down = steps.integers(title, &[-1, 1]);
            let rows = steps.step("Reshape", &[&rows, &down], title, "down");
            ends = steps.step("Add", &[&ends, &rows], title, "own_ends");
        }
        let seen = steps.step("Less", &[&places, &ends], title, "valid");
        let [none, hidden] = [0.0, f32::NEG_INFINITY].map(|number| steps.number(title, number));
        let mask = steps.step("Where", &[&seen, &none, &hidden], title, "places_mask");
        steps.step("Add", &[scores, &mask], title, "placed")
    }
}
