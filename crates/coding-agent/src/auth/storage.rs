//! auth.json: stored keys and logins, in the same file and under the same lock as pi's.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::Credential;
use pinch_llm::request::Auth;
use pinch_stdx::fs::atomic::{Access, create_private_dir, write_atomic};
use pinch_stdx::fs::dir_lock::{DirLock, DirLockError, Terms};
use pinch_stdx::host::{Env, Host};
use pinch_stdx::json;
use serde_json::{Map, Value};

use super::AuthError;
use super::config_value;
use crate::document::{self, Problem};

/// The stored credentials of one agent directory.
#[derive(Clone, Debug)]
pub struct AuthStorage {
    path: PathBuf,
    entries: Map<String, Value>,
    broken: bool,
    /// The file as it was read last.
    revision: Option<Revision>,
}

/// Tells one state of a file from another: time of change and length.
type Revision = (SystemTime, u64);

fn revision_of(path: &Path) -> Option<Revision> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Where a chain of links ends: programs that name the file by other ways lock the same one.
fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Credentials could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreAuthError {
    /// The file is damaged; writing would lose what is in it.
    #[error("{0}")]
    Damaged(Problem),
    /// Another program holds the file.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: DirLockError,
    },
    /// The system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl AuthStorage {
    /// Reads the file; a damaged one counts as empty, is reported, and will not be written.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let revision = revision_of(path);
        let (entries, problems) = match document::read_object(path) {
            Ok(entries) => (entries, Vec::new()),
            Err(problem) => (Map::new(), vec![problem]),
        };
        (Self { path: path.to_owned(), entries, broken: !problems.is_empty(), revision }, problems)
    }

    /// Reads the file again if it has changed since; what is damaged now does not replace what was good before.
    pub fn reload(&mut self) {
        let revision = revision_of(&self.path);
        if revision == self.revision {
            return;
        }
        if let Ok(entries) = document::read_object(&self.path) {
            self.entries = entries;
            self.broken = false;
            self.revision = revision;
        }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The login of a provider; `None` when what is stored is none.
    pub(super) fn login(&self, provider: &ProviderId) -> Option<Credential> {
        login_in(&self.entries, provider)
    }

    /// Whether something is stored for a provider.
    pub fn has(&self, provider: &ProviderId) -> bool {
        self.entries.contains_key(provider.as_str())
    }

    /// The providers with stored credentials.
    pub fn providers(&self) -> impl Iterator<Item = ProviderId> {
        self.entries.keys().map(ProviderId::new)
    }

    /// The credentials of a provider; `None` when nothing is stored.
    ///
    /// # Errors
    /// When the stored value names a variable or command that gives nothing, or a login has expired.
    pub async fn resolve(&self, provider: &ProviderId, host: &Host) -> Result<Option<Auth>, AuthError> {
        let Some(entry) = self.entries.get(provider.as_str()) else { return Ok(None) };
        match entry["type"].as_str() {
            Some("api_key") => {
                let Some(key) = entry["key"].as_str().filter(|key| !key.is_empty()) else { return Ok(None) };
                let env = own_env(entry, host.env());
                let key = config_value::resolve(key, &env).await.map_err(|how| AuthError::Unresolved {
                    what: format!("API key for provider \"{provider}\""),
                    how: how.to_string(),
                })?;
                Ok(Some(Auth::key(key)))
            }
            Some("oauth") => {
                let login = self.login(provider).filter(|login| !login.is_over(host.now_ms()));
                let login = login.ok_or_else(|| AuthError::Expired { provider: provider.clone() })?;
                Ok(Some(Auth::key(login.access)))
            }
            _ => Ok(None),
        }
    }

    /// Stores an API key. Everything else in the file stays as it is, what other programs have written meanwhile too.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub fn store_key(&mut self, provider: &ProviderId, key: &str, host: &Host) -> Result<(), StoreAuthError> {
        let entry = serde_json::json!({"type": "api_key", "key": key});
        self.change(host, |entries| drop(entries.insert(provider.to_string(), entry)))
    }

    /// Removes what is stored for a provider.
    ///
    /// # Errors
    /// [`StoreAuthError`]; nothing has changed then.
    pub fn remove(&mut self, provider: &ProviderId, host: &Host) -> Result<(), StoreAuthError> {
        self.change(host, |entries| drop(entries.shift_remove(provider.as_str())))
    }

    fn change(&mut self, host: &Host, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), StoreAuthError> {
        let io_error = |source| StoreAuthError::Io { path: self.path.clone(), source };
        if let Some(folder) = self.path.parent() {
            create_private_dir(folder).map_err(io_error)?;
        }
        let lock = DirLock::acquire(&resolved(&self.path), &Terms::QUICK, host)
            .map_err(|source| StoreAuthError::Lock { path: self.path.clone(), source })?;
        let mut entries = document::read_object(&self.path).map_err(StoreAuthError::Damaged)?;
        change(&mut entries);
        let text = json::to_pretty(&entries).map_err(|error| io_error(error.into()))?;
        lock.check().map_err(|source| StoreAuthError::Lock { path: self.path.clone(), source })?;
        write_atomic(&self.path, text.as_bytes(), Access::Private).map_err(io_error)?;
        self.entries = entries;
        self.broken = false;
        self.revision = revision_of(&self.path);
        Ok(())
    }

    /// Remembers a login that could not be written.
    pub(super) fn keep_login(&mut self, provider: &ProviderId, login: &Credential) {
        self.entries.insert(provider.to_string(), login.to_value());
    }

    /// Takes in what is in the file now.
    pub(super) fn adopt(&mut self, entries: Map<String, Value>) {
        self.entries = entries;
        self.broken = false;
        self.revision = revision_of(&self.path);
    }

    /// Whether the file was damaged when it was read.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

/// The login of a provider among the entries of a file.
fn login_in(entries: &Map<String, Value>, provider: &ProviderId) -> Option<Credential> {
    Credential::from_value(entries.get(provider.as_str()).filter(|entry| entry["type"] == "oauth")?)
}

/// The locked file, as a refresh works on it.
#[derive(Debug)]
pub(super) struct LockedFile {
    path: PathBuf,
    lock: DirLock,
}

impl LockedFile {
    /// Waits for the lock, patiently.
    pub(super) async fn open(path: &Path, host: &Host) -> Result<Self, StoreAuthError> {
        let failed = |source| StoreAuthError::Lock { path: path.to_owned(), source };
        let lock = DirLock::acquire_async(&resolved(path), &Terms::PATIENT, host).await.map_err(failed)?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// What is in the file now.
    pub(super) fn entries(&self) -> Result<Map<String, Value>, StoreAuthError> {
        document::read_object(&self.path).map_err(StoreAuthError::Damaged)
    }

    /// Does `work` to its end and renews the lock meanwhile. A lock that is lost on the way shows when the file is written.
    pub(super) async fn during<T>(&mut self, host: &Host, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(Terms::PATIENT.stale / 2, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => drop(self.lock.renew(host)),
            }
        }
    }

    /// Writes a login, unless another one was stored meanwhile; the entries as they are then, and the login among them. The lock is taken
    /// again if it was lost: tokens that a server has given must not be lost too.
    pub(super) async fn store(
        &mut self,
        provider: &ProviderId,
        old: &Credential,
        fresh: Credential,
        host: &Host,
    ) -> Result<(Map<String, Value>, Credential), StoreAuthError> {
        if self.lock.check().is_err() {
            *self = Self::open(&self.path, host).await?;
        }
        let mut entries = self.entries()?;
        let now = login_in(&entries, provider);
        if let Some(other) = now.filter(|now| now.refresh != old.refresh && !now.is_over(host.now_ms())) {
            return Ok((entries, other));
        }
        entries.insert(provider.to_string(), fresh.to_value());
        let io_error = |source| StoreAuthError::Io { path: self.path.clone(), source };
        let text = json::to_pretty(&entries).map_err(|error| io_error(error.into()))?;
        self.lock.check().map_err(|source| StoreAuthError::Lock { path: self.path.clone(), source })?;
        write_atomic(&self.path, text.as_bytes(), Access::Keep).map_err(io_error)?;
        Ok((entries, fresh))
    }
}

/// The variables of one entry, which win over the environment for its provider.
fn own_env(entry: &Value, env: &Env) -> Env {
    match entry["env"].as_object() {
        Some(vars) => env.with(vars.iter().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))),
        None => env.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_others_wrote_survives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let host = Host::builder().env(Env::from_iter([("K", "from-env")])).build();
        let (mut storage, problems) = AuthStorage::load(&path);
        assert!(problems.is_empty());
        let other = r#"{"x":{"type":"future","z":1},"o":{"type":"api_key","key":"$K"}}"#;
        write_atomic(&path, other.as_bytes(), Access::Keep).unwrap();
        storage.store_key(&"anthropic".into(), "sk-1", &host).unwrap();
        let (again, _) = AuthStorage::load(&path);
        assert_eq!(again.entries["x"]["z"], 1);
        let key = |auth: Option<Auth>| auth.unwrap().key.unwrap().reveal().to_owned();
        assert_eq!(key(again.resolve(&"anthropic".into(), &host).await.unwrap()), "sk-1");
        assert_eq!(key(again.resolve(&"o".into(), &host).await.unwrap()), "from-env");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_file_is_reported_and_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        write_atomic(&path, b"{\"a\": ", Access::Keep).unwrap();
        let (mut storage, problems) = AuthStorage::load(&path);
        assert_eq!(problems.len(), 1);
        assert!(storage.store_key(&"a".into(), "k", &Host::builder().build()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\": ");
    }
}
