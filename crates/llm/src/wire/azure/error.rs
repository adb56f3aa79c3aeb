//! What failures at Azure are, where they are not what they are at OpenAI.

use crate::model::Model;
use crate::wire::responses::error::Manner;

/// Azure's manner: it has no tiers of service that a request could name.
#[derive(Debug)]
pub(super) struct AzureErrors;

impl Manner for AzureErrors {
    fn price_factor(&self, _: &Model, _: Option<&str>) -> f64 {
        1.0
    }
}
