//! Snippets of code for the opened model.

use std::collections::HashSet;

use super::demo::tables;
use super::{Error, Session};
use crate::samples::ImageSettings;
use crate::snippets::{self, SnippetKind, SnippetModel};

impl Session {
    /// A snippet of code for this model.
    pub fn snippet(&self, kind: SnippetKind) -> Result<String, Error> {
        Ok(snippets::snippet(&self.snippet_model(), kind)?)
    }

    /// A snippet of code for a model that was made from this one: a file of this name, without files
    /// of external data. `image` is the preprocessing in place of the proposed one.
    pub fn snippet_for(
        &self,
        kind: SnippetKind,
        file: &str,
        image: Option<ImageSettings>,
    ) -> Result<String, Error> {
        let model = self.snippet_model();
        let picture = model.picture.map(|proposed| image.unwrap_or(proposed));
        let model = SnippetModel {
            file: file.to_owned(),
            data_files: Vec::new(),
            picture,
            ..model
        };
        Ok(snippets::snippet(&model, kind)?)
    }

    fn snippet_model(&self) -> SnippetModel {
        let card = self.summary();
        let inputs = self.input_specs();
        let tensors: HashSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let others = card.inputs.iter().map(|input| input.name.clone());
        let others = others.filter(|name| !tensors.contains(name.as_str()));
        let graph = self.opened.header.graph.as_ref();
        SnippetModel {
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
        }
    }
}
