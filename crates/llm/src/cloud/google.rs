//! Google's application default credentials: the file that `gcloud` writes, a service account's key, or the metadata server of a machine in
//! Google Cloud.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_http::HttpClient;
use pinch_stdx::secret::Secret;
use sha2::{Digest, Sha256};

mod file;

mod jwt;

mod token;

use super::AmbientCredentials;
use crate::error::{LlmError, LlmErrorKind};
use crate::request::{Auth, Request};
use crate::wire::vertex;
use file::TokenSource;
use token::AccessToken;

/// How long before its expiry a token is no longer used.
const MARGIN_MS: i64 = 225_000;
/// Time limit for getting a token.
const TIME: Duration = Duration::from_secs(30);
/// Maximum number of cached tokens.
const MAX_KEPT: usize = 64;

/// Finds Google's application default credentials, and caches their tokens until shortly before they expire.
#[derive(Default)]
pub struct GoogleCredentials {
    /// Tokens by fingerprint of the credentials: a new login gets a new token, and so does each tenant of a server.
    tokens: Mutex<HashMap<CredentialsDigest, Arc<TokenCell>>>,
}

type CredentialsDigest = [u8; 32];

/// Cache slot of one token. The holder of the lock fetches the next one; others wait for it.
type TokenCell = tokio::sync::Mutex<Option<AccessToken>>;

impl std::fmt::Debug for GoogleCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoogleCredentials").finish_non_exhaustive()
    }
}

impl AmbientCredentials for GoogleCredentials {
    fn resolve<'a>(
        &'a self,
        request: &'a Request,
        client: &'a HttpClient,
    ) -> BoxFuture<'a, Result<Option<Auth>, LlmError>> {
        Box::pin(async move {
            // Without a location there will be no request.
            if vertex::key(request).is_some() || vertex::place(request).is_err() {
                return Ok(None);
            }
            let Some(source) = TokenSource::find(request)? else { return Ok(None) };
            let bearer = format!("Bearer {}", self.token(&source, request, client).await?.reveal());
            let mut headers = vec![("authorization".to_owned(), Some(bearer))];
            if let Some(project) = source.quota_project() {
                headers.push(("x-goog-user-project".to_owned(), Some(project.to_owned())));
            }
            Ok(Some(Auth { headers, ..Auth::default() }))
        })
    }
}

impl GoogleCredentials {
    async fn token(&self, source: &TokenSource, request: &Request, client: &HttpClient) -> Result<Secret, LlmError> {
        let place = self.place(source.fingerprint());
        let getting = async {
            let mut kept = place.lock().await;
            let is_good = |token: &&AccessToken| request.host.now_ms() < token.expires_ms.saturating_sub(MARGIN_MS);
            if let Some(token) = kept.as_ref().filter(is_good) {
                return Ok(token.secret.clone());
            }
            let token = token::fetch(source, request, client).await?;
            Ok(kept.insert(token).secret.clone())
        };
        tokio::time::timeout(TIME, getting).await.unwrap_or_else(|_| {
            let text = format!("Getting a Google access token from {} timed out.", source.token_host());
            Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Timeout, text))
        })
    }

    fn place(&self, fingerprint: CredentialsDigest) -> Arc<TokenCell> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_KEPT && !tokens.contains_key(&fingerprint) {
            tokens.clear();
        }
        Arc::clone(tokens.entry(fingerprint).or_default())
    }
}

fn fingerprint(kind: &str, text: &[u8]) -> CredentialsDigest {
    Sha256::new().chain_update(kind).chain_update([0]).chain_update(text).finalize().into()
}

#[cfg(test)]
mod tests;
