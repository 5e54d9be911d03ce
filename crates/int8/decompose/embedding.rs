//! Decomposition of EmbedLayerNormalization: rows of up to three tables (words, positions,
//! segments) are added and normalized.

use super::{Decomposer, Decomposition};
use octet_graph::{Attribute, Node};
use octet_onnx::schema::{DataType, TensorProto};

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["com.microsoft::EmbedLayerNormalization"],
        rewrite: |to, node, _| to.embedding(node),
    },
    Decomposition {
        operators: &["com.microsoft::QEmbedLayerNormalization"],
        rewrite: |to, node, _| to.quantized_embedding(node),
    },
];

/// The variant with quantized tables, scale and bias; of ONNX Runtime's domain.
pub(super) const QUANTIZED: &str = "QEmbedLayerNormalization";

/// Input slots: the tables, followed by scale and bias; the mask; the positions.
const TABLES: usize = 2;
const MASK: usize = 7;
const PLACES: usize = 8;

/// Input slots of the quantized operator: scales of the five quantized inputs, and their zero
/// points.
const SCALES: usize = 8;
const ZERO_POINTS: usize = 13;

/// Default epsilon of ONNX Runtime.
const EPSILON: f32 = 1e-12;

impl Decomposer {
    /// Decomposes the quantized operator with dequantized tables, scale and bias.
    fn quantized_embedding(&mut self, node: &Node) -> Option<()> {
        let mut plain = node.clone();
        plain.input.truncate(MASK + 1);
        for place in 0..MASK - TABLES {
            let Some(integers) = node.input_at(TABLES + place) else {
                continue;
            };
            let scale = node.input_at(SCALES + place)?;
            let zero_point = node.input_at(ZERO_POINTS + place).unwrap_or_default();
            plain.input[TABLES + place] = self.dequantized(integers, scale, zero_point, 1);
        }
        self.embedding(&plain)
    }

    fn embedding(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (words, output) = (slot(0)?, node.output.first()?);
        let [table, places] = [slot(TABLES)?, slot(TABLES + 1)?];
        let [scale, bias] = [slot(TABLES + 3)?, slot(TABLES + 4)?];
        let result = |at: usize| node.output.get(at).filter(|name| !name.is_empty());
        let title = node.title();
        let word = self.steps.step("Gather", &[table, words], title, "word");
        let place = match slot(PLACES) {
            Some(positions) => self
                .steps
                .step("Gather", &[places, positions], title, "place"),
            None => {
                let first = self.steps.integers(title, &[0]);
                let count = self.size_along(words, title, 1);
                self.steps
                    .step("Slice", &[places, &first, &count], title, "place")
            }
        };
        let mut sum = self.steps.step("Add", &[&word, &place], title, "placed");
        if let (Some(segments), Some(table)) = (slot(1), slot(TABLES + 2)) {
            let segment = self
                .steps
                .step("Gather", &[table, segments], title, "segment");
            sum = self.steps.step("Add", &[&sum, &segment], title, "sum");
        }
        let steps = &mut self.steps;
        if let Some(asked) = result(2) {
            let name = steps.names.fresh(&format!("{title}.given_out"));
            steps.last("Identity", &[&sum], &name, asked, Vec::new());
        }
        let attributes = vec![
            Attribute::int("axis", -1),
            Attribute::float("epsilon", node.float("epsilon").unwrap_or(EPSILON)),
        ];
        let inputs = [&sum, scale, bias];
        steps.last("LayerNormalization", &inputs, title, output, attributes);
        if let Some(counts) = result(1) {
            self.masked(title, words, slot(MASK), counts);
        }
        Some(())
    }

    /// Writes the number of mask entries that are 1 in each row. Without a mask it writes 0, as
    /// ONNX Runtime does.
    fn masked(&mut self, title: &str, words: &str, mask: Option<&str>, counts: &str) {
        let counted = self.steps.names.fresh(&format!("{title}.counted"));
        let Some(mask) = mask else {
            let lines = self.size_along(words, title, 0);
            let zero = TensorProto::from_i32("", &[1], &[0]);
            let zero = vec![Attribute::tensor("value", zero)];
            return self
                .steps
                .last("ConstantOfShape", &[&lines], &counted, counts, zero);
        };
        let steps = &mut self.steps;
        let one = steps.constant(title, |name| TensorProto::from_i32(name, &[1], &[1]));
        let shown = steps.step("Equal", &[mask, &one], title, "shown");
        let integer = vec![Attribute::int("to", DataType::Int32 as i64)];
        let number = steps.step_with("Cast", &[&shown], title, "number", integer);
        let along = steps.integers(title, &[1]);
        let flat = vec![Attribute::int("keepdims", 0)];
        steps.last("ReduceSum", &[&number, &along], &counted, counts, flat);
    }

    /// Writes the size of a value along one axis as a vector of one element.
    fn size_along(&mut self, value: &str, title: &str, axis: i64) -> String {
        let shape = self.steps.step("Shape", &[value], title, "shape");
        let [from, to] = [axis, axis + 1].map(|at| self.steps.integers(title, &[at]));
        self.steps
            .step("Slice", &[&shape, &from, &to], title, "size")
    }
}
