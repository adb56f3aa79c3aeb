//! The candidates of one run, in the order in which they are tried.

use super::select::{Aliases, ModelRef, primary};
use crate::config::agents::ModelSetting;

/// Input of [`candidates`].
#[derive(Clone, Copy, Debug)]
pub struct CandidateRequest<'a> {
    /// The configured models.
    pub setting: &'a ModelSetting,
    /// The configured aliases.
    pub aliases: &'a Aliases,
    /// The requested model; `None`: the configured one.
    pub requested: Option<&'a ModelRef>,
    /// Fallbacks that replace the configured ones, even if empty.
    pub fallbacks_override: Option<&'a [String]>,
}

/// Returns the candidates: the requested model, the fallbacks, the configured model. If the requested model is of another provider than the
/// configured one, the configured fallbacks only apply if they contain it.
pub fn candidates(request: &CandidateRequest<'_>) -> Vec<ModelRef> {
    let resolve = |list: &[String]| list.iter().filter_map(|text| request.aliases.resolve(text)).collect::<Vec<_>>();
    let primary = primary(request.setting.primary.as_deref(), request.aliases);
    let requested = request.requested.unwrap_or(&primary).clone();
    let mut list = vec![requested.clone()];
    match request.fallbacks_override {
        Some(fallbacks) => list.extend(resolve(fallbacks)),
        None => {
            let fallbacks = resolve(&request.setting.fallbacks);
            if requested.provider == primary.provider || fallbacks.contains(&requested) {
                list.extend(fallbacks);
            }
            list.push(primary);
        }
    }
    let mut unique = Vec::with_capacity(list.len());
    for candidate in list {
        if !unique.contains(&candidate) {
            unique.push(candidate);
        }
    }
    unique
}
