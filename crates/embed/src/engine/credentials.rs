//! Which credentials a run may use, in one place: profiles, and what stands beside them.

use std::sync::Arc;

use pinch_coding_agent::auth::{AuthError, RequestAuth};
use pinch_coding_agent::models::RegistryAuth;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;

use crate::profiles::ProfileId;
use crate::run::decide::Mark;
use crate::run::reason::FailoverReason;

pub(crate) struct Credentials { pub(crate) plain: Arc<RegistryAuth> }
impl Credentials {
    pub(crate) fn order(&self, _p: &ProviderId, _c: Option<&ProfileId>) -> Vec<ProfileId> { Vec::new() }
    pub(crate) fn is_usable(&self, _id: &ProfileId, _m: &Model) -> bool { true }
    pub(crate) fn cooldown_reason(&self, _p: &ProviderId, _m: &Model) -> Option<FailoverReason> { None }
    pub(crate) fn is_configured(&self, p: &ProviderId) -> bool { self.plain.is_configured(p) }
    pub(crate) async fn auth(&self, _id: Option<&ProfileId>, _m: &Model) -> Result<Arc<dyn RequestAuth>, AuthError> { Ok(self.plain.clone()) }
    pub(crate) async fn mark(&self, _mark: &Mark, _m: &Model) -> Result<(), std::io::Error> { Ok(()) }
}
