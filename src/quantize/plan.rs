//! What is to be quantized in a model, node by node, before any range is known.
//!
//! The nodes are visited once, in order, since some treatments ask what came before: an operator that
//! shares its input's scale is quantized only if its input is, and a Relu behind a quantized value is
//! folded into that value's range and taken out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::operators::{Treatment, WeightAxis, float_reason, is_quantized_operator, treatment};
use super::{NodeChoice, QuantizeError, Settings};
use crate::graph::{Model, Uses};
use crate::onnx::schema::{DataType, NodeProto};

/// How a value or constant is quantized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By its own range; a constant by its own values, in the activations' type.
    Activation,
    /// With scale and zero point of another value.
    Shared(String),
    /// A weight, with the axis of its channels where it has a scale for each.
    Weight(Option<usize>),
}

/// A bias to be quantized with the scales of what it is added to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bias {
    pub(super) node: usize,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) weight: String,
    pub(super) beta: f32,
}

/// Where the range of a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RangeSource {
    Observed(String),
    Fixed(f32, f32),
}

/// What is to be quantized.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) settings: Settings,
    /// In the order they were met.
    pub(super) forms: Vec<(String, Form)>,
    pub(super) biases: Vec<Bias>,
    /// Nodes folded into what comes before them.
    pub(super) removed: BTreeSet<usize>,
    /// Outputs renamed because a removed node had made the new name.
    pub(super) renamed: HashMap<String, String>,
    /// Nodes that read integers: the only ones whose weights are replaced.
    pub(super) quantized: HashSet<usize>,
    pub(super) ranges: HashMap<String, RangeSource>,
    /// For a value that shares another's scale: the value at the end of that chain.
    pub(super) sources: HashMap<String, String>,
    pub(super) choices: Vec<NodeChoice>,
}

impl Plan {
    /// Plans for a prepared model whose values all have their types in `value_info`.
    pub fn new(model: &Model, settings: &Settings) -> Result<Plan, QuantizeError> {
        refuse_quantized(model)?;
        let opset = model.opset();
        if settings.per_channel && opset < FIRST_OPSET_WITH_AXIS {
            return Err(QuantizeError::Opset { opset });
        }
        check_names(model, settings)?;
        let mut planner = Planner::new(model, settings);
        for (index, node) in model.graph.nodes.iter().enumerate() {
            let reason = planner.visit(index, node).err();
            planner.choices.push(NodeChoice {
                node: node.title().to_string(),
                operator: node.operator(),
                quantized: reason.is_none(),
                reason: reason.map(str::to_string),
            });
        }
        let plan = planner.finish();
        if plan.forms.is_empty() {
            let reasons: BTreeSet<&str> = plan
                .choices
                .iter()
                .filter_map(|c| c.reason.as_deref())
                .collect();
            let reason = reasons
                .into_iter()
                .next()
                .unwrap_or("it has no nodes")
                .to_string();
            return Err(QuantizeError::Nothing { reason });
        }
        Ok(plan)
    }

    /// The values whose ranges a calibration must find, in order of name.
    pub fn observed(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self
            .forms
            .iter()
            .filter(|(_, form)| *form == Form::Activation)
            .filter_map(|(name, _)| match self.ranges.get(name) {
                Some(RangeSource::Observed(source)) => Some(source),
                _ => None,
            })
            .collect();
        names.into_iter().cloned().collect()
    }

    /// Each node and whether it is quantized.
    pub fn choices(&self) -> &[NodeChoice] {
        &self.choices
    }
}

/// An error that names the first operator that only quantized models have.
pub fn refuse_quantized(model: &Model) -> Result<(), QuantizeError> {
    let quantized =
        |n: &&NodeProto| is_quantized_operator(n.op_type.as_deref().unwrap_or_default());
    match model.graph.nodes.iter().find(quantized) {
        Some(node) => Err(QuantizeError::AlreadyQuantized {
            node: node.title().to_string(),
            operator: node.operator(),
        }),
        None => Ok(()),
    }
}

fn check_names(model: &Model, settings: &Settings) -> Result<(), QuantizeError> {
    let titles: HashSet<&str> = model.graph.nodes.iter().map(NodeProto::title).collect();
    for name in &settings.keep_float {
        if !titles.contains(name.as_str()) {
            let alike = titles
                .iter()
                .filter(|t| t.contains(name.as_str()) || name.contains(**t))
                .min();
            let hint = alike.map_or(String::new(), |t| format!("; did you mean `{t}`?"));
            return Err(QuantizeError::UnknownNode {
                name: name.clone(),
                hint,
            });
        }
    }
    Ok(())
}

/// The operator set since which DequantizeLinear has an axis.
const FIRST_OPSET_WITH_AXIS: i64 = 13;

/// Where each chain of values that share a scale begins.
fn sources(forms: &BTreeMap<String, Form>) -> HashMap<String, String> {
    let next = |name: &String| match forms.get(name) {
        Some(Form::Shared(source)) => Some(source),
        _ => None,
    };
    let mut found = HashMap::new();
    for name in forms.keys() {
        // As many steps as there are values end any chain that ends at all.
        let end = std::iter::successors(next(name), |&source| next(source))
            .take(forms.len())
            .last();
        if let Some(end) = end {
            found.insert(name.clone(), end.clone());
        }
    }
    found
}

const NOT_FINITE: &str = "a constant of it is infinite or not a number, which has no integer";
const FLOAT_INPUT: &str = "what it reads is not quantized";
const NOT_FLOAT: &str = "it does not work on float32 values";

struct Planner<'a> {
    model: &'a Model,
    settings: &'a Settings,
    uses: Uses,
    element: HashMap<&'a str, DataType>,
    order: Vec<String>,
    forms: HashMap<String, Form>,
    biases: Vec<Bias>,
    removed: BTreeSet<usize>,
    renamed: HashMap<String, String>,
    quantized: HashSet<usize>,
    choices: Vec<NodeChoice>,
}

impl<'a> Planner<'a> {
    fn new(model: &'a Model, settings: &'a Settings) -> Planner<'a> {
        let graph = &model.graph;
        let declared = graph
            .inputs
            .iter()
            .chain(&graph.outputs)
            .chain(&graph.value_info);
        let mut element: HashMap<&str, DataType> = declared
            .filter_map(|v| Some((v.name.as_deref()?, crate::graph::tensor_type_of(v)?.element)))
            .collect();
        for tensor in graph.initializers.iter() {
            if let (Some(name), Ok(found)) = (tensor.name.as_deref(), tensor.element()) {
                element.insert(name, found);
            }
        }
        Planner {
            model,
            settings,
            uses: graph.uses(),
            element,
            order: Vec::new(),
            forms: HashMap::new(),
            biases: Vec::new(),
            removed: BTreeSet::new(),
            renamed: HashMap::new(),
            quantized: HashSet::new(),
            choices: Vec::new(),
        }
    }

    /// Why the settings or its operator keep a node float.
    fn excluded(&self, node: &NodeProto) -> Option<&'static str> {
        let operator = node.operator();
        if let Some(reason) = float_reason(&operator) {
            return Some(reason);
        }
        if self
            .settings
            .operators
            .as_ref()
            .is_some_and(|wanted| !wanted.contains(&operator))
        {
            return Some("the settings leave its operator float");
        }
        let kept = self
            .settings
            .keep_float
            .iter()
            .any(|name| name == node.title());
        kept.then_some("the settings keep it float")
    }

    fn visit(&mut self, index: usize, node: &NodeProto) -> Result<(), &'static str> {
        if let Some(reason) = self.excluded(node) {
            return Err(reason);
        }
        let treatment = treatment(&node.operator()).ok_or("it has no int8 form here yet")?;
        // The bounds of a Clip may be infinite: they become no integers.
        if !matches!(treatment, Treatment::Clamp | Treatment::Share)
            && node.input.iter().any(|name| !self.is_finite(name))
        {
            return Err(NOT_FINITE);
        }
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        match treatment {
            Treatment::Weighted(axis) => {
                if !self.is_float(input) || !self.is_float(output) {
                    return Err(NOT_FLOAT);
                }
                self.activation(input);
                self.activation(output);
                let axis = match axis {
                    WeightAxis::Fixed(axis) => axis,
                    WeightAxis::OfGemm => usize::from(node.int("transB").unwrap_or(0) == 0),
                };
                let weight = node.input_at(1).unwrap_or_default();
                self.weight(weight, axis);
                if let Some(bias) = node.input_at(2) {
                    let beta = if node.is("Gemm") {
                        node.float("beta").unwrap_or(1.0)
                    } else {
                        1.0
                    };
                    self.bias(index, bias, input, weight, beta);
                }
            }
            Treatment::MatMul => {
                if !self.is_float(output) {
                    return Err(NOT_FLOAT);
                }
                for name in &node.input {
                    if self.model.graph.initializers.contains(name) {
                        self.weight(name, 1);
                    } else {
                        self.activation(name);
                    }
                }
                self.activation(output);
            }
            Treatment::Elementwise => {
                let names = node.input.iter().chain(&node.output);
                if names.clone().filter(|n| self.activation(n)).count() == 0 {
                    return Err(NOT_FLOAT);
                }
            }
            Treatment::Clamp => {
                if !self.is_marked(input) {
                    return Err(FLOAT_INPUT);
                }
                if !self.fold_clamp(index, input, output) {
                    self.activation(input);
                }
                self.activation(output);
            }
            Treatment::Share => self.share(output, input)?,
            Treatment::Pad => {
                if !self.is_float(input) {
                    return Err(NOT_FLOAT);
                }
                for name in &node.input {
                    self.activation(name);
                }
                if self.pads_with_input(node) {
                    self.share(output, input)?;
                } else {
                    self.activation(output);
                }
            }
            Treatment::Split => {
                if !self.is_marked(input) && !self.activation(input) {
                    return Err(NOT_FLOAT);
                }
                for output in &node.output {
                    self.share(output, input)?;
                }
            }
            Treatment::Gather => {
                if self.model.graph.initializers.contains(input) {
                    self.activation(input);
                }
                self.share(output, input)?;
            }
            Treatment::Where => {
                let branches = [1, 2].map(|slot| node.input_at(slot).unwrap_or_default());
                if !branches.iter().all(|branch| self.is_marked(branch)) {
                    return Err(FLOAT_INPUT);
                }
                self.activation(output);
            }
            Treatment::Normalize => {
                if !self.activation(input) {
                    return Err(NOT_FLOAT);
                }
                let scale = node.input_at(1).unwrap_or_default();
                self.weight(scale, 1);
                if let Some(bias) = node.input_at(2) {
                    self.bias(index, bias, input, scale, 1.0);
                }
                for output in &node.output {
                    self.activation(output);
                }
            }
        }
        self.quantized.insert(index);
        Ok(())
    }

    fn is_float(&self, name: &str) -> bool {
        self.element.get(name) == Some(&DataType::Float)
    }

    /// Whether a float value, if it is a constant, has no infinity and no NaN in it.
    fn is_finite(&self, name: &str) -> bool {
        let Some(tensor) = self
            .model
            .graph
            .initializers
            .get(name)
            .filter(|_| self.is_float(name))
        else {
            return true;
        };
        // Looked at where they lie: weights are large, and this is asked of every one.
        let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        match &tensor.raw_data {
            Some(raw) => raw.chunks_exact(4).all(|bytes| number(bytes).is_finite()),
            None => tensor.float_data.iter().all(|value| value.is_finite()),
        }
    }

    fn is_marked(&self, name: &str) -> bool {
        self.forms.contains_key(name)
    }

    fn mark(&mut self, name: &str, form: Form) {
        if self.forms.insert(name.to_string(), form).is_none() {
            self.order.push(name.to_string());
        }
    }

    /// Marks a float value or constant, unless it is marked already; whether it is a float one.
    fn activation(&mut self, name: &str) -> bool {
        let float = self.is_float(name);
        if float && !self.is_marked(name) {
            self.mark(name, Form::Activation);
        }
        float
    }

    fn weight(&mut self, name: &str, axis: usize) {
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            self.activation(name);
            return;
        };
        if !self.is_float(name) {
            return;
        }
        let axis = (self.settings.per_channel && axis < tensor.dims.len()).then_some(axis);
        let form = match self.forms.get(name) {
            // Used twice, with different axes or beside an elementwise operator: one scale serves both.
            Some(form) if *form != Form::Weight(axis) => Form::Weight(None),
            _ => Form::Weight(axis),
        };
        self.mark(name, form);
    }

    /// Marks a constant float bias whose shape goes with the scales it will have.
    fn bias(&mut self, node: usize, name: &str, input: &str, weight: &str, beta: f32) {
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            return;
        };
        let channels = match self.forms.get(weight) {
            Some(Form::Weight(Some(axis))) => self
                .model
                .graph
                .initializers
                .get(weight)
                .map(|w| w.dims[*axis]),
            _ => None,
        };
        let fits = channels.is_none_or(|channels| tensor.dims == [channels]);
        if self.is_float(name) && self.is_marked(input) && self.is_marked(weight) && fits {
            let (name, input, weight) = (name.to_string(), input.to_string(), weight.to_string());
            self.biases.push(Bias {
                node,
                name,
                input,
                weight,
                beta,
            });
        }
    }

    fn share(&mut self, output: &str, input: &str) -> Result<(), &'static str> {
        match self.forms.get(input) {
            None => return Err(FLOAT_INPUT),
            Some(Form::Weight(Some(_))) => {
                return Err("its input is a weight with a scale a channel");
            }
            Some(_) if !self.is_float(output) => return Err(NOT_FLOAT),
            Some(_) => self.mark(output, Form::Shared(input.to_string())),
        }
        Ok(())
    }

    /// Lets what comes before a Relu or Clip make its output: with integers from zero up, or whose range
    /// ends where the clip does, there is nothing left for it to do.
    fn fold_clamp(&mut self, index: usize, input: &str, output: &str) -> bool {
        let made = self.uses.producer(input).is_some();
        let alone = self.uses.consumers(input).len() == 1;
        if self.settings.symmetric_activations
            || !made
            || !alone
            || self.uses.is_output(input)
            || !self.is_float(output)
            || !self.leaves_zero_alone(index)
        {
            return false;
        }
        self.forms.remove(input);
        self.order.retain(|name| name != input);
        self.renamed.insert(input.to_string(), output.to_string());
        self.removed.insert(index);
        true
    }

    /// Whether a Relu or Clip is known to let zero pass. The integers always reach down or up to zero, so
    /// they can't stand for a Clip to [1, 6] or to bounds that come with the data. (ONNX Runtime folds
    /// these too, and then the model gives values outside the bounds.)
    fn leaves_zero_alone(&self, index: usize) -> bool {
        let node = &self.model.graph.nodes[index];
        let bound = |slot, open: f32| match node.input_at(slot) {
            None => Some(open),
            Some(name) => self
                .model
                .graph
                .initializers
                .get(name)?
                .to_f32()
                .ok()?
                .first()
                .copied(),
        };
        let low = bound(1, f32::NEG_INFINITY).is_some_and(|low| low <= 0.0);
        node.is("Relu") || (low && bound(2, f32::INFINITY).is_some_and(|high| high >= 0.0))
    }

    fn pads_with_input(&self, node: &NodeProto) -> bool {
        match node.text("mode").unwrap_or("constant") {
            "reflect" | "edge" | "wrap" => true,
            "constant" => match node.input_at(2) {
                None => true,
                Some(value) => self
                    .model
                    .graph
                    .initializers
                    .get(value)
                    .and_then(|tensor| tensor.to_f32().ok())
                    .is_some_and(|values| values.first().copied().unwrap_or(0.0) == 0.0),
            },
            _ => false,
        }
    }

    /// The input of a Clip or Relu takes the range of its output, a Softmax gives 0 to 1. Seen in order,
    /// so that a chain of two takes the nearer range.
    fn range_sources(&self) -> HashMap<String, RangeSource> {
        let mut sources: HashMap<String, RangeSource> = HashMap::new();
        let source = |sources: &HashMap<String, RangeSource>, name: &str| {
            sources
                .get(name)
                .cloned()
                .unwrap_or_else(|| RangeSource::Observed(name.to_string()))
        };
        for node in self
            .model
            .graph
            .nodes
            .iter()
            .filter(|node| self.excluded(node).is_none())
        {
            let Some(output) = node.output.first() else {
                continue;
            };
            if node.is("Softmax") {
                sources.insert(output.clone(), RangeSource::Fixed(0.0, 1.0));
            } else if (node.is("Relu") || node.is("Clip"))
                && let Some(input) = node.input_at(0)
                && self.uses.consumers(input).len() == 1
                && self.is_float(input)
                && self.is_float(output)
            {
                let taken = source(&sources, output);
                sources.insert(input.to_string(), taken);
            }
        }
        let marked = self.forms.iter().filter(|(name, form)| {
            **form == Form::Activation && !self.model.graph.initializers.contains(name)
        });
        marked
            .map(|(name, _)| (name.clone(), source(&sources, name)))
            .collect()
    }

    fn finish(mut self) -> Plan {
        // A scale is shared with what is still quantized; a folded value goes by its new name.
        let ranges = self.range_sources();
        let mut forms = BTreeMap::new();
        for (name, form) in self.forms.drain() {
            let form = match form {
                Form::Shared(source) => {
                    Form::Shared(self.renamed.get(&source).cloned().unwrap_or(source))
                }
                form => form,
            };
            forms.insert(name, form);
        }
        let sources = sources(&forms);
        let ordered = self.order.into_iter();
        Plan {
            settings: self.settings.clone(),
            forms: ordered
                .filter_map(|name| forms.remove(&name).map(|form| (name, form)))
                .collect(),
            biases: self.biases,
            removed: self.removed,
            renamed: self.renamed,
            quantized: self.quantized,
            ranges,
            sources,
            choices: self.choices,
        }
    }
}
