//! Names of the operators that stand for a control node in a flat model.

/// The marker that reads the inputs of a Loop or Scan and produces those of its body.
pub const BODY_INPUTS: &str = "OctetBodyInputs";

/// The marker that reads the outputs of bodies and produces those of their node.
pub const BODY_OUTPUTS: &str = "OctetBodyOutputs";
