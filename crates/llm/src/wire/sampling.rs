//! User-defined sampling members.

use serde_json::{Map, Value};

use crate::request::Request;

/// Merges sampling members into a body, last: those of the model, of its thinking level, and of the request. They override existing
/// members. `level` is the level's name, if it is one of ours.
pub(crate) fn put(body: &mut Map<String, Value>, request: &Request, level: Option<&str>) {
    let model = &request.model;
    let by_level = model.extra.get("samplingParamsByThinkingLevel").and_then(|by| by.get(level?)?.as_object());
    let of_model = model.sampling_params.as_deref();
    let of_request = request.options.sampling_params.as_ref();
    for params in [of_model, by_level, of_request].into_iter().flatten() {
        body.extend(params.clone());
    }
}
