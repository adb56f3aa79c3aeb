//! AWS credentials, looked up in the same order as Amazon's own tools.
//!
//! Key variables, unless a profile is named; the profile in the user's files (static keys, a role to assume, a web identity, a command, a
//! login of `aws sso`); a web identity named by the environment; the container's credentials; the machine's own. Fetched credentials are
//! cached until five minutes before they expire, and fetched by one call at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use pinch_http::HttpClient;
use pinch_stdx::secret::Secret;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex as AsyncMutex;

mod files;

mod remote;

mod profile;

use super::AmbientCredentials;
use crate::error::{LlmError, LlmErrorKind};
use crate::request::{Auth, AwsCredentials, AwsKeys, Request};
use crate::wire::bedrock::{endpoint, sign};
use files::ProfileFiles;

/// How long before their expiry credentials are refreshed.
const MARGIN_MS: i64 = 5 * 60 * 1_000;
/// How long credentials without an expiry are cached.
const UNKNOWN_LIFETIME_MS: i64 = 60 * 60 * 1_000;
/// How long the absence of credentials is cached, so that concurrent calls do not repeat the lookup.
const FAILURE_MS: i64 = 2_000;
/// Number of cached chains; if more are needed, probably every tenant has its own.
const MAX_CHAINS: usize = 256;

/// Finds AWS credentials in the environment, the user's files, the container or the machine.
#[derive(Default)]
pub struct AwsChain {
    kept: Mutex<HashMap<[u8; 32], CredentialsCell>>,
}

type CredentialsCell = Arc<AsyncMutex<Option<CachedCredentials>>>;

/// The last result of a chain.
struct CachedCredentials {
    found: Result<Option<Fetched>, LlmError>,
    /// When to look again, in Unix milliseconds.
    until: i64,
}

/// Credentials as found.
#[derive(Clone, Debug)]
struct Fetched {
    keys: AwsKeys,
    lasts: Lasts,
}

/// How long credentials are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasts {
    /// They are in a file or variable: reading them again is cheap and notices changes.
    ReadAgain,
    /// Until this time, in Unix milliseconds; `None` if not reported.
    Until(Option<i64>),
}

/// Context of one lookup.
#[derive(Clone, Copy)]
struct Cx<'a> {
    request: &'a Request,
    client: &'a HttpClient,
    files: &'a ProfileFiles,
}

impl AwsChain {
    /// Creates a chain with an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    async fn find(&self, request: &Request, client: &HttpClient) -> Result<Option<Auth>, LlmError> {
        let env = request.host.env();
        let profile = endpoint::profile(request);
        let signs = !sign::skips_auth(request) && sign::bearer(request).is_none();
        if !signs && profile.is_none() {
            return Ok(None);
        }
        if profile.is_none()
            && let Some(keys) = env_keys(env)
        {
            return Ok(Some(auth(Some(keys), None)));
        }
        let files = ProfileFiles::read(env, request.host.home()).await.map_err(|text| failed(request, text))?;
        let region = files.value(profile.unwrap_or("default"), "region").map(str::to_owned);
        if !signs {
            return Ok(Some(auth(None, region)));
        }
        let found = self.kept_or_fetched(Cx { request, client, files: &files }).await?;
        Ok(found.map(|found| auth(Some(found.keys), region)))
    }

    async fn kept_or_fetched(&self, cx: Cx<'_>) -> Result<Option<Fetched>, LlmError> {
        let slot = self.slot(chain_name(cx.request));
        let mut kept = slot.lock().await;
        let now = cx.request.host.now_ms();
        if let Some(known) = kept.as_ref().filter(|known| now < known.until) {
            return known.found.clone();
        }
        let found = fetch(cx).await;
        let until = match &found {
            Ok(Some(Fetched { lasts: Lasts::ReadAgain, .. })) => now,
            Ok(Some(Fetched { lasts: Lasts::Until(end), .. })) => end.unwrap_or(now + UNKNOWN_LIFETIME_MS) - MARGIN_MS,
            Ok(None) => now + FAILURE_MS,
            Err(error) => {
                // Credentials that are about to expire are still used if newer ones are unavailable.
                let old = kept.as_ref().and_then(|known| known.found.as_ref().ok()?.as_ref());
                if let Some(old) = old.filter(|old| matches!(old.lasts, Lasts::Until(Some(end)) if now < end)) {
                    tracing::warn!(%error, "cannot refresh AWS credentials; using the cached ones");
                    return Ok(Some(old.clone()));
                }
                now + FAILURE_MS
            }
        };
        *kept = Some(CachedCredentials { found: found.clone(), until });
        found
    }

    fn slot(&self, name: [u8; 32]) -> CredentialsCell {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_CHAINS && !kept.contains_key(&name) {
            kept.clear();
        }
        Arc::clone(kept.entry(name).or_default())
    }
}

impl AmbientCredentials for AwsChain {
    fn is_wanted(&self, request: &Request) -> bool {
        let auth = &request.auth;
        // A caller's authorization header does not count here: only the signature authorizes the request.
        auth.aws.is_none() && !auth.keyless && (endpoint::profile(request).is_some() || sign::bearer(request).is_none())
    }

    fn resolve<'a>(
        &'a self,
        request: &'a Request,
        client: &'a HttpClient,
    ) -> BoxFuture<'a, Result<Option<Auth>, LlmError>> {
        Box::pin(self.find(request, client))
    }
}

impl std::fmt::Debug for AwsChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AwsChain").finish_non_exhaustive()
    }
}

fn auth(keys: Option<AwsKeys>, region: Option<String>) -> Auth {
    Auth { aws: Some(AwsCredentials { keys, region }), ..Auth::default() }
}

fn failed(request: &Request, text: impl Into<String>) -> LlmError {
    LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, text)
}

fn env_keys(env: &pinch_stdx::host::Env) -> Option<AwsKeys> {
    Some(AwsKeys {
        access_key_id: env.non_empty("AWS_ACCESS_KEY_ID")?.to_owned(),
        secret_access_key: env.non_empty("AWS_SECRET_ACCESS_KEY")?.into(),
        session_token: env.non_empty("AWS_SESSION_TOKEN").map(Secret::from),
    })
}

/// Identifies a chain by everything that determines the source of credentials. A digest, because secrets are part of it.
fn chain_name(request: &Request) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    };
    add(endpoint::profile(request).unwrap_or(""));
    add(endpoint::configured_region(request).unwrap_or(""));
    add(&request.host.home().unwrap_or("".as_ref()).to_string_lossy());
    for (name, value) in request.host.env().iter().filter(|(name, _)| name.starts_with("AWS_")) {
        add(name);
        add(value);
    }
    hash.finalize().into()
}

/// Looks up credentials in every source after the key variables.
async fn fetch(cx: Cx<'_>) -> Result<Option<Fetched>, LlmError> {
    let env = cx.request.host.env();
    let named = endpoint::profile(cx.request);
    if let Some(found) = profile::fetch(cx, named).await? {
        return Ok(Some(found));
    }
    if let (Some(file), Some(role)) = (env.non_empty("AWS_WEB_IDENTITY_TOKEN_FILE"), env.non_empty("AWS_ROLE_ARN")) {
        let session = env.non_empty("AWS_ROLE_SESSION_NAME");
        let identity = remote::WebIdentity { token_file: file, role, session, region: None };
        return remote::web_identity(cx, identity).await.map(Some);
    }
    if let Some(found) = remote::container(cx).await? {
        return Ok(Some(found));
    }
    remote::machine(cx).await
}
