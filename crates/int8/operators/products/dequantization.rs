//! The chain that dequantizes the accumulators of an integer product: Cast, Mul, a Mul of the
//! scales, Add of a constant, and Relu or Clip.

use octet_onnx::schema::DataType;

use crate::pattern::matcher::Matcher;
use crate::pattern::reader::Reader;

/// Dequantization of accumulators: factors, bias and bounds.
pub(super) struct Dequantization {
    /// One per column.
    pub(super) factors: Vec<f32>,
    /// One per column, or empty.
    pub(super) bias: Vec<f32>,
    /// Names of scales known only during the run: up to two. They multiply the factors.
    pub(super) scales: Vec<String>,
    /// Bounds of a fused Relu or Clip.
    pub(super) bounds: Option<[f32; 2]>,
}

impl Matcher<'_> {
    /// The chain that dequantizes accumulators: Cast, Mul, a Mul of the scales, Add, and Relu or
    /// Clip. Returns its parameters, its output and its nodes.
    pub(super) fn scaled(
        &self,
        index: usize,
        sums: &str,
        (shape, axis): (&[usize], Option<usize>),
    ) -> Option<(Dequantization, String, Vec<usize>)> {
        let count = axis.map_or(1, |axis| shape[axis]);
        let cast = self.reader.only_reader(sums)?;
        let node = self.unmatched(cast)?;
        if !node.is("Cast") || node.int("to") != Some(DataType::Float as i64) {
            return None;
        }
        let (product, other) = self.partner(node.output.first()?, "Mul")?;
        let (factors, scales, maker) = self.factors(other, index, (shape, axis))?;
        let mut real = self.node(product).output.first()?;
        let mut nodes = vec![cast, product];
        nodes.extend(maker);
        if self.reader.shape(real).ok()? != shape {
            return None;
        }
        let mut bias = Vec::new();
        if let Some((add, other)) = self.partner(real, "Add")
            && let Some(sum) = self.node(add).output.first()
            && let Some(values) = self.reader.per_channel(other, shape, axis)
            && self.reader.shape(sum).is_ok_and(|sizes| sizes == shape)
        {
            bias = columns(values, count);
            nodes.push(add);
            real = sum;
        }
        let clamp = self.clamp_behind(real);
        let clamp = clamp.filter(|(node, _)| self.unmatched(*node).is_some());
        if let Some((clamp, _)) = clamp {
            nodes.push(clamp);
            real = self.node(clamp).output.first()?;
        }
        let scaled = Dequantization {
            factors: columns(factors, count),
            bias,
            scales,
            bounds: clamp.map(|(_, bounds)| bounds),
        };
        Some((scaled, real.clone(), nodes))
    }

    /// A factor of the accumulators: a constant, a scalar, or the product of two of these. The last
    /// item is the node of that product, if no other node reads it.
    fn factors(
        &self,
        name: &str,
        index: usize,
        (shape, axis): (&[usize], Option<usize>),
    ) -> Option<(Vec<f32>, Vec<String>, Option<usize>)> {
        let reader = &self.reader;
        if let Some(factors) = reader.per_channel(name, shape, axis) {
            return Some((factors, Vec::new(), None));
        }
        let number =
            |name: &str| reader.is_number_before(name, index) && reader.constant(name).is_none();
        let maker = reader.graph.producer(name);
        if let Some(at) = maker
            && let Some(node) = self.unmatched(at).filter(|node| node.is("Mul"))
            && let [left, right] = node.input.as_slice()
        {
            let alone = reader.graph.consumers(name).len() == 1 && !reader.is_observed(name);
            let maker = Some(at).filter(|_| alone);
            for (scale, constant) in [(left, right), (right, left)] {
                if number(scale)
                    && let Some(factors) = reader.per_channel(constant, shape, axis)
                {
                    return Some((factors, vec![scale.clone()], maker));
                }
            }
            if number(left) && number(right) {
                return Some((vec![1.0], vec![left.clone(), right.clone()], maker));
            }
        }
        number(name).then(|| (vec![1.0], vec![name.to_owned()], None))
    }
}

impl Reader<'_> {
    /// True for a float scalar that comes from outside or from a node before `index`.
    fn is_number_before(&self, name: &str, index: usize) -> bool {
        self.element(name) == Some(DataType::Float)
            && self
                .shape(name)
                .is_ok_and(|shape| shape.iter().product::<usize>() == 1)
            && self.graph.producer(name).is_none_or(|maker| maker < index)
    }
}

/// Repeats a single value for each column.
fn columns(values: Vec<f32>, count: usize) -> Vec<f32> {
    match values[..] {
        [one] => vec![one; count],
        _ => values,
    }
}
