//! Options of the model calls of a run.

use pinch_llm::model::Model;
use pinch_llm::model::dialect::AffinityFormat;
use pinch_llm::request::CallOptions;
use serde_json::{Value, json};

use crate::run::scope::RunScope;

/// Wire formats in which the configuration can add members to the request body.
const TAKES_MEMBERS: [&str; 5] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "azure-openai-responses",
    "openai-codex-responses",
];

/// Returns the options for a model: the parameters of the request and the configuration, and what the model's server needs.
pub(super) fn of_run(scope: &RunScope, model: &Model) -> CallOptions {
    let mut options = CallOptions::default().with_timeouts(scope.timeouts_for(model));
    let params = scope.stream_params(model);
    options.temperature = params.temperature;
    options.max_tokens = params.max_tokens;
    options.cache_retention = params.cache_retention;
    if !params.extra.is_empty() && !TAKES_MEMBERS.contains(&model.api.as_str()) {
        let (api, model) = (model.api.as_str(), model.id.as_str());
        tracing::warn!(api, model, "additional parameters of the model have no effect in its wire format");
    }
    options.native = params.native_options(model.id.as_str());
    let mut members = params.extra;
    if model.dialect.wire.num_ctx
        && model.context_window > 0
        && let Value::Object(of_server) = members.entry("options").or_insert_with(|| json!({}))
    {
        of_server.entry("num_ctx").or_insert_with(|| model.context_window.into());
    }
    options.sampling_params = Some(members).filter(|members| !members.is_empty());
    options.headers = attribution(model);
    options
}

/// Returns the headers by which OpenRouter attributes requests to an application, unless the model has its own.
fn attribution(model: &Model) -> Vec<(String, Option<String>)> {
    let affinity = &model.dialect.wire.affinity;
    if !(affinity.send && affinity.format == AffinityFormat::OpenRouter) {
        return Vec::new();
    }
    let own = [("HTTP-Referer", env!("CARGO_PKG_REPOSITORY")), ("X-Title", "pinch")];
    let is_free = |name: &str| !model.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    own.into_iter()
        .filter(|(name, _)| is_free(name))
        .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
        .collect()
}
