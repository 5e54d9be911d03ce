//! The ONNX file format: what is read is written again, field for field.

pub mod schema;
