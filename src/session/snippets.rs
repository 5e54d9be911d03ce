//! Snippets of code for the opened model.

use std::collections::HashSet;

use super::demo::tables;
use super::{Error, Session};
use crate::snippets::{self, SnippetKind, SnippetModel};

impl Session {
    /// A snippet of code for this model.
    pub fn snippet(&self, kind: SnippetKind) -> Result<String, Error> {
        let card = self.summary();
        let inputs = self.input_specs();
        let tensors: HashSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let others = card.inputs.iter().map(|input| input.name.clone());
        let others = others.filter(|name| !tensors.contains(name.as_str()));
        let graph = self.opened.header.graph.as_ref();
        let model = SnippetModel {
            file: card.name.clone(),
            data_files: card
                .data_files
                .iter()
                .map(|file| file.name.clone())
                .collect(),
            others: others.collect(),
            tables: graph.map(tables).unwrap_or_default(),
            picture: card
                .pictures
                .as_ref()
                .map(|proposal| proposal.image.clone()),
            inputs,
        };
        Ok(snippets::snippet(&model, kind)?)
    }
}
