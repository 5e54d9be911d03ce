//! Writes the integers of constants in a graph that is rewritten, each once, and reports them.

use super::quantized_names::QuantizedNames;
use super::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use super::scale::{QuantizationParameters, encoded};
use super::settings::{ElementType, Representation};
use super::weights::{self, quantized};
use super::{QuantizedTensor, TensorKind};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;

/// The integer representation of a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntegerFormat {
    pub(super) element: ElementType,
    /// The channel axis; `None` for per-tensor.
    pub(super) axis: Option<usize>,
    pub(super) symmetric: bool,
    pub(super) reduce_range: bool,
}

/// Computes scales and zero points of a constant from its minimum and maximum.
pub(super) fn parameters(
    tensor: &TensorProto,
    form: IntegerFormat,
) -> Result<QuantizationParameters, TensorError> {
    let mut represented = Representation::new(form.element, None);
    represented.symmetric = Some(form.symmetric);
    represented.reduce_range = form.reduce_range;
    weights::parameters(tensor, form.axis, &represented, true)
}

impl Rewriter<'_> {
    /// Makes three unused names from `name`.
    pub(super) fn fresh_names(&mut self, name: &str) -> QuantizedNames {
        QuantizedNames {
            integers: self.fresh(&format!("{name}_quantized")),
            scale: self.fresh(&format!("{name}_scale")),
            zero_point: self.fresh(&format!("{name}_zero_point")),
        }
    }

    /// Runs `make` for a tensor in a form once; later calls return the same names.
    pub(super) fn shared(
        &mut self,
        name: &str,
        form: &str,
        make: impl FnOnce(&mut Self) -> Result<QuantizedNames, NotQuantized>,
    ) -> Result<QuantizedNames, NotQuantized> {
        let key = (name.to_owned(), form.to_owned());
        if let Some(names) = self.shared_constants.get(&key) {
            return Ok(names.clone());
        }
        let names = make(self)?;
        self.shared_constants.insert(key, names.clone());
        Ok(names)
    }

    /// Writes the integers of a weight in its original layout; `tag` identifies the form.
    pub(super) fn in_original_layout(
        &mut self,
        weight: &ConstantWeight,
        tag: &str,
        form: IntegerFormat,
    ) -> Result<QuantizedNames, NotQuantized> {
        self.shared(weight.name, tag, |graph| {
            let params = parameters(weight.tensor, form)?;
            graph.write_constant(weight.name, weight.tensor, &params)
        })
    }

    /// Writes a constant's integers in the original layout, with scales and zero points as a vector
    /// or scalar.
    pub(super) fn write_constant(
        &mut self,
        name: &str,
        tensor: &TensorProto,
        params: &QuantizationParameters,
    ) -> Result<QuantizedNames, NotQuantized> {
        let names = self.fresh_names(name);
        self.constant(quantized(tensor, &names.integers, params)?);
        let shape = Vec::from_iter(params.axis.map(|_| params.scales.len()));
        self.write_parameters(&names, params, &shape);
        self.report_weight(name, params);
        Ok(names)
    }

    /// Writes scales and zero points with this shape.
    pub(super) fn write_parameters(
        &mut self,
        names: &QuantizedNames,
        params: &QuantizationParameters,
        shape: &[usize],
    ) {
        let bytes = encoded(params.element, params.zero_points.iter().copied());
        self.constant(TensorProto::from_f32(&names.scale, shape, &params.scales));
        self.constant(TensorProto::from_raw(
            &names.zero_point,
            params.element,
            shape,
            bytes.into(),
        ));
    }

    /// Adds a weight to the report.
    pub(super) fn report_weight(&mut self, name: &str, params: &QuantizationParameters) {
        self.report(QuantizedTensor::new(name, TensorKind::Weight, params));
    }
}
