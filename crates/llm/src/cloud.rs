//! Ambient credentials of a machine: roles and application defaults of clouds.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_http::HttpClient;

#[cfg(feature = "bedrock")]
pub mod aws;

#[cfg(feature = "vertex")]
pub mod google;

use crate::error::LlmError;
use crate::keys;
use crate::request::{Auth, Request};
use crate::wire::headers;

/// Finds credentials for requests without any. Implementations cache them until shortly before they expire.
pub trait AmbientCredentials: Send + Sync {
    /// Returns whether a request needs credentials because it has none.
    fn is_wanted(&self, request: &Request) -> bool {
        is_wanted(request)
    }

    /// Returns the credentials for a request, or `None` if there are none, in which case the wire format reports what is missing. Cancel by
    /// dropping the future.
    ///
    /// # Errors
    /// Returns an error if there are credentials that cannot be used; the text names the file or server and the remedy.
    fn resolve<'a>(
        &'a self,
        request: &'a Request,
        client: &'a HttpClient,
    ) -> BoxFuture<'a, Result<Option<Auth>, LlmError>>;
}

/// Returns the ambient credentials for a cloud's wire format.
pub(crate) fn ambient(api: &str) -> Option<Arc<dyn AmbientCredentials>> {
    match api {
        #[cfg(feature = "bedrock")]
        crate::ids::ApiId::BEDROCK_CONVERSE_STREAM => Some(Arc::new(aws::AwsChain::new())),
        #[cfg(feature = "vertex")]
        crate::ids::ApiId::GOOGLE_VERTEX => Some(Arc::new(google::GoogleCredentials::default())),
        _ => None,
    }
}

/// Returns whether a request has no credentials.
fn is_wanted(request: &Request) -> bool {
    let auth = &request.auth;
    let has_key = auth.key.as_ref().is_some_and(|key| !keys::is_placeholder(key));
    !has_key && !auth.keyless && !headers::brings_authorisation(request)
}
