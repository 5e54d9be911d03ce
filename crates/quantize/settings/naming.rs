//! File names of quantized models: one ending for each scheme and weight type.
//!
//! transformers.js looks for the endings `_quantized`, `_int8`, `_uint8`, `_fp16`, `_q4`, `_q4f16`,
//! `_bnb4`, `_q2` and `_q2f16`.

use super::{ElementType, Format, Scheme, Settings};
use crate::{BlockForm, FloatActivations};
use octet_onnx::schema::DataType;
use octet_targets::RunTarget;

impl Settings {
    /// The ending of the file name before `.onnx`: `_int8`, `_quantized`, `_weights_int8`, `_q4`, `_fp16` …
    pub fn file_ending(&self) -> String {
        let weights = self.weights.element.unwrap_or(ElementType::I8);
        let name = weights.data_type().name();
        if self.target == RunTarget::TransformersJs {
            return self.name_of_dtype(name);
        }
        match self.scheme {
            Scheme::Static => {
                let activations = self.activations.element.unwrap_or(ElementType::U8);
                let wide = match activations.bits() {
                    8 => String::new(),
                    bits => format!("_a{bits}"),
                };
                let form = match self.format {
                    Format::Qdq => "",
                    Format::QOperator => "_qoperator",
                    Format::Simulated => "_simulated",
                };
                format!("_{name}{wide}{form}")
            }
            Scheme::Dynamic if weights.data_type() == DataType::Int8 => "_quantized".into(),
            Scheme::Dynamic => format!("_quantized_{name}"),
            Scheme::Weights => format!("_weights_{name}"),
            Scheme::Blocks => {
                let form = match self.blocks.form {
                    BlockForm::MatMulNBits => format!("_q{}", self.blocks.bits),
                    BlockForm::Dequantize => format!("_q{}_dequantize", self.blocks.bits),
                    BlockForm::MatMulBnb4 => "_bnb4".to_owned(),
                };
                let half = match self.blocks.activations {
                    FloatActivations::Float16 => "f16",
                    FloatActivations::Source => "",
                };
                format!("{form}{half}")
            }
            Scheme::Float16 => "_fp16".into(),
        }
    }

    /// The ending that transformers.js looks for.
    fn name_of_dtype(&self, weights: &str) -> String {
        match self.scheme {
            Scheme::Static | Scheme::Weights => format!("_{weights}"),
            Scheme::Dynamic => "_quantized".into(),
            Scheme::Blocks if self.blocks.form == BlockForm::MatMulBnb4 => "_bnb4".into(),
            Scheme::Blocks => match self.blocks.activations {
                FloatActivations::Float16 => format!("_q{}f16", self.blocks.bits),
                FloatActivations::Source => format!("_q{}", self.blocks.bits),
            },
            Scheme::Float16 => "_fp16".into(),
        }
    }

    /// The file name of the quantized model, from the file name of the source.
    pub fn file_name(&self, model: &str) -> String {
        let ending = self.file_ending();
        let at = model.len().saturating_sub(".onnx".len());
        let stem = match model.get(at..) {
            Some(end) if at > 0 && end.eq_ignore_ascii_case(".onnx") => &model[..at],
            _ => model,
        };
        format!("{stem}{ending}.onnx")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn settings(text: &str) -> Settings {
        Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn each_scheme_has_a_name_of_its_own() {
        let cases = [
            ("{}", "m_int8.onnx"),
            (r#"{"weights": {"type": "u8"}}"#, "m_uint8.onnx"),
            (r#"{"weights": {"type": "i4"}}"#, "m_int4.onnx"),
            (r#"{"activations": {"type": "u16"}}"#, "m_int8_a16.onnx"),
            (r#"{"format": "qoperator"}"#, "m_int8_qoperator.onnx"),
            (r#"{"format": "simulated"}"#, "m_int8_simulated.onnx"),
            (r#"{"scheme": "dynamic"}"#, "m_quantized.onnx"),
            (
                r#"{"scheme": "dynamic", "weights": {"type": "u8"}}"#,
                "m_quantized_uint8.onnx",
            ),
            (r#"{"scheme": "weights"}"#, "m_weights_int8.onnx"),
            (r#"{"scheme": "blocks"}"#, "m_q4.onnx"),
            (
                r#"{"scheme": "blocks", "blocks": {"bits": 8}}"#,
                "m_q8.onnx",
            ),
            (
                r#"{"scheme": "blocks", "blocks": {"form": "dequantize"}}"#,
                "m_q4_dequantize.onnx",
            ),
            (
                r#"{"scheme": "blocks", "blocks": {"activations": "float16"}}"#,
                "m_q4f16.onnx",
            ),
            (
                r#"{"scheme": "blocks", "blocks": {"bits": 2, "activations": "float16"}}"#,
                "m_q2f16.onnx",
            ),
            (
                r#"{"scheme": "blocks", "blocks": {"form": "matmul_bnb4"}}"#,
                "m_bnb4.onnx",
            ),
            (r#"{"scheme": "float16"}"#, "m_fp16.onnx"),
        ];
        for (text, name) in cases {
            assert_eq!(settings(text).file_name("m.onnx"), name, "{text}");
        }
        let names: BTreeSet<_> = cases.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn the_models_own_name_stays_in_front() {
        let all = Settings::default();
        for (model, name) in [
            ("model.ONNX", "model_int8.onnx"),
            ("a.b.onnx", "a.b_int8.onnx"),
            ("model", "model_int8.onnx"),
            (".onnx", ".onnx_int8.onnx"),
            ("modèle", "modèle_int8.onnx"),
        ] {
            assert_eq!(all.file_name(model), name);
        }
    }
}
