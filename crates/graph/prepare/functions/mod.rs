//! Inlines calls of the functions in a model (`ModelProto.functions`), in subgraphs too.
//! Quantization and engines work on operators only.
//!
//! ONNX Runtime does the same when it loads a model. A function never replaces an ONNX operator of
//! its name, nor an ONNX Runtime operator that another pass decomposes. Operators of a body are
//! converted to the model's opset. A call that can't be inlined without changing its meaning stays,
//! with the reason, and so does its function. A function whose calls are all inlined is removed.

mod inliner;

use std::collections::{BTreeMap, HashMap};

use self::inliner::{FunctionInliner, InlineStop};
use super::{PrepareError, decompose};
use crate::{Model, Node, domain_named};
use octet_onnx::schema::{FunctionProto, NodeProto};

/// Limit on the functions that the note names.
const MAX_NAMED: usize = 5;

/// Result of inlining a model's functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Functions {
    /// Number of inlined calls by function.
    calls: BTreeMap<String, usize>,
    /// The reason of the first call that stays.
    left: Option<PrepareError>,
}

impl Functions {
    /// Inlines all calls that allow it. On failure the model stays as it was.
    pub fn inline(model: &mut Model) -> Result<Functions, PrepareError> {
        let mut written = Functions::default();
        if model.header().functions.is_empty() {
            return Ok(written);
        }
        let functions = model.header().functions.clone();
        let library = Library::new(&functions)?;
        let mut inliner = FunctionInliner::new(&library, model);
        let mut nodes = Vec::with_capacity(model.graph.nodes().len());
        for node in model.graph.nodes() {
            match inliner.node(node.to_proto(), None, &mut nodes) {
                Ok(()) => {}
                Err(InlineStop::Refused(error)) => return Err(error),
                // Occurs only within a body, where its call handles it.
                Err(InlineStop::KeepCall(_)) => {}
            }
        }
        let (calls, imports) = (inliner.calls, inliner.imports);
        written.left = inliner.left;
        if calls.is_empty() {
            return Ok(written);
        }
        let mut count = vec![0; functions.len()];
        calls.iter().for_each(|&at| count[at] += 1);
        let needed = library.needed(&nodes, &count);
        // `set_nodes` applies the checks of a loaded graph to the inlined nodes.
        let nodes = nodes.into_iter().map(Node::from_proto);
        model.graph.set_nodes(nodes.collect())?;
        let header = model.header_mut();
        header.opset_import.extend(imports);
        let mut places = needed.iter();
        header.functions.retain(|_| places.next() == Some(&true));
        for (function, count) in functions.iter().zip(count).filter(|(_, count)| *count > 0) {
            written.calls.insert(named(function), count);
        }
        Ok(written)
    }

    /// One sentence on the inlined calls, and one on the first call that stays.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let count: usize = self.calls.values().sum();
        if count > 0 {
            let mut most: Vec<_> = self.calls.iter().collect();
            most.sort_by_key(|(_, count)| usize::MAX - **count);
            let named = most.iter().take(MAX_NAMED);
            let named: Vec<_> = named
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            let more = match most.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more functions"),
            };
            notes.push(format!(
                "{count} {} of the model's functions inlined: {}{more}",
                if count == 1 { "call" } else { "calls" },
                named.join(", ")
            ));
        }
        notes.extend(self.left.as_ref().map(PrepareError::to_string));
        notes
    }

    /// The reason why a call stays, if one does.
    pub fn remaining_call(&self) -> Option<&PrepareError> {
        self.left.as_ref()
    }
}

/// Identifier of a function: domain, name and overload.
fn named(function: &FunctionProto) -> String {
    key(&function.domain, &function.name, &function.overload)
}

fn key(domain: &Option<String>, name: &Option<String>, overload: &Option<String>) -> String {
    let domain = domain_named(domain.as_deref());
    let name = name.as_deref().unwrap_or_default();
    match overload.as_deref() {
        None | Some("") => format!("{domain}::{name}"),
        Some(overload) => format!("{domain}::{name}:{overload}"),
    }
}

/// A model's functions with their indices by identifier.
struct Library<'a> {
    functions: &'a [FunctionProto],
    places: HashMap<String, usize>,
}

impl<'a> Library<'a> {
    fn new(functions: &'a [FunctionProto]) -> Result<Library<'a>, PrepareError> {
        let mut places = HashMap::new();
        for (at, function) in functions.iter().enumerate() {
            if places.insert(named(function), at).is_some() {
                let function = named(function);
                return Err(PrepareError::DuplicateFunction { function });
            }
        }
        Ok(Library { functions, places })
    }

    /// Index of the function that a node calls.
    fn called(&self, node: &NodeProto) -> Option<usize> {
        if domain_named(node.domain.as_deref()).is_empty() || decompose::is_fused(&node.operator())
        {
            return None;
        }
        let key = key(&node.domain, &node.op_type, &node.overload);
        self.places.get(&key).copied()
    }

    /// Flags the functions that the model still needs: those without an inlined call, and all that
    /// these and the nodes call.
    fn needed(&self, nodes: &[NodeProto], written: &[usize]) -> Vec<bool> {
        let mut needed: Vec<bool> = written.iter().map(|&count| count == 0).collect();
        let mut open: Vec<&NodeProto> = nodes.iter().collect();
        for (function, _) in self
            .functions
            .iter()
            .zip(&needed)
            .filter(|(_, needed)| **needed)
        {
            open.extend(&function.node);
        }
        while let Some(node) = open.pop() {
            open.extend(node.subgraphs().flat_map(|graph| &graph.node));
            if let Some(at) = self.called(node)
                && !std::mem::replace(&mut needed[at], true)
            {
                open.extend(&self.functions[at].node);
            }
        }
        needed
    }
}
