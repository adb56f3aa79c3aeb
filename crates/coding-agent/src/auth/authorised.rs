//! A provider that obtains credentials before calling another provider.

use std::sync::Arc;

use futures::FutureExt;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;

use super::{AuthError, RequestAuth};

/// Adds credentials from a [`RequestAuth`] to every request and forwards it.
pub struct Authorised {
    inner: Arc<dyn Provider>,
    auth: Arc<dyn RequestAuth>,
}

impl Authorised {
    /// Wraps a provider.
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
        // Boxed, so that it is freed, with room for a whole request, before the answer streams.
        EventStream::new(&about, now, events.boxed().flatten_stream())
    }
}

fn to_llm_error(provider: &pinch_llm::ids::ProviderId, error: &AuthError) -> LlmError {
    let kind = match error {
        AuthError::Cancelled => LlmErrorKind::Aborted,
        // The network may recover soon.
        AuthError::Refresh { is_final: false, .. } => LlmErrorKind::Connect,
        // The other program may finish soon.
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
