//! Refreshing expired logins: once, however many tasks and programs wait for it.
//!
//! A refresh invalidates the old token on the server. It is therefore never interrupted: it runs in a separate task that cancelling a
//! request does not stop, and its result is stored before it is used.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_llm::catalog::canonical_provider;
use pinch_llm::http::HttpClient;
use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::google::GoogleLogin;
use pinch_llm::oauth::transport::HttpTransport;
use pinch_llm::oauth::{LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow, OAuthRegistry, OAuthTransport};
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::JoinSet;

use super::AuthError;
use super::storage::{AuthStorage, SharedOpen, StoreAuthError, login_in, put};

/// How long before its expiry a login is refreshed.
const MARGIN_MS: i64 = 5 * 60 * 1_000;

/// Timeout of a refresh, after which the lock is released.
const REFRESH_LIMIT: Duration = Duration::from_secs(60);
/// How often the lock is renewed during a refresh.
const RENEWAL: Duration = Duration::from_secs(10);
/// How long a program waits for a refresh when it exits.
const SETTLE_TIME: Duration = Duration::from_secs(65);
/// Maximum number of exchanged keys to cache.
const MAX_EXCHANGED: usize = 64;

/// Turns stored logins into request credentials.
pub struct Logins {
    flows: OAuthRegistry,
    transport: Arc<dyn OAuthTransport>,
    /// Allows one refresh per provider in this program; the lock of the file excludes other programs.
    turns: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    tasks: Mutex<JoinSet<()>>,
    /// Credentials obtained for API keys, as opposed to stored logins.
    exchanged: Mutex<HashMap<Secret, OAuthCredential>>,
}

impl Logins {
    /// Creates a refresher with these flows and this transport.
    pub fn new(flows: OAuthRegistry, transport: Arc<dyn OAuthTransport>) -> Self {
        Self { flows, transport, turns: Mutex::default(), tasks: Mutex::default(), exchanged: Mutex::default() }
    }

    /// Creates a refresher with the built-in flows and network access.
    pub fn over_network(host: &Host) -> Self {
        let network = HttpTransport::new(Arc::new(HttpClient::new()), host.env().clone());
        let mut flows = OAuthRegistry::built_in();
        for login in [GoogleLogin::GEMINI_CLI, GoogleLogin::ANTIGRAVITY] {
            flows.register(Arc::new(login));
        }
        Self::new(flows, Arc::new(network))
    }

    /// Returns the credentials of a provider's stored login, refreshed if it is about to expire. Returns `None` if no login is stored or no
    /// flow can refresh it. Dropping the future stops the wait, not the refresh.
    ///
    /// # Errors
    /// Fails if the login has expired and cannot be refreshed, or the new one cannot be stored.
    pub async fn resolve(
        &self,
        provider: &ProviderId,
        storage: &AuthStorage,
        host: &Host,
    ) -> Result<Option<Auth>, AuthError> {
        let Ok(flow) = self.flows.get(provider.as_str()) else { return Ok(None) };
        self.resolve_with(flow, provider, storage, host).await
    }

    /// Like [`Logins::resolve`], with another flow than the registered one.
    ///
    /// # Errors
    /// Same as [`Logins::resolve`].
    pub async fn resolve_with(
        &self,
        flow: &Arc<dyn OAuthFlow>,
        provider: &ProviderId,
        storage: &AuthStorage,
        host: &Host,
    ) -> Result<Option<Auth>, AuthError> {
        let login = self.renewed(flow, provider, storage, host, Lasting::of(MARGIN_MS)).await?;
        Ok(login.map(|login| flow.auth(&login)))
    }

    /// Refreshes a provider's stored login before its expiry, because the server rejected its access token. Returns whether there is a
    /// different token now; another program may have refreshed it as well.
    pub async fn renew(&self, provider: &ProviderId, storage: &AuthStorage, host: &Host, refused: &Secret) -> bool {
        let Ok(flow) = self.flows.get(provider.as_str()) else { return false };
        let lasting = Lasting { margin_ms: 0, refused: Some(refused.clone()) };
        match self.renewed(flow, provider, storage, host, lasting).await {
            Ok(login) => login.is_some_and(|login| flow.auth(&login).key.as_ref() != Some(refused)),
            Err(error) => {
                tracing::debug!(%error, "could not refresh a rejected login");
                false
            }
        }
    }

    /// Returns a provider's stored login, refreshed if it expires before `left` has passed; `None` as for [`Logins::resolve`]. It may still
    /// expire earlier if the provider's logins do not last that long.
    ///
    /// # Errors
    /// Same as [`Logins::resolve`].
    pub async fn lasting(
        &self,
        provider: &ProviderId,
        storage: &AuthStorage,
        host: &Host,
        left: Duration,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        let Ok(flow) = self.flows.get(provider.as_str()) else { return Ok(None) };
        let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        self.renewed(flow, provider, storage, host, Lasting::of(left)).await
    }

    /// Returns a provider's lock: an unresponsive server blocks only its own logins.
    fn turn(&self, provider: &ProviderId) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(canonical_provider(provider.as_str()).to_owned()).or_default())
    }

    async fn renewed(
        &self,
        flow: &Arc<dyn OAuthFlow>,
        provider: &ProviderId,
        storage: &AuthStorage,
        host: &Host,
        lasting: Lasting,
    ) -> Result<Option<OAuthCredential>, AuthError> {
        let Some(login) = storage.login(provider) else { return Ok(None) };
        if lasting.is_met(&**flow, &login, host.now_ms()) {
            return Ok(Some(login));
        }
        let refresh = Refresh {
            flow: Arc::clone(flow),
            transport: Arc::clone(&self.transport),
            provider: provider.clone(),
            storage: storage.clone(),
            host: host.clone(),
            lasting,
        };
        let (tx, rx) = oneshot::channel();
        let turn = self.turn(provider);
        {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.try_join_next().is_some() {}
            tasks.spawn(async move {
                let _turn = turn.lock().await;
                // The receiver may have been dropped.
                let _result = tx.send(refresh.run().await);
            });
        }
        match rx.await {
            // A login that has not expired is good enough if it cannot be refreshed.
            Ok(Err(AuthError::Refresh { .. } | AuthError::Locked { .. })) if !login.is_expired(host.now_ms()) => {
                Ok(Some(login))
            }
            Ok(done) => done,
            Err(_) => Err(AuthError::Expired { provider: provider.clone() }),
        }
    }

    /// Returns the registered flows, built-in ones first.
    pub fn flows(&self) -> &[Arc<dyn OAuthFlow>] {
        self.flows.list()
    }

    /// Signs a user in. Nothing is stored.
    ///
    /// # Errors
    /// Same as [`OAuthFlow::login`].
    pub(crate) async fn sign_in(
        &self,
        flow: &dyn OAuthFlow,
        ui: &dyn LoginUi,
        host: &Host,
        cancel: &Cancel,
    ) -> Result<OAuthCredential, OAuthError> {
        flow.login(ui, OAuthCx { transport: &*self.transport, host, cancel }).await
    }

    /// Exchanges a key for credentials, for logins that start with one, such as a GitHub token in the environment. They are cached until
    /// they expire.
    ///
    /// # Errors
    /// Fails if the provider rejects the key.
    pub async fn exchange(&self, provider: &ProviderId, key: &Secret, host: &Host) -> Result<Option<Auth>, AuthError> {
        let Some(flow) = self.flows.get(provider.as_str()).ok().filter(|flow| flow.is_initial_token(key)) else {
            return Ok(None);
        };
        let turn = self.turn(provider);
        let _turn = turn.lock().await;
        let exchanged = || self.exchanged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(login) = exchanged().get(key).filter(|login| !login.is_expired(host.now_ms())) {
            return Ok(Some(flow.auth(login)));
        }
        let never = Cancel::new();
        let cx = OAuthCx { transport: &*self.transport, host, cancel: &never };
        let begun = OAuthCredential::beginning(key.clone());
        let login = flow.refresh(&begun, cx).await.map_err(|error| refused(provider, &error))?;
        let auth = flow.auth(&login);
        let mut exchanged = exchanged();
        if exchanged.len() >= MAX_EXCHANGED {
            exchanged.clear();
        }
        exchanged.insert(key.clone(), login);
        Ok(Some(auth))
    }

    /// Waits until all running refreshes are stored, but no longer than a refresh may take.
    pub async fn settle(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SETTLE_TIME, all).await.is_err() {
            tracing::warn!("could not store a refreshed login before exiting");
        }
    }
}

impl Drop for Logins {
    fn drop(&mut self) {
        // Refreshes that reached the server are stored nevertheless.
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).detach_all();
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").field("flows", &self.flows).finish_non_exhaustive()
    }
}

/// Requirements for using a login without refreshing it.
#[derive(Clone)]
struct Lasting {
    /// Minimum time until its expiry.
    margin_ms: i64,
    /// An access token that the server rejected.
    refused: Option<Secret>,
}

impl Lasting {
    fn of(margin_ms: i64) -> Self {
        Self { margin_ms, refused: None }
    }

    fn is_met(&self, flow: &dyn OAuthFlow, login: &OAuthCredential, now: i64) -> bool {
        let is_refused = || self.refused.as_ref().is_some_and(|refused| flow.api_key(login) == *refused);
        !login.is_expired(now.saturating_add(self.margin_ms)) && !is_refused()
    }
}

/// One refresh.
struct Refresh {
    flow: Arc<dyn OAuthFlow>,
    transport: Arc<dyn OAuthTransport>,
    provider: ProviderId,
    storage: AuthStorage,
    host: Host,
    lasting: Lasting,
}

impl Refresh {
    /// Refreshes the login, unless another program has done so meanwhile. Returns `None` if it was removed.
    async fn run(self) -> Result<Option<OAuthCredential>, AuthError> {
        let is_good = |login: &OAuthCredential| self.lasting.is_met(&*self.flow, login, self.host.now_ms());
        let known = self.storage.login(&self.provider);
        if known.as_ref().is_none_or(is_good) {
            return Ok(known);
        }
        let open = self.storage.open_shared(&self.host).await.map_err(|error| self.unstored(&error))?;
        let (entries, revision) = open.lock().await.read().map_err(|error| self.unstored(&error))?;
        self.storage.adopt(entries, revision);
        let Some(old) = self.storage.login(&self.provider) else { return Ok(None) };
        if is_good(&old) {
            return Ok(Some(old));
        }
        let fresh = self.ask(&old, &open).await?;
        match self.store(&open, &old, fresh.clone()).await {
            Ok(login) => Ok(Some(login)),
            Err(error) => {
                // Keep the new login at least for this program.
                self.storage.keep_login(&self.provider, &old, &fresh);
                Err(self.unstored(&error))
            }
        }
    }

    /// Sends the request and waits for the complete answer, renewing the lock meanwhile. A lost lock is detected when the login is stored.
    async fn ask(&self, old: &OAuthCredential, open: &SharedOpen) -> Result<OAuthCredential, AuthError> {
        let never = Cancel::new();
        let cx = OAuthCx { transport: &*self.transport, host: &self.host, cancel: &never };
        let mut answer = self.flow.refresh(old, cx);
        let mut left = REFRESH_LIMIT;
        loop {
            match tokio::time::timeout(RENEWAL, &mut answer).await {
                Ok(fresh) => return fresh.map_err(|error| refused(&self.provider, &error)),
                Err(_) if left <= RENEWAL => {
                    let reason = format!("no answer within {} s", REFRESH_LIMIT.as_secs());
                    return Err(AuthError::Refresh { provider: self.provider.clone(), reason, is_final: false });
                }
                Err(_) => {
                    left -= RENEWAL;
                    open.lock().await.renew(&self.host);
                }
            }
        }
    }

    /// Stores a login, unless another one was stored meanwhile, and returns the valid one. A lost lock is taken again, because tokens
    /// issued by a server must not get lost.
    async fn store(
        &self,
        open: &SharedOpen,
        old: &OAuthCredential,
        fresh: OAuthCredential,
    ) -> Result<OAuthCredential, StoreAuthError> {
        let mut open = open.lock().await;
        if !open.is_held() {
            *open = self.storage.open_anew(&self.host).await?;
        }
        let (mut entries, revision) = open.read()?;
        let now = login_in(&entries, &self.provider);
        if let Some(other) = now.filter(|now| now.refresh != old.refresh && !now.is_expired(self.host.now_ms())) {
            self.storage.adopt(entries, revision);
            return Ok(other);
        }
        put(&mut entries, &self.provider, fresh.to_value());
        let revision = open.write(&entries)?;
        self.storage.adopt(entries, revision);
        Ok(fresh)
    }

    fn unstored(&self, error: &StoreAuthError) -> AuthError {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let (provider, reason) = (self.provider.clone(), format!("{error}{cause}"));
        match error {
            StoreAuthError::Lock { .. } => AuthError::Locked { provider, reason },
            StoreAuthError::Damaged(_) | StoreAuthError::Io { .. } => AuthError::Store { provider, reason },
        }
    }
}

fn refused(provider: &ProviderId, error: &OAuthError) -> AuthError {
    AuthError::Refresh { provider: provider.clone(), reason: error.to_string(), is_final: error.is_final() }
}
