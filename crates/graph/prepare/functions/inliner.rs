//! Inlines a call of a model's function. Inner names get the call's title as prefix, attributes
//! take the call's values, and operators are converted to the model's opset.

use std::collections::HashMap;

use prost::Message;

use super::{Library, named};
use crate::prepare::{OPSET, PrepareError, opset};
use crate::{Model, Names, Node, domain_named, version_of};
use octet_onnx::LIMITS;
use octet_onnx::schema::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto,
};

/// Limit on nested calls and graphs. Modules of real models nest a dozen deep.
const MAX_DEPTH: usize = 64;
/// Limit on the nodes that inlining may produce: several times those of the largest known models.
const MAX_NODES: usize = 200_000;

/// Reasons to abandon the body of a call.
pub(super) enum InlineStop {
    /// The call stays in the model.
    KeepCall(String),
    /// The model is invalid or exceeds a limit.
    Refused(PrepareError),
}

/// Copies nodes and inlines the calls among them.
pub(super) struct FunctionInliner<'a> {
    library: &'a Library<'a>,
    /// The opsets that the model imports.
    sets: &'a [OperatorSetIdProto],
    names: Names,
    /// Library indices of the inlined calls, in order.
    pub(super) calls: Vec<usize>,
    /// Opsets that inlined nodes need and the model doesn't import.
    pub(super) imports: Vec<OperatorSetIdProto>,
    /// The reason of the first call that stays.
    pub(super) left: Option<PrepareError>,
    /// Library indices of the functions that are being inlined, outermost first.
    within: Vec<usize>,
    /// Title of the outermost call.
    outermost: String,
    depth: usize,
    nodes: usize,
    bytes: usize,
}

/// The body of a function while it is inlined.
pub(super) struct FunctionBody<'b> {
    function: &'b FunctionProto,
    call: &'b NodeProto,
    /// Prefix of new names.
    title: &'b str,
    /// New names by inner name: the scope of the function first, then those of nested graphs.
    names: Vec<HashMap<String, String>>,
}

impl FunctionBody<'_> {
    /// The value of a function's attribute, and whether the call sets it. Falls back to the
    /// function's default.
    fn attribute(&self, name: &str) -> Option<(&AttributeProto, bool)> {
        let is = |a: &&AttributeProto| a.name.as_deref() == Some(name);
        let usual = || self.function.attribute_proto.iter().find(is);
        let provided = self.call.attribute(name).map(|provided| (provided, true));
        provided.or_else(|| Some((usual()?, false)))
    }
}

impl<'a> FunctionInliner<'a> {
    pub(super) fn new(library: &'a Library<'a>, model: &'a Model) -> FunctionInliner<'a> {
        FunctionInliner {
            library,
            sets: &model.header().opset_import,
            names: model.graph.names(),
            calls: Vec::new(),
            imports: Vec::new(),
            left: None,
            within: Vec::new(),
            outermost: String::new(),
            depth: 0,
            nodes: 0,
            bytes: 0,
        }
    }

    /// Copies a node of the model or of a body, and inlines it if it is a call.
    pub(super) fn node(
        &mut self,
        mut node: NodeProto,
        mut body: Option<&mut FunctionBody>,
        written: &mut Vec<NodeProto>,
    ) -> Result<(), InlineStop> {
        if let Some(body) = body.as_deref_mut() {
            self.rename(&mut node, body);
        }
        for mut attribute in std::mem::take(&mut node.attribute) {
            let wanted = attribute.ref_attr_name.as_deref().unwrap_or_default();
            // A value from the call already uses the caller's names.
            let mut whole = false;
            if let Some(body) = body.as_deref().filter(|_| !wanted.is_empty()) {
                let Some((value, is_set)) = body.attribute(wanted) else {
                    continue;
                };
                let name = attribute.name;
                attribute = AttributeProto {
                    name,
                    ..value.clone()
                };
                whole = is_set;
            }
            let graphs = attribute.g.iter_mut().chain(&mut attribute.graphs);
            for graph in graphs.filter(|_| !whole) {
                self.graph(graph, body.as_deref_mut())?;
            }
            node.attribute.push(attribute);
        }
        if body.is_some() {
            self.count(node.encoded_len())?;
        }
        match (self.library.called(&node), body) {
            (Some(at), _) => self.call(at, node, written),
            (None, Some(body)) => self.in_version(node, body, written),
            (None, None) => {
                written.push(node);
                Ok(())
            }
        }
    }

    fn graph(
        &mut self,
        graph: &mut GraphProto,
        mut body: Option<&mut FunctionBody>,
    ) -> Result<(), InlineStop> {
        self.depth += 1;
        if let Some(body) = body.as_deref_mut() {
            let mut names: Vec<&mut Option<String>> = Vec::new();
            names.extend(graph.input.iter_mut().map(|v| &mut v.name));
            names.extend(graph.initializer.iter_mut().map(|t| &mut t.name));
            let sparse = graph.sparse_initializer.iter_mut();
            names.extend(sparse.filter_map(|s| Some(&mut s.values.as_mut()?.name)));
            let output = graph.node.iter().flat_map(|node| &node.output);
            let known = names.iter().filter_map(|name| name.as_ref()).chain(output);
            let fresh = known.filter(|name| !name.is_empty()).map(|name| {
                let fresh = self.names.fresh(&format!("{}/{name}", body.title));
                (name.clone(), fresh)
            });
            let fresh = fresh.collect();
            body.names.push(fresh);
            for name in names.into_iter().flatten() {
                *name = self.name(name, body);
            }
            // Types inside the graph are inferred again.
            graph.value_info.clear();
        }
        let mut nodes = Vec::with_capacity(graph.node.len());
        for node in std::mem::take(&mut graph.node) {
            self.node(node, body.as_deref_mut(), &mut nodes)?;
        }
        graph.node = nodes;
        if let Some(body) = body {
            for name in graph.output.iter_mut().filter_map(|v| v.name.as_mut()) {
                *name = self.name(name, body);
            }
            body.names.pop();
        }
        self.depth -= 1;
        Ok(())
    }

    /// Inlines a call, or keeps it if its body can't be inlined.
    fn call(
        &mut self,
        at: usize,
        call: NodeProto,
        written: &mut Vec<NodeProto>,
    ) -> Result<(), InlineStop> {
        let (depth, within) = (self.depth, self.within.len());
        let (length, calls, imports) = (written.len(), self.calls.len(), self.imports.len());
        let ended = self.body(at, &call, written);
        self.depth = depth;
        self.within.truncate(within);
        let Err(InlineStop::KeepCall(reason)) = ended else {
            return ended;
        };
        written.truncate(length);
        self.calls.truncate(calls);
        self.imports.truncate(imports);
        self.left
            .get_or_insert_with(|| PrepareError::FunctionNotInlined {
                node: call.title().to_owned(),
                function: named(&self.library.functions[at]),
                reason,
            });
        written.push(call);
        Ok(())
    }

    fn body(
        &mut self,
        at: usize,
        call: &NodeProto,
        written: &mut Vec<NodeProto>,
    ) -> Result<(), InlineStop> {
        let function = &self.library.functions[at];
        let fits = |kind: &str, provided: usize, known: usize| match provided <= known {
            true => Ok(()),
            false => Err(self.refused(
                call,
                at,
                format!("has {known} {kind} and is called with {provided}"),
            )),
        };
        fits("inputs", call.input.len(), function.input.len())?;
        fits("outputs", call.output.len(), function.output.len())?;
        if self.within.contains(&at) {
            return Err(self.refused(call, at, "calls itself".into()));
        }
        if self.within.is_empty() {
            self.outermost = call.title().to_owned();
        }
        self.within.push(at);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let reason = format!("nests more than {MAX_DEPTH} functions and graphs");
            return Err(self.too_much(reason));
        }
        self.calls.push(at);
        let title = match call.title() {
            "" => function.name.as_deref().unwrap_or_default(),
            title => title,
        };
        let inputs = function.input.iter().enumerate();
        let provided =
            inputs.map(|(i, name)| (name.clone(), call.input_at(i).unwrap_or("").into()));
        let mut names: HashMap<String, String> = provided.collect();
        // An output that is also an input, or repeats an earlier output, has a name already.
        let mut copied = Vec::new();
        for (name, wanted) in function.output.iter().zip(&call.output) {
            match names.get(name) {
                _ if wanted.is_empty() => {}
                Some(_) => copied.push((name, wanted)),
                None => {
                    names.insert(name.clone(), wanted.clone());
                }
            }
        }
        let mut body = FunctionBody {
            function,
            call,
            title,
            names: vec![names],
        };
        for node in &function.node {
            self.node(node.clone(), Some(&mut body), written)?;
        }
        for (name, wanted) in copied {
            let name = self.name(name, &mut body);
            let copy = self.names.fresh(&format!("{title}/{wanted}"));
            written.push(NodeProto::new("Identity", &copy, &[&name], &[wanted]));
        }
        Ok(())
    }

    /// Gives a node of a body and its values their outer names.
    fn rename(&mut self, node: &mut NodeProto, body: &mut FunctionBody) {
        let own = node.title().to_owned();
        for name in node.input.iter_mut().chain(&mut node.output) {
            *name = self.name(name, body);
        }
        // An unnamed node is identified by its first output.
        let output = node.output.first().filter(|output| {
            let inside = output.strip_prefix(body.title);
            inside.is_some_and(|inside| inside.starts_with('/'))
        });
        node.name = Some(match (node.name.as_deref(), output) {
            (None | Some(""), Some(output)) => output.clone(),
            _ => self.names.fresh(&format!("{}/{own}", body.title)),
        });
    }

    /// The outer name of a name in a body.
    fn name(&mut self, name: &str, body: &mut FunctionBody) -> String {
        if name.is_empty() {
            return String::new();
        }
        let known = body.names.iter().rev().find_map(|names| names.get(name));
        if let Some(known) = known {
            return known.clone();
        }
        let fresh = self.names.fresh(&format!("{}/{name}", body.title));
        body.names[0].insert(name.to_owned(), fresh.clone());
        fresh
    }

    /// Converts an operator of a body from the function's opset to the model's.
    fn in_version(
        &mut self,
        node: NodeProto,
        body: &FunctionBody,
        written: &mut Vec<NodeProto>,
    ) -> Result<(), InlineStop> {
        let domain = domain_named(node.domain.as_deref());
        let here = version_of(domain, self.sets).or_else(|| version_of(domain, &self.imports));
        let (from, to) = match (version_of(domain, &body.function.opset_import), here) {
            (Some(from), Some(to)) if from != to => (from, to),
            (Some(from), None) => {
                self.imports.push(OperatorSetIdProto {
                    domain: Some(domain.to_owned()),
                    version: Some(from),
                });
                written.push(node);
                return Ok(());
            }
            _ => {
                written.push(node);
                return Ok(());
            }
        };
        let (title, operator) = (node.title().to_owned(), node.operator());
        let apart = |reason: &str| {
            InlineStop::KeepCall(format!(
                "its node {title} ({operator}) uses opset {from}, but the model uses opset {to}, \
                 {reason}"
            ))
        };
        if !domain.is_empty() {
            return Err(apart("where it may have another meaning"));
        }
        let typed = Node::from_proto(node.clone());
        let mut write = |raised: Vec<Node>| written.extend(raised.iter().map(Node::to_proto));
        if from < to && to >= OPSET {
            let raised = opset::raise_node(typed, from, to, &mut self.names);
            let raised =
                raised.map_err(|reason| apart(&format!("to which it can't be raised: {reason}")));
            write(raised?);
            return Ok(());
        }
        // A node that raising doesn't change means the same in both opsets.
        let (older, newer) = (from.min(to), from.max(to).max(OPSET));
        match opset::raise_node(typed.clone(), older, newer, &mut self.names) {
            Ok(raised) if raised == [typed] => write(raised),
            _ => return Err(apart("where it has another meaning")),
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), InlineStop> {
        self.nodes += 1;
        self.bytes += bytes;
        if self.nodes <= MAX_NODES && self.bytes <= LIMITS.bytes {
            return Ok(());
        }
        Err(self.too_much(format!("expands to more than {MAX_NODES} nodes or 2 GiB")))
    }

    fn too_much(&self, reason: String) -> InlineStop {
        let at = self.within.first().copied().unwrap_or_default();
        InlineStop::Refused(PrepareError::Function {
            node: self.outermost.clone(),
            function: named(&self.library.functions[at]),
            reason,
        })
    }

    fn refused(&self, call: &NodeProto, at: usize, reason: String) -> InlineStop {
        InlineStop::Refused(PrepareError::Function {
            node: call.title().to_owned(),
            function: named(&self.library.functions[at]),
            reason,
        })
    }
}
