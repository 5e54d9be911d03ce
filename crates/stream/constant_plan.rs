//! The places of all constants of a result, and the recipes that make them.

use std::collections::{BTreeMap, HashMap};

use octet_onnx::schema::{StringStringEntryProto, TensorProto};
use octet_onnx::{Stretch, stretch_of};
use octet_quantize::recipe::{PlannedRecipe, RecipeKind};

use crate::data_placement::DataPlacement;
use crate::{OutputFiles, StreamError};

/// A recipe, where its source lies, and where its outputs go: file and offset.
pub(crate) struct Work {
    pub(crate) planned: PlannedRecipe,
    pub(crate) source: Option<Stretch>,
    pub(crate) places: Vec<(usize, u64)>,
}

impl Work {
    /// True if the constant stays as it is.
    pub(crate) fn is_copy(&self) -> bool {
        self.planned.kind == RecipeKind::Copy
    }
}

/// The places of all external constants.
pub(crate) struct ConstantPlan {
    pub(crate) placement: DataPlacement,
    pub(crate) work: Vec<Work>,
    /// Recipe and output by the name of a computed constant.
    computed: HashMap<String, (usize, usize)>,
    /// Index in `work` of constants that are copied. Those over one stretch are one.
    copied: BTreeMap<Stretch, usize>,
}

impl ConstantPlan {
    pub(crate) fn new(
        recipes: Vec<PlannedRecipe>,
        output: OutputFiles,
    ) -> Result<ConstantPlan, StreamError> {
        let mut plan = ConstantPlan {
            placement: DataPlacement::new(output),
            work: Vec::new(),
            computed: HashMap::new(),
            copied: BTreeMap::new(),
        };
        for planned in recipes {
            for (output, name) in planned.outputs.iter().enumerate() {
                plan.computed
                    .insert(name.clone(), (plan.work.len(), output));
            }
            for (name, output, _) in &planned.views {
                plan.computed
                    .insert(name.clone(), (plan.work.len(), *output));
            }
            plan.add(planned)?;
        }
        Ok(plan)
    }

    fn add(&mut self, planned: PlannedRecipe) -> Result<usize, StreamError> {
        let source = stretch_of(&planned.source)?;
        let recipe = planned.start()?;
        let outputs = recipe.outputs().iter();
        let places = outputs
            .map(|output| self.placement.place(output.bytes))
            .collect();
        self.work.push(Work {
            planned,
            source,
            places,
        });
        Ok(self.work.len() - 1)
    }

    /// Gives an external tensor its place in the result.
    pub(crate) fn place(&mut self, tensor: &mut TensorProto) -> Result<(), StreamError> {
        if !tensor.is_external() {
            return Ok(());
        }
        let name = tensor.name.as_deref().unwrap_or_default();
        let (work, output) = match self.computed.get(name) {
            Some(&place) if tensor.external_data.is_empty() => place,
            _ => {
                let Some(stretch) = stretch_of(tensor)? else {
                    return Ok(());
                };
                let known = self.copied.get(&stretch).copied();
                let work = match known {
                    Some(work) => work,
                    None => self.add(PlannedRecipe::copy(tensor))?,
                };
                self.copied.insert(stretch, work);
                (work, 0)
            }
        };
        let (file, offset) = self.work[work].places[output];
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: Some(key.to_owned()),
            value: Some(value),
        };
        tensor.external_data = vec![
            entry("location", self.placement.files[file].name.clone()),
            entry("offset", offset.to_string()),
            entry("length", tensor.stored_bytes()?.to_string()),
        ];
        Ok(())
    }
}
