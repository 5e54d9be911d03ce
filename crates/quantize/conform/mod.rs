//! Changes of a quantized graph that a target's rules demand, beside its settings.

mod add_inputs;
mod one_scale;

pub(super) use add_inputs::read_floats_beside_floats;
pub(super) use one_scale::give_one_scale;
