//! Azure's error responses, where they differ from OpenAI's.

use crate::model::Model;
use crate::wire::responses::error::Manner;

/// Azure's error handling: it has no service tiers that a request could select.
#[derive(Debug)]
pub(super) struct AzureErrors;

impl Manner for AzureErrors {
    fn price_factor(&self, _: &Model, _: Option<&str>) -> f64 {
        1.0
    }
}
