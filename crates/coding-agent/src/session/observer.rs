//! Letting extensions observe requests and responses.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use pinch_llm::error::LlmError;
use pinch_llm::model::Model;
use pinch_llm::request::CallObserver;
use serde_json::Value;

use crate::extension::host::header_texts;
use crate::extension::{Extensions, Notification, Point};

/// Passes requests to the owner's observer first, then to the extensions.
struct RequestObserver {
    owner: Option<Arc<dyn CallObserver>>,
    extensions: Extensions,
}

/// Returns whether an extension observes requests.
pub(super) fn is_wanted(extensions: &Extensions) -> bool {
    let points = [Point::BeforeProviderRequest, Point::BeforeProviderHeaders, Point::AfterProviderResponse];
    points.into_iter().any(|point| extensions.wants(point))
}

/// Returns the observer of a session's requests, or the owner's if no extension observes them.
pub(super) fn observer(owner: Option<Arc<dyn CallObserver>>, extensions: &Extensions) -> Option<Arc<dyn CallObserver>> {
    if !is_wanted(extensions) {
        return owner;
    }
    Some(Arc::new(RequestObserver { owner, extensions: extensions.clone() }))
}

impl CallObserver for RequestObserver {
    fn on_payload<'a>(&'a self, body: &'a Value, model: &'a Model) -> BoxFuture<'a, Result<Option<Value>, LlmError>> {
        Box::pin(async move {
            let owned = match &self.owner {
                Some(owner) => owner.on_payload(body, model).await?,
                None => None,
            };
            let changed = self.extensions.before_request(owned.as_ref().unwrap_or(body), model).await;
            Ok(changed.or(owned))
        })
    }

    fn on_headers<'a>(&'a self, headers: &'a mut HeaderMap, model: &'a Model) -> BoxFuture<'a, Result<(), LlmError>> {
        Box::pin(async move {
            if let Some(owner) = &self.owner {
                owner.on_headers(headers, model).await?;
            }
            self.extensions.before_headers(headers, model).await;
            Ok(())
        })
    }

    fn on_response<'a>(
        &'a self,
        status: StatusCode,
        headers: &'a HeaderMap,
        model: &'a Model,
    ) -> BoxFuture<'a, Result<(), LlmError>> {
        Box::pin(async move {
            if let Some(owner) = &self.owner {
                owner.on_response(status, headers, model).await?;
            }
            if self.extensions.wants(Point::AfterProviderResponse) {
                let headers = header_texts(headers);
                self.extensions.notify(Notification::Response { status: status.as_u16(), headers: &headers }).await;
            }
            Ok(())
        })
    }
}
