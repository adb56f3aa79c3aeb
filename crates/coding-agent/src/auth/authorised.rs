//! A provider that fetches credentials before it asks another one.

use std::sync::Arc;

use futures::FutureExt;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;

use super::{AuthError, RequestAuth};

/// Gives every request the credentials of a [`RequestAuth`] and hands it on.
pub struct Authorised {
    inner: Arc<dyn Provider>,
    auth: Arc<dyn RequestAuth>,
}

impl Authorised {
    /// Puts credentials in front of a provider.
    pub fn new(inner: Arc<dyn Provider>, auth: Arc<dyn RequestAuth>) -> Self {
        Self { inner, auth }
    }
}

impl Provider for Authorised {
    fn stream(&self, mut request: Request, cancel: Cancel) -> EventStream {
        let (inner, auth) = (Arc::clone(&self.inner), Arc::clone(&self.auth));
        let (model, now) = (Arc::clone(&request.model), request.host.now_ms());
        let about = Arc::clone(&model);
        let events = async move {
            match auth.for_model(&model, &cancel).await {
                Ok(mut credentials) => {
                    if let Some(env) = credentials.env.take() {
                        request.host = request.host.with_env(env);
                    }
                    request.auth = credentials;
                    inner.stream(request, cancel)
                }
                Err(error) => EventStream::failed(&model, now, to_llm_error(&model.provider, &error)),
            }
        };
        EventStream::new(&about, now, events.flatten_stream())
    }
}

fn to_llm_error(provider: &pinch_llm::ids::ProviderId, error: &AuthError) -> LlmError {
    let kind = match error {
        AuthError::Cancelled => LlmErrorKind::Aborted,
        // The network may be back soon.
        AuthError::Refresh { is_final: false, .. } => LlmErrorKind::Connect,
        // The other program may be done soon.
        AuthError::Locked { .. } => LlmErrorKind::Connect,
        AuthError::Missing { .. }
        | AuthError::MissingForHeader { .. }
        | AuthError::Unresolved { .. }
        | AuthError::Expired { .. }
        | AuthError::Refresh { .. }
        | AuthError::Store { .. } => LlmErrorKind::Auth,
    };
    LlmError::new(provider.clone(), kind, error.to_string())
}
