//! Chooses the model that writes a summary.

use std::sync::Arc;

use pinch_llm::model::Model;

use crate::config::compaction::SummaryModelSetting;
use crate::models::select::ModelRef;

/// Returns the model that writes summaries for a run with model `run`, or `None` for `run` itself. Summaries need no deep reasoning, so a
/// model at no more than half the price will do if its window is as large.
///
/// `usable`: models with credentials.
pub fn choose(setting: &SummaryModelSetting, run: &Model, usable: &[Arc<Model>]) -> Option<Arc<Model>> {
    let is_run = |model: &Model| model.provider == run.provider && model.id == run.id;
    let chosen = match setting {
        SummaryModelSetting::Run => None,
        SummaryModelSetting::Named(name) => {
            let wanted = ModelRef::parse(name, run.provider.as_str())?;
            let is_it = |model: &&Arc<Model>| ModelRef::new(model.provider.as_str(), model.id.as_str()) == wanted;
            let found = usable.iter().find(is_it).cloned();
            if found.is_none() {
                tracing::warn!(
                    model = name,
                    "cannot use the model configured for summaries; using the model of the run"
                );
            }
            found
        }
        SummaryModelSetting::Auto => {
            let price = run.rates.input;
            let is_cheaper = |model: &&Arc<Model>| {
                model.provider == run.provider
                    && !is_deprecated(model)
                    && model.context_window >= run.context_window
                    && model.rates.input > 0.0
                    && model.rates.input <= price / 2.0
            };
            let by_price = |a: &&Arc<Model>, b: &&Arc<Model>| {
                a.rates.input.total_cmp(&b.rates.input).then_with(|| a.id.as_str().cmp(b.id.as_str()))
            };
            usable.iter().filter(is_cheaper).min_by(by_price).cloned()
        }
    };
    chosen.filter(|model| !is_run(model))
}

fn is_deprecated(model: &Model) -> bool {
    model.extra.get("deprecated").is_some_and(|value| *value == true)
        || model.extra.get("status").is_some_and(|value| *value == "deprecated")
}
