//! Stored keys and logins: in auth.json, under the same lock as pi's, or elsewhere.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pinch_llm::catalog::canonical_provider;
use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::OAuthCredential;
use pinch_stdx::fs::dir_lock::{DirLockError, DirLockOptions};
use pinch_stdx::host::{Env, Host};
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use super::AuthError;
use super::backend::{AuthBackend, BackendRead, FileBackend, MemoryBackend, OpenAuth, Revision, StoredCredentials};
use super::config_value::Remembered;
use crate::document::Problem;

pub use crate::document::ChangeError as StoreAuthError;

/// Problems kept until they are drained.
const MAX_PROBLEMS: usize = 16;

/// Stored credentials. Cloning is cheap: all clones are the same storage.
///
/// It is read on first use, and again when it has changed: what other programs store is seen at once.
#[derive(Clone, Debug)]
pub struct AuthStorage(Arc<AuthShared>);

#[derive(Debug)]
struct AuthShared {
    backend: Box<dyn AuthBackend>,
    seen: Mutex<LastRead>,
    commands: Remembered,
    /// The open store, while this program holds its lock. It is shared, so that a slow refresh does not block other tasks.
    open: Mutex<Weak<SharedOpen>>,
    /// One at a time waits for other programs.
    opening: AsyncMutex<()>,
}

/// An open store that several tasks use, one after another.
pub(super) type SharedOpen = AsyncMutex<Box<dyn OpenAuth>>;

/// What was read last.
#[derive(Debug, Default)]
struct LastRead {
    entries: Arc<StoredCredentials>,
    revision: Option<Revision>,
    is_broken: bool,
    problems: Vec<Problem>,
    /// Logins that a server gave and that could not be stored, with the token they replace.
    unstored: Vec<(ProviderId, String, Value)>,
}

/// A credential that is stored in place of what a provider had.
#[derive(Clone, Copy)]
pub(crate) enum NewCredential<'a> {
    /// A login.
    Login(&'a OAuthCredential),
    /// An API key, a `$NAME` or a `!command`.
    Key(&'a str),
}

/// What a lookup of a key must find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLookup {
    /// The key itself. A configured command runs.
    Value,
    /// Whether there is one. No command runs; the key that a command would print is empty.
    Presence,
}

impl AuthStorage {
    /// Credentials in a file. Nothing is read yet.
    pub fn file(path: &Path) -> Self {
        Self::over(Box::new(FileBackend { path: path.to_owned() }))
    }

    /// Credentials in memory only.
    pub fn in_memory(entries: StoredCredentials) -> Self {
        Self::over(Box::new(MemoryBackend::new(entries)))
    }

    /// Credentials in another store.
    pub fn over(backend: Box<dyn AuthBackend>) -> Self {
        Self(Arc::new(AuthShared {
            backend,
            seen: Mutex::default(),
            commands: Remembered::default(),
            open: Mutex::default(),
            opening: AsyncMutex::default(),
        }))
    }

    /// Credentials in a file, read at once. A damaged file counts as empty, is reported, and is not written.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let storage = Self::file(path);
        storage.entries();
        let problems = storage.drain_problems();
        (storage, problems)
    }

    /// All entries as they are stored now. What is damaged now does not replace what was good before.
    pub fn entries(&self) -> Arc<StoredCredentials> {
        let mut seen = self.seen();
        match self.0.backend.read(seen.revision.as_ref()) {
            BackendRead::Same => {}
            BackendRead::New(entries, revision) => seen.take(entries, revision),
            BackendRead::Broken(problem, revision) => {
                seen.revision = Some(revision);
                seen.is_broken = true;
                if seen.problems.len() < MAX_PROBLEMS {
                    seen.problems.push(problem);
                }
            }
        }
        Arc::clone(&seen.entries)
    }

    /// Takes the problems with the store since the last call.
    pub fn drain_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.seen().problems)
    }

    /// Whether the store was damaged when it was read last.
    pub fn is_broken(&self) -> bool {
        self.seen().is_broken
    }

    /// The file in which credentials are stored; `None` when they are kept elsewhere.
    pub fn path(&self) -> Option<&Path> {
        self.0.backend.file()
    }

    /// The entry of a provider, also under an older name.
    pub fn get(&self, provider: &ProviderId) -> Option<Value> {
        find(&self.entries(), provider).cloned()
    }

    /// Whether something is stored for a provider.
    pub fn has(&self, provider: &ProviderId) -> bool {
        find(&self.entries(), provider).is_some()
    }

    /// The providers with stored credentials.
    pub fn providers(&self) -> Vec<ProviderId> {
        self.entries().keys().map(|name| ProviderId::new(canonical_provider(name))).collect()
    }

    /// The login of a provider; `None` when the stored entry is not a login.
    pub(super) fn login(&self, provider: &ProviderId) -> Option<OAuthCredential> {
        let stored = login_in(&self.entries(), provider)?;
        let seen = self.seen();
        let newer = seen.unstored.iter().find(|(id, old, _)| id == provider && *old == stored.refresh.reveal());
        newer.and_then(|(_, _, login)| OAuthCredential::from_value(login)).or(Some(stored))
    }

    /// Whether the entry of a provider has variables of its own.
    pub fn has_env(&self, provider: &ProviderId) -> bool {
        find(&self.entries(), provider).is_some_and(|entry| entry["env"].as_object().is_some_and(|env| !env.is_empty()))
    }

    /// The environment as a provider's own entry changes it: its `env` wins, for this provider only.
    pub fn env_of(&self, provider: &ProviderId, env: &Env) -> Env {
        match self.get(provider).as_ref().and_then(|entry| entry.get("env")).and_then(Value::as_object) {
            Some(vars) => env.with(vars.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))),
            None => env.clone(),
        }
    }

    /// The stored API key of a provider; `None` when none is stored. A command runs once in the life of this storage, unless it fails.
    ///
    /// # Errors
    /// [`AuthError::Unresolved`] when the stored value names a variable or command that resolves to nothing.
    pub async fn api_key(
        &self,
        provider: &ProviderId,
        host: &Host,
        lookup: KeyLookup,
    ) -> Result<Option<String>, AuthError> {
        let Some(entry) = self.get(provider).filter(|entry| entry["type"] == "api_key") else { return Ok(None) };
        let Some(value) = entry["key"].as_str().filter(|key| !key.is_empty()) else { return Ok(None) };
        let env = self.env_of(provider, host.env());
        let found = match lookup {
            KeyLookup::Presence if value.starts_with('!') => Ok(String::new()),
            _ => self.0.commands.resolve(value, &env).await,
        };
        found.map(Some).map_err(|how| AuthError::unresolved_key(provider, &how))
    }

    /// Stores an entry for a provider. Everything else stays as it is, what other programs have stored meanwhile too. Dropping the future
    /// stores everything or nothing.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub async fn set(&self, provider: &ProviderId, entry: Value, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, None, |entries| put(entries, provider, entry)).await
    }

    /// Stores an API key, a `$NAME` or a `!command` for a provider, as [`AuthStorage::set`] does. Variables that its entry has stay.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub async fn store_key(&self, provider: &ProviderId, key: &str, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, None, |entries| put_key(entries, provider, key)).await
    }

    /// Stores what a person has just entered or signed in for: as [`AuthStorage::set`] and [`AuthStorage::store_key`] do, but with patience
    /// for a process that holds the lock, such as one that refreshes a token. `on_wait` is called when that takes a while.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub(crate) async fn store_new(
        &self,
        provider: &ProviderId,
        credential: NewCredential<'_>,
        host: &Host,
        on_wait: &(dyn Fn() + Sync),
    ) -> Result<(), StoreAuthError> {
        let change = |entries: &mut StoredCredentials| match credential {
            NewCredential::Login(login) => put(entries, provider, login.to_value()),
            NewCredential::Key(key) => put_key(entries, provider, key),
        };
        self.change(host, Some(on_wait), change).await
    }

    /// Fails when nothing can be stored, because the store is damaged or the system refuses; another process that holds the lock is no reason.
    ///
    /// # Errors
    /// [`StoreAuthError`].
    pub(crate) async fn check_writable(&self, host: &Host) -> Result<(), StoreAuthError> {
        if self.shared().is_some() {
            return Ok(());
        }
        match self.0.backend.open(&DirLockOptions::QUICK, host).await {
            Ok(open) => open.read().map(drop),
            Err(StoreAuthError::Lock { source: DirLockError::Busy { .. }, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what is stored for a provider: the way to sign out.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub async fn remove(&self, provider: &ProviderId, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, None, |entries| {
            entries.retain(|name, _| canonical_provider(name) != canonical_provider(provider.as_str()))
        })
        .await
    }

    async fn change(
        &self,
        host: &Host,
        on_wait: Option<&(dyn Fn() + Sync)>,
        change: impl FnOnce(&mut StoredCredentials),
    ) -> Result<(), StoreAuthError> {
        let shared = self.shared();
        let held;
        let own;
        let open: &dyn OpenAuth = match &shared {
            Some(shared) => {
                held = shared.lock().await;
                &**held
            }
            None => {
                own = match (self.0.backend.open(&DirLockOptions::QUICK, host).await, on_wait) {
                    (Err(StoreAuthError::Lock { .. }), Some(on_wait)) => {
                        on_wait();
                        self.open_anew(host).await?
                    }
                    (opened, _) => opened?,
                };
                &*own
            }
        };
        let (old, revision) = open.read()?;
        let mut new = old.clone();
        change(&mut new);
        let revision = if new == old { revision } else { open.write(&new)? };
        self.seen().take(new, revision);
        Ok(())
    }

    /// Keeps other programs out for as long as the answer lives; tasks of this program share it.
    pub(super) async fn open_shared(&self, host: &Host) -> Result<Arc<SharedOpen>, StoreAuthError> {
        let _turn = self.0.opening.lock().await;
        if let Some(open) = self.shared() {
            return Ok(open);
        }
        let open = Arc::new(AsyncMutex::new(self.open_anew(host).await?));
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&open);
        Ok(open)
    }

    /// Keeps other programs out, also when a lock of this program was lost.
    pub(super) async fn open_anew(&self, host: &Host) -> Result<Box<dyn OpenAuth>, StoreAuthError> {
        self.0.backend.open(&DirLockOptions::PATIENT, host).await
    }

    fn shared(&self) -> Option<Arc<SharedOpen>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Takes in what is stored now.
    pub(super) fn adopt(&self, entries: StoredCredentials, revision: Revision) {
        self.seen().take(entries, revision);
    }

    /// Remembers a login that could not be stored: the server knows the old token no more.
    pub(super) fn keep_login(&self, provider: &ProviderId, old: &OAuthCredential, login: &OAuthCredential) {
        let mut seen = self.seen();
        seen.unstored.retain(|(id, ..)| id != provider);
        seen.unstored.push((provider.clone(), old.refresh.reveal().to_owned(), login.to_value()));
    }

    fn seen(&self) -> MutexGuard<'_, LastRead> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastRead {
    fn take(&mut self, entries: StoredCredentials, revision: Revision) {
        self.entries = Arc::new(entries);
        self.revision = Some(revision);
        self.is_broken = false;
    }
}

/// The entry of a provider, under its own name or one that it had before.
fn find<'a>(entries: &'a StoredCredentials, provider: &ProviderId) -> Option<&'a Value> {
    let old = || {
        entries
            .iter()
            .find(|(name, _)| canonical_provider(name) == canonical_provider(provider.as_str()))
            .map(|(_, entry)| entry)
    };
    entries.get(provider.as_str()).or_else(old)
}

/// Puts the entry of a provider in place of one under an older name.
pub(super) fn put(entries: &mut StoredCredentials, provider: &ProviderId, entry: Value) {
    let name = canonical_provider(provider.as_str());
    entries.retain(|other, _| other == name || canonical_provider(other) != name);
    entries.insert(name.to_owned(), entry);
}

/// Puts an API key in place of what a provider had; variables of its entry stay.
fn put_key(entries: &mut StoredCredentials, provider: &ProviderId, key: &str) {
    let mut entry = serde_json::json!({"type": "api_key", "key": key});
    let old = find(entries, provider).filter(|old| old["type"] == "api_key");
    if let Some(env) = old.and_then(|old| old.get("env")) {
        entry["env"] = env.clone();
    }
    put(entries, provider, entry);
}

/// The login of a provider among stored entries.
pub(super) fn login_in(entries: &StoredCredentials, provider: &ProviderId) -> Option<OAuthCredential> {
    OAuthCredential::from_value(find(entries, provider).filter(|entry| entry["type"] == "oauth")?)
}
