//! Credentials that a machine has by itself: roles and application defaults of clouds.

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

/// Finds credentials for requests that bring none. Implementations keep what they found until it is about to expire.
pub trait AmbientCredentials: Send + Sync {
    /// Whether a request is to be given credentials: it brings none of its own.
    fn is_wanted(&self, request: &Request) -> bool {
        is_wanted(request)
    }

    /// The credentials for a request; `None` when there are none here, and the wire format says what is missing. Dropping the future gives up.
    ///
    /// # Errors
    /// When there are credentials and they cannot be used; the text names the file or server and what to do.
    fn resolve<'a>(
        &'a self,
        request: &'a Request,
        client: &'a HttpClient,
    ) -> BoxFuture<'a, Result<Option<Auth>, LlmError>>;
}

/// The credentials that go with a wire format of a cloud.
pub(crate) fn ambient(api: &str) -> Option<Arc<dyn AmbientCredentials>> {
    match api {
        #[cfg(feature = "bedrock")]
        crate::ids::ApiId::BEDROCK_CONVERSE_STREAM => Some(Arc::new(aws::AwsChain::new())),
        #[cfg(feature = "vertex")]
        crate::ids::ApiId::GOOGLE_VERTEX => Some(Arc::new(google::GoogleCredentials::default())),
        _ => None,
    }
}

/// Whether a request brings no credentials of its own.
fn is_wanted(request: &Request) -> bool {
    let auth = &request.auth;
    let has_key = auth.key.as_ref().is_some_and(|key| !keys::is_placeholder(key));
    !has_key && !auth.keyless && !headers::brings_authorisation(request)
}
