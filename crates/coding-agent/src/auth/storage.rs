//! auth.json: stored keys and logins, in the same file and under the same lock as pi's.

use std::io;
use std::path::{Path, PathBuf};

use pinch_llm::ids::ProviderId;
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
        let (entries, problems) = match document::read_object(path) {
            Ok(entries) => (entries, Vec::new()),
            Err(problem) => (Map::new(), vec![problem]),
        };
        (Self { path: path.to_owned(), entries, broken: !problems.is_empty() }, problems)
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
                let access = entry["access"].as_str().unwrap_or_default();
                let expires = entry["expires"].as_f64().unwrap_or(0.0);
                if access.is_empty() || host.now_ms() as f64 >= expires {
                    return Err(AuthError::Expired { provider: provider.clone() });
                }
                Ok(Some(Auth::key(access)))
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
        let lock = DirLock::acquire(&self.path, &Terms::QUICK, host)
            .map_err(|source| StoreAuthError::Lock { path: self.path.clone(), source })?;
        let mut entries = document::read_object(&self.path).map_err(StoreAuthError::Damaged)?;
        change(&mut entries);
        let text = json::to_pretty(&entries).map_err(|error| io_error(error.into()))?;
        lock.check().map_err(|source| StoreAuthError::Lock { path: self.path.clone(), source })?;
        write_atomic(&self.path, text.as_bytes(), Access::Private).map_err(io_error)?;
        self.entries = entries;
        self.broken = false;
        Ok(())
    }

    /// Whether the file was damaged when it was read.
    pub fn is_broken(&self) -> bool {
        self.broken
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
