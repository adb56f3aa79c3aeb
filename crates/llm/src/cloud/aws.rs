//! AWS credentials, found in the order in which Amazon's own tools look for them.
//!
//! Variables with keys, unless a profile is named; the profile of the user's files (static keys, a role to assume, a web identity, a
//! command, a login of `aws sso`); a web identity that the environment names; the container's credentials; the machine's own. What was
//! fetched is kept until five minutes before it expires, and fetched by one call at a time.

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

/// How long before their end credentials are fetched anew.
const MARGIN_MS: i64 = 5 * 60 * 1_000;
/// How long credentials are kept that do not say how long they last.
const UNTOLD_MS: i64 = 60 * 60 * 1_000;
/// How long it is remembered that there are none, so that many calls at once do not ask one after the other.
const FAILURE_MS: i64 = 2_000;
/// Chains that are kept; more than a few mean that every tenant has its own.
const MAX_CHAINS: usize = 256;

/// Finds AWS credentials in the environment, the user's files, the container or the machine.
#[derive(Default)]
pub struct AwsChain {
    kept: Mutex<HashMap<[u8; 32], CredentialsCell>>,
}

type CredentialsCell = Arc<AsyncMutex<Option<CachedCredentials>>>;

/// What a chain gave last.
struct CachedCredentials {
    found: Result<Option<Fetched>, LlmError>,
    /// When to ask again, Unix milliseconds.
    until: i64,
}

/// Credentials as they were found.
#[derive(Clone, Debug)]
struct Fetched {
    keys: AwsKeys,
    lasts: Lasts,
}

/// How long credentials hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasts {
    /// They are in a file or variable: reading them again costs nothing, and sees a change.
    ReadAgain,
    /// Until this time, Unix milliseconds; unknown if not reported.
    Until(Option<i64>),
}

/// One search.
#[derive(Clone, Copy)]
struct Cx<'a> {
    request: &'a Request,
    client: &'a HttpClient,
    files: &'a ProfileFiles,
}

impl AwsChain {
    /// A chain that has found nothing yet.
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
            Ok(Some(Fetched { lasts: Lasts::Until(end), .. })) => end.unwrap_or(now + UNTOLD_MS) - MARGIN_MS,
            Ok(None) => now + FAILURE_MS,
            Err(error) => {
                // What is about to expire is good enough while nothing newer is to be had.
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
        // A header of the caller authorises nothing here: the signature's own is the only one.
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

/// Identifies a chain by everything that decides where credentials come from. A digest, as secrets are part of it.
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

/// Everything behind the variables with keys.
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
