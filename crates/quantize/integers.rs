//! Plans the integers of constants in a graph that is rewritten, each once.

use super::integer_format::IntegerFormat;
use super::quantized_names::QuantizedNames;
use super::recipe::{IntegersPlan, PlannedRecipe, RecipeKind};
use super::rewrite::{ConstantWeight, NotQuantized, Rewriter};

impl Rewriter<'_> {
    /// Makes three unused names from `name`.
    pub(super) fn fresh_names(&mut self, name: &str) -> QuantizedNames {
        QuantizedNames {
            integers: self.fresh(&format!("{name}_quantized")),
            scale: self.fresh(&format!("{name}_scale")),
            zero_point: self.fresh(&format!("{name}_zero_point")),
        }
    }

    /// Runs `make` for a tensor in a form once; later calls return the same names.
    pub(super) fn shared(
        &mut self,
        name: &str,
        form: &str,
        make: impl FnOnce(&mut Self) -> Result<QuantizedNames, NotQuantized>,
    ) -> Result<QuantizedNames, NotQuantized> {
        let key = (name.to_owned(), form.to_owned());
        if let Some(names) = self.shared_constants.get(&key) {
            return Ok(names.clone());
        }
        let names = make(self)?;
        self.shared_constants.insert(key, names.clone());
        Ok(names)
    }

    /// Writes the integers of a weight in its original layout; `tag` identifies the form.
    pub(super) fn in_original_layout(
        &mut self,
        weight: &ConstantWeight,
        tag: &str,
        form: IntegerFormat,
    ) -> Result<QuantizedNames, NotQuantized> {
        self.shared(weight.name, tag, |graph| {
            graph.plan_integers(weight, IntegersPlan::in_order(form, &weight.shape))
        })
    }

    /// Adds integers, scales and zero points of a weight.
    pub(super) fn plan_integers(
        &mut self,
        weight: &ConstantWeight,
        plan: IntegersPlan,
    ) -> Result<QuantizedNames, NotQuantized> {
        let names = self.fresh_names(weight.name);
        let outputs = [&names.integers, &names.scale, &names.zero_point];
        self.planned(PlannedRecipe {
            source: weight.tensor.clone(),
            kind: RecipeKind::Integers(plan),
            outputs: outputs.map(String::clone).to_vec(),
            views: Vec::new(),
        })?;
        Ok(names)
    }
}
