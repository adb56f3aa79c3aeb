//! Stored keys and logins, in auth.json under the same lock as pi's, or elsewhere.

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

/// Maximum number of problems kept until they are drained.
const MAX_PROBLEMS: usize = 16;

/// Stored credentials. Clones share the same storage.
///
/// Read on first use, and again after every change, so changes by other programs take effect immediately.
#[derive(Clone, Debug)]
pub struct AuthStorage(Arc<AuthShared>);

#[derive(Debug)]
struct AuthShared {
    backend: Box<dyn AuthBackend>,
    last_read: Mutex<LastRead>,
    commands: Remembered,
    /// The open store while this program holds its lock, shared so that a slow refresh does not block other tasks.
    open: Mutex<Weak<SharedOpen>>,
    /// Lets one task at a time wait for other programs.
    opening: AsyncMutex<()>,
}

/// An open store shared by several tasks, one at a time.
pub(super) type SharedOpen = AsyncMutex<Box<dyn OpenAuth>>;

/// The content that was read last.
#[derive(Debug, Default)]
struct LastRead {
    entries: Arc<StoredCredentials>,
    revision: Option<Revision>,
    is_broken: bool,
    problems: Vec<Problem>,
    /// Logins issued by a server that could not be stored, with the token they replace.
    unstored: Vec<(ProviderId, String, Value)>,
}

/// A credential that replaces a provider's stored one.
#[derive(Clone, Copy)]
pub(crate) enum NewCredential<'a> {
    /// A login.
    Login(&'a OAuthCredential),
    /// An API key, a `$NAME` or a `!command`.
    Key(&'a str),
}

/// The purpose of a key lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLookup {
    /// Get the key. Runs a configured command.
    Value,
    /// Check whether a key exists. Runs no command; the key that a command would print is empty.
    Presence,
}

impl AuthStorage {
    /// Creates a store in a file. Nothing is read yet.
    pub fn file(path: &Path) -> Self {
        Self::over(Box::new(FileBackend { path: path.to_owned() }))
    }

    /// Creates a store in memory.
    pub fn in_memory(entries: StoredCredentials) -> Self {
        Self::over(Box::new(MemoryBackend::new(entries)))
    }

    /// Creates a store on another backend.
    pub fn over(backend: Box<dyn AuthBackend>) -> Self {
        Self(Arc::new(AuthShared {
            backend,
            last_read: Mutex::default(),
            commands: Remembered::default(),
            open: Mutex::default(),
            opening: AsyncMutex::default(),
        }))
    }

    /// Loads credentials from a file. A damaged file counts as empty, is reported, and is not written.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let storage = Self::file(path);
        storage.entries();
        let problems = storage.drain_problems();
        (storage, problems)
    }

    /// Returns all entries as currently stored. Damaged content does not replace what was read before.
    pub fn entries(&self) -> Arc<StoredCredentials> {
        let mut last_read = self.last_read();
        match self.0.backend.read(last_read.revision.as_ref()) {
            BackendRead::Same => {}
            BackendRead::New(entries, revision) => last_read.take(entries, revision),
            BackendRead::Broken(problem, revision) => {
                last_read.revision = Some(revision);
                last_read.is_broken = true;
                if last_read.problems.len() < MAX_PROBLEMS {
                    last_read.problems.push(problem);
                }
            }
        }
        Arc::clone(&last_read.entries)
    }

    /// Returns the problems with the store since the last call.
    pub fn drain_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.last_read().problems)
    }

    /// Returns whether the store was damaged when it was last read.
    pub fn is_broken(&self) -> bool {
        self.last_read().is_broken
    }

    /// Returns the credentials file, or `None` if they are stored elsewhere.
    pub fn path(&self) -> Option<&Path> {
        self.0.backend.file()
    }

    /// Returns the entry of a provider, which may be stored under a legacy name.
    pub fn get(&self, provider: &ProviderId) -> Option<Value> {
        find(&self.entries(), provider).cloned()
    }

    /// Returns whether anything is stored for a provider.
    pub fn has(&self, provider: &ProviderId) -> bool {
        find(&self.entries(), provider).is_some()
    }

    /// Returns the providers with stored credentials.
    pub fn providers(&self) -> Vec<ProviderId> {
        self.entries().keys().map(|name| ProviderId::new(canonical_provider(name))).collect()
    }

    /// Returns the login of a provider, or `None` if the stored entry is not a login.
    pub(super) fn login(&self, provider: &ProviderId) -> Option<OAuthCredential> {
        let stored = login_in(&self.entries(), provider)?;
        let last_read = self.last_read();
        let newer = last_read.unstored.iter().find(|(id, old, _)| id == provider && *old == stored.refresh.reveal());
        newer.and_then(|(_, _, login)| OAuthCredential::from_value(login)).or(Some(stored))
    }

    /// Returns whether a provider's entry sets variables.
    pub fn has_env(&self, provider: &ProviderId) -> bool {
        find(&self.entries(), provider).is_some_and(|entry| entry["env"].as_object().is_some_and(|env| !env.is_empty()))
    }

    /// Returns the environment with the `env` of a provider's entry applied, which takes precedence for this provider only.
    pub fn env_of(&self, provider: &ProviderId, env: &Env) -> Env {
        match self.get(provider).as_ref().and_then(|entry| entry.get("env")).and_then(Value::as_object) {
            Some(vars) => env.with(vars.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))),
            None => env.clone(),
        }
    }

    /// Returns the stored API key of a provider, or `None` if there is none. A command runs once in the lifetime of this storage, unless it
    /// fails.
    ///
    /// # Errors
    /// [`AuthError::Unresolved`] if the stored value refers to a variable or command that cannot be resolved.
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

    /// Stores an entry for a provider. All other entries are kept, including those stored by other programs meanwhile. Dropping the future
    /// stores everything or nothing.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed.
    pub async fn set(&self, provider: &ProviderId, entry: Value, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, None, |entries| put(entries, provider, entry)).await
    }

    /// Stores an API key, a `$NAME` or a `!command` for a provider like [`AuthStorage::set`]. Variables in its entry are kept.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed.
    pub async fn store_key(&self, provider: &ProviderId, key: &str, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, None, |entries| put_key(entries, provider, key)).await
    }

    /// Stores a newly entered key or login like [`AuthStorage::set`] and [`AuthStorage::store_key`], but waits longer for a process that
    /// holds the lock, such as one refreshing a token. Calls `on_wait` if that takes a while.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed.
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

    /// Fails if nothing can be stored because the store is damaged or not writable. A lock held by another process is not an error.
    ///
    /// # Errors
    /// Returns a [`StoreAuthError`].
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

    /// Removes the stored entry of a provider, signing the user out.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed.
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
        self.last_read().take(new, revision);
        Ok(())
    }

    /// Opens the store exclusively for as long as the returned value is alive; tasks of this program share it.
    pub(super) async fn open_shared(&self, host: &Host) -> Result<Arc<SharedOpen>, StoreAuthError> {
        let _turn = self.0.opening.lock().await;
        if let Some(open) = self.shared() {
            return Ok(open);
        }
        let open = Arc::new(AsyncMutex::new(self.open_anew(host).await?));
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&open);
        Ok(open)
    }

    /// Opens the store exclusively, even if this program lost an earlier lock.
    pub(super) async fn open_anew(&self, host: &Host) -> Result<Box<dyn OpenAuth>, StoreAuthError> {
        self.0.backend.open(&DirLockOptions::PATIENT, host).await
    }

    fn shared(&self) -> Option<Arc<SharedOpen>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Takes over the currently stored content.
    pub(super) fn adopt(&self, entries: StoredCredentials, revision: Revision) {
        self.last_read().take(entries, revision);
    }

    /// Remembers a login that could not be stored, since the server no longer accepts the old token.
    pub(super) fn keep_login(&self, provider: &ProviderId, old: &OAuthCredential, login: &OAuthCredential) {
        let mut last_read = self.last_read();
        last_read.unstored.retain(|(id, ..)| id != provider);
        last_read.unstored.push((provider.clone(), old.refresh.reveal().to_owned(), login.to_value()));
    }

    fn last_read(&self) -> MutexGuard<'_, LastRead> {
        self.0.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastRead {
    fn take(&mut self, entries: StoredCredentials, revision: Revision) {
        self.entries = Arc::new(entries);
        self.revision = Some(revision);
        self.is_broken = false;
    }
}

/// Finds the entry of a provider under its current or a legacy name.
fn find<'a>(entries: &'a StoredCredentials, provider: &ProviderId) -> Option<&'a Value> {
    let old = || {
        entries
            .iter()
            .find(|(name, _)| canonical_provider(name) == canonical_provider(provider.as_str()))
            .map(|(_, entry)| entry)
    };
    entries.get(provider.as_str()).or_else(old)
}

/// Sets the entry of a provider, replacing one under a legacy name.
pub(super) fn put(entries: &mut StoredCredentials, provider: &ProviderId, entry: Value) {
    let name = canonical_provider(provider.as_str());
    entries.retain(|other, _| other == name || canonical_provider(other) != name);
    entries.insert(name.to_owned(), entry);
}

/// Sets the API key of a provider; variables in its entry are kept.
fn put_key(entries: &mut StoredCredentials, provider: &ProviderId, key: &str) {
    let mut entry = serde_json::json!({"type": "api_key", "key": key});
    let old = find(entries, provider).filter(|old| old["type"] == "api_key");
    if let Some(env) = old.and_then(|old| old.get("env")) {
        entry["env"] = env.clone();
    }
    put(entries, provider, entry);
}

/// Returns the login of a provider among stored entries.
pub(super) fn login_in(entries: &StoredCredentials, provider: &ProviderId) -> Option<OAuthCredential> {
    OAuthCredential::from_value(find(entries, provider).filter(|entry| entry["type"] == "oauth")?)
}
