//! Intermediate representation (IR): integer steps, and the reason of every node that runs in
//! float.

use std::collections::HashMap;
use std::sync::Arc;

use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::values::{IrValue, StepValues};

/// The integer steps of a model, in graph order.
#[derive(Debug, Default)]
pub(crate) struct Ir {
    pub(crate) steps: Vec<IrStep>,
    /// Type and shape of every value that a step reads or writes.
    pub(crate) values: HashMap<String, IrValue>,
    /// Every node that stays float, with the reason.
    pub(crate) floats: Vec<(usize, FloatReason)>,
}

/// One operation of a region.
#[derive(Clone, Debug)]
pub(crate) struct IrStep {
    /// Display name of the node.
    pub(crate) node: String,
    pub(crate) operator: String,
    /// Nodes of the graph that the step replaces.
    pub(crate) nodes: Vec<usize>,
    pub(crate) operation: Arc<dyn Operation>,
    pub(crate) values: StepValues,
}
