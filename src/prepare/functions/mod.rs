//! Calls of the functions that a model brings along (`ModelProto.functions`) are written as the nodes of their bodies, in subgraphs, too:
//! what is quantized, and what any engine runs, are operators.
//!
//! As ONNX Runtime does it when it loads a model. An operator of ONNX's own is that operator, whatever function has its name, and so are
//! those of ONNX Runtime that are written out by a pass of their own. What a body says in an older operator set is raised to the model's.
//! A call that can't be written out without changing what it means stays, with the reason, as does the function; a function of which all
//! calls are written out is left out of the model.

mod body;

use std::collections::{BTreeMap, HashMap};

use self::body::{Stop, Writer};
use super::{PrepareError, fused};
use crate::graph::{Model, domain_named};
use crate::onnx::schema::{FunctionProto, NodeProto};

/// So many functions are named in the sentence on what was written out.
const NAMED: usize = 5;

/// What became of a model's functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Functions {
    /// How many calls of each were written out, by their names.
    calls: BTreeMap<String, usize>,
    /// Why a call stays, the first of them.
    left: Option<PrepareError>,
}

impl Functions {
    /// Writes out all calls that can be. Where it fails the model stays as it was.
    pub fn write_out(model: &mut Model) -> Result<Functions, PrepareError> {
        let mut written = Functions::default();
        if model.header().functions.is_empty() {
            return Ok(written);
        }
        let functions = model.header().functions.clone();
        let library = Library::of(&functions)?;
        let mut writer = Writer::new(&library, model);
        let mut nodes = Vec::with_capacity(model.graph.nodes.len());
        for node in &model.graph.nodes {
            match writer.node(node.clone(), None, &mut nodes) {
                Ok(()) => {}
                Err(Stop::Refused(error)) => return Err(error),
                // Only within a body, where its call catches it.
                Err(Stop::Left(_)) => {}
            }
        }
        let (calls, imports) = (writer.calls, writer.imports);
        written.left = writer.left;
        if calls.is_empty() {
            return Ok(written);
        }
        let mut count = vec![0; functions.len()];
        calls.iter().for_each(|&at| count[at] += 1);
        let needed = library.needed(&nodes, &count);
        // The door's checks are those of what was written, too.
        model.graph.set_nodes(nodes)?;
        let header = model.header_mut();
        header.opset_import.extend(imports);
        let mut places = needed.iter();
        header.functions.retain(|_| places.next() == Some(&true));
        for (function, count) in functions.iter().zip(count).filter(|(_, count)| *count > 0) {
            written.calls.insert(named(function), count);
        }
        Ok(written)
    }

    /// What was done, and why not all, in a sentence each.
    pub fn said(&self) -> Vec<String> {
        let mut said = Vec::new();
        let count: usize = self.calls.values().sum();
        if count > 0 {
            let mut most: Vec<_> = self.calls.iter().collect();
            most.sort_by_key(|(_, count)| usize::MAX - **count);
            let named = most.iter().take(NAMED);
            let named: Vec<_> = named
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            let more = match most.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more functions"),
            };
            said.push(format!(
                "{count} {} of the model's functions written out as the nodes they hold: {}{more}",
                if count == 1 { "call" } else { "calls" },
                named.join(", ")
            ));
        }
        said.extend(self.left.as_ref().map(PrepareError::to_string));
        said
    }

    /// Why a call stays, if one does.
    pub fn left(&self) -> Option<&PrepareError> {
        self.left.as_ref()
    }
}

/// What a function is called by: its domain, its name, and which of several of this name it is.
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

/// The functions of a model, to be found by who calls them.
struct Library<'a> {
    functions: &'a [FunctionProto],
    places: HashMap<String, usize>,
}

impl<'a> Library<'a> {
    fn of(functions: &'a [FunctionProto]) -> Result<Library<'a>, PrepareError> {
        let mut places = HashMap::new();
        for (at, function) in functions.iter().enumerate() {
            if places.insert(named(function), at).is_some() {
                let function = named(function);
                return Err(PrepareError::TwoFunctions { function });
            }
        }
        Ok(Library { functions, places })
    }

    /// The function that a node calls, by its place.
    fn called(&self, node: &NodeProto) -> Option<usize> {
        if domain_named(node.domain.as_deref()).is_empty() || fused::is_fused(&node.operator()) {
            return None;
        }
        let key = key(&node.domain, &node.op_type, &node.overload);
        self.places.get(&key).copied()
    }

    /// Which functions the model needs still: those of which no call was written out, and what these and the nodes call.
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
