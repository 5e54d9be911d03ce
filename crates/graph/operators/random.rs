//! Random numbers.

use super::Operator;
use super::Property::Random;
use super::float16::{NO_KERNEL, NOT_CONVERTED};
use super::properties::OutputType;

const fn random(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Random])
}

/// Without `dtype`, these have the type of their input.
const LIKE: OutputType = OutputType::OptionalAttribute("dtype");

pub(super) static OPERATORS: &[Operator] = &[
    random("Bernoulli").output_type(LIKE),
    random("Multinomial").float16(NOT_CONVERTED),
    random("RandomNormal").requires(0).float16(NO_KERNEL),
    random("RandomNormalLike").output_type(LIKE),
    random("RandomUniform").requires(0).float16(NO_KERNEL),
    random("RandomUniformLike").output_type(LIKE),
];
