//! tract's sizes and element types as ONNX's.

use tract_onnx::tract_hir::internal::{DatumType, TDim};

use octet_graph::Dim;
use octet_onnx::schema::DataType;

/// The size of an axis.
pub(super) fn dim(dim: &TDim) -> Dim {
    match dim.to_i64() {
        Ok(size) => usize::try_from(size).map_or(Dim::Unknown, Dim::Known),
        Err(_) => Dim::Named(dim.to_string()),
    }
}

/// The element type; `None` if ONNX has none of it.
pub(super) fn element_type(datum: DatumType) -> Option<DataType> {
    Some(match datum {
        DatumType::F16 => DataType::Float16,
        DatumType::F32 => DataType::Float,
        DatumType::F64 => DataType::Double,
        DatumType::I8 => DataType::Int8,
        DatumType::I16 => DataType::Int16,
        DatumType::I32 => DataType::Int32,
        DatumType::I64 | DatumType::TDim => DataType::Int64,
        DatumType::U8 => DataType::Uint8,
        DatumType::U16 => DataType::Uint16,
        DatumType::U32 => DataType::Uint32,
        DatumType::U64 => DataType::Uint64,
        DatumType::Bool => DataType::Bool,
        DatumType::String => DataType::String,
        _ => return None,
    })
}
