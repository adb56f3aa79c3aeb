//! Logins that other command-line programs store in the home directory. They are read, but never written or renewed, which would invalidate
//! the login of the other program. Keychains are not opened, and the user is not prompted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinch_llm::ids::ProviderId;
use pinch_stdx::fs::{FileStamp, read_regular};
use pinch_stdx::secret::Secret;
use serde_json::Value;

use super::file::{Credential, Profile};
use crate::key::ProfileId;

/// Size limit of a file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// A stored login that expires within this time is compared with the file, in milliseconds.
const NEAR_EXPIRY_MS: i64 = 10 * 60_000;

/// A program that stores a login.
struct ExternalLogin {
    /// Id of the profile for the login.
    id: &'static str,
    provider: &'static str,
    /// The file, relative to the home directory.
    file: &'static str,
    /// Whether the login is used even if nothing names its profile.
    is_implicit: bool,
    /// Names of the members with the access token and with the expiry time in milliseconds.
    access: &'static str,
    expires: &'static str,
}

const LOGINS: [ExternalLogin; 4] = [
    ExternalLogin {
        id: "qwen-portal:qwen-cli",
        provider: "qwen-portal",
        file: ".qwen/oauth_creds.json",
        is_implicit: true,
        access: "/access_token",
        expires: "/expiry_date",
    },
    ExternalLogin {
        id: "minimax-portal:minimax-cli",
        provider: "minimax-portal",
        file: ".minimax/oauth_creds.json",
        is_implicit: true,
        access: "/access_token",
        expires: "/expiry_date",
    },
    // Earlier releases copied these into the store. They are updated if the store or the configuration names them.
    ExternalLogin {
        id: "anthropic:claude-cli",
        provider: "anthropic",
        file: ".claude/.credentials.json",
        is_implicit: false,
        access: "/claudeAiOauth/accessToken",
        expires: "/claudeAiOauth/expiresAt",
    },
    ExternalLogin {
        id: "openai-codex:codex-cli",
        provider: "openai-codex",
        file: ".codex/auth.json",
        is_implicit: false,
        access: "/tokens/access_token",
        expires: "",
    },
];

/// Assumed lifetime of a token after its file was written, if the file does not contain it, in milliseconds.
const UNKNOWN_LIFETIME_MS: i64 = 60 * 60_000;

/// Logins of other programs as last read.
#[derive(Debug, Default)]
pub(super) struct ExternalLogins {
    home: Option<PathBuf>,
    read: Mutex<Vec<ReadLogin>>,
}

/// Id of a login, state of its file, and its content.
type ReadLogin = (&'static str, Option<FileStamp>, Option<Profile>);

impl ExternalLogins {
    pub(super) fn new(home: Option<&Path>) -> Self {
        Self { home: home.map(Path::to_owned), read: Mutex::default() }
    }

    /// Rereads files that have changed.
    pub(super) fn reload(&self) {
        let Some(home) = &self.home else { return };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        for login in &LOGINS {
            let path = home.join(login.file);
            let stamp = FileStamp::of(&path);
            if read.iter().any(|(id, seen, _)| *id == login.id && *seen == stamp) {
                continue;
            }
            read.retain(|(id, ..)| *id != login.id);
            read.push((login.id, stamp, stamp.and_then(|_| read_login(login, &path))));
        }
    }

    /// Replaces and adds profiles: a login is used if it is not stored, or if the stored one is about to expire and expires earlier.
    /// `is_named` returns whether the configuration names a profile.
    pub(super) fn overlay(&self, profiles: &mut Vec<Profile>, is_named: impl Fn(&ProfileId) -> bool, now: i64) {
        for login in &LOGINS {
            let id = ProfileId::from(login.id);
            let stored = profiles.iter().position(|profile| profile.id == id);
            if stored.is_none() && !login.is_implicit && !is_named(&id) {
                continue;
            }
            let is_stored_good = stored.is_some_and(|at| {
                profiles[at].provider.as_str() == login.provider
                    && expiry(&profiles[at]) > now.saturating_add(NEAR_EXPIRY_MS)
            });
            if is_stored_good {
                continue;
            }
            let Some(found) = self.find(login) else { continue };
            match stored {
                None => profiles.push(found),
                Some(at) if profiles[at].provider != found.provider || expiry(&found) > expiry(&profiles[at]) => {
                    profiles[at] = found;
                }
                Some(_) => {}
            }
        }
    }

    /// Returns the login in a program's file as last read.
    fn find(&self, login: &ExternalLogin) -> Option<Profile> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter().find(|(id, ..)| *id == login.id)?.2.clone()
    }
}

fn read_login(login: &ExternalLogin, path: &Path) -> Option<Profile> {
    let document: Value = serde_json::from_slice(&read_regular(path, MAX_BYTES).ok()?).ok()?;
    let access = document.pointer(login.access)?.as_str().map(str::trim).filter(|token| !token.is_empty())?;
    let expires = match login.expires {
        "" => written_at(path)?.saturating_add(UNKNOWN_LIFETIME_MS),
        at => document.pointer(at)?.as_f64()? as i64,
    };
    Some(Profile {
        id: login.id.into(),
        provider: ProviderId::new(login.provider),
        credential: Credential::OAuth { access: Secret::new(access), refreshable: false, expires, project: None },
        place: None,
    })
}

fn written_at(path: &Path) -> Option<i64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    i64::try_from(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Returns when a profile expires; a profile that is not a login never does.
fn expiry(profile: &Profile) -> i64 {
    match profile.credential {
        Credential::OAuth { expires, .. } => expires,
        Credential::ApiKey(_) | Credential::Token { .. } => i64::MAX,
    }
}
