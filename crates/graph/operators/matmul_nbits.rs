//! MatMulNBits: a product with a weight of 2, 4 or 8 bits in blocks.

use super::Operator;
use super::Property::{MatrixProduct, OnlyQuantized};
use super::properties::MacRule;

pub(super) static OPERATORS: &[Operator] = &[Operator::microsoft("MatMulNBits")
    .with(&[MatrixProduct, OnlyQuantized])
    .macs(MacRule::Product)];
