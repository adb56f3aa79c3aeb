//! The source of a machine's credentials.

use std::io::Read as _;
use std::path::Path;

use pinch_http::url_parts;
use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;
use serde::Deserialize;

use super::{CredentialsDigest, fingerprint};
use crate::error::{LlmError, LlmErrorKind};
use crate::keys;
use crate::request::Request;

/// Maximum bytes of a credentials file that are read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Default token URI for files that do not contain one.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// Name of the metadata server on machines in Google Cloud.
const METADATA_HOST: &str = "metadata.google.internal";
/// Variables that name another metadata server.
const METADATA_HOSTS: [&str; 2] = ["GCE_METADATA_HOST", "GCE_METADATA_IP"];
/// Variables set by Google Cloud services, which have a metadata server. It is not looked for anywhere else.
const INSIDE: [&str; 4] = ["K_SERVICE", "CLOUD_RUN_JOB", "FUNCTION_TARGET", "GAE_ENV"];

/// A source of tokens.
pub(super) enum TokenSource {
    /// A file.
    File {
        name: String,
        fingerprint: CredentialsDigest,
        quota_project: Option<String>,
        token_uri: String,
        grant: Grant,
    },
    /// The metadata server.
    Metadata { host: String },
}

/// A file's means to get a token.
pub(super) enum Grant {
    /// A user's login.
    Refresh { client_id: String, client_secret: Secret, refresh_token: Secret },
    /// A service account's key.
    Assertion { email: String, key_id: Option<String>, private_key: Secret },
}

#[derive(Deserialize)]
struct CredentialsFile {
    #[serde(rename = "type", default)]
    kind: String,
    token_uri: Option<String>,
    quota_project_id: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
}

impl TokenSource {
    /// Returns the credentials of a request's machine, or `None` if it has none.
    ///
    /// # Errors
    /// Returns an error if there is a file that cannot be used.
    pub(super) fn find(request: &Request) -> Result<Option<Self>, LlmError> {
        let env = request.host.env();
        let failed = |why: String| LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, why);
        let is_named = env.non_empty("GOOGLE_APPLICATION_CREDENTIALS").is_some();
        if let Some(path) = keys::google_default_file(env, request.host.home()) {
            match read(&path) {
                Ok(bytes) => return Self::from_file(&path, &bytes).map(Some).map_err(failed),
                Err(why) if is_named || why.kind() != std::io::ErrorKind::NotFound => {
                    let advice = if is_named { " (named by GOOGLE_APPLICATION_CREDENTIALS)" } else { "" };
                    let path = path.display();
                    return Err(failed(format!("Google credentials file {path}{advice} cannot be read: {why}")));
                }
                Err(_) => {}
            }
        }
        Ok(metadata_host(env).map(|host| Self::Metadata { host }))
    }

    fn from_file(path: &Path, bytes: &[u8]) -> Result<Self, String> {
        let name = path.display().to_string();
        // The parser's message may contain parts of the file, so it is omitted.
        let Ok(read) = serde_json::from_slice::<CredentialsFile>(bytes) else {
            return Err(format!("Google credentials file {name} is not JSON of the expected form."));
        };
        let needs = |member: &str, value: Option<String>| {
            value.filter(|v| !v.is_empty()).ok_or_else(|| format!("Google credentials file {name} has no {member}."))
        };
        let grant = match read.kind.as_str() {
            "authorized_user" => Grant::Refresh {
                client_id: needs("client_id", read.client_id)?,
                client_secret: needs("client_secret", read.client_secret)?.into(),
                refresh_token: needs("refresh_token", read.refresh_token)?.into(),
            },
            "service_account" => Grant::Assertion {
                email: needs("client_email", read.client_email)?,
                key_id: read.private_key_id,
                private_key: needs("private_key", read.private_key)?.into(),
            },
            kind => {
                return Err(format!(
                    "Google credentials file {name} is of type \"{}\", which is not supported. Run `gcloud auth \
                     application-default login`, name a service account's key in GOOGLE_APPLICATION_CREDENTIALS, or set \
                     GOOGLE_CLOUD_API_KEY.",
                    kind.chars().take(64).collect::<String>()
                ));
            }
        };
        let token_uri = read.token_uri.filter(|uri| !uri.is_empty()).unwrap_or_else(|| TOKEN_URI.to_owned());
        if !url_parts::is_confidential(&token_uri) {
            return Err(format!("Google credentials file {name} has a token_uri that is not https."));
        }
        let quota_project = read.quota_project_id.filter(|project| !project.is_empty());
        Ok(Self::File { name, fingerprint: fingerprint("file", bytes), quota_project, token_uri, grant })
    }

    /// Returns a fingerprint that identifies the credentials.
    pub(super) fn fingerprint(&self) -> CredentialsDigest {
        match self {
            Self::File { fingerprint, .. } => *fingerprint,
            Self::Metadata { host } => fingerprint("metadata", host.as_bytes()),
        }
    }

    /// Returns the project to bill, if it is not the requested one.
    pub(super) fn quota_project(&self) -> Option<&str> {
        match self {
            Self::File { quota_project, .. } => quota_project.as_deref(),
            Self::Metadata { .. } => None,
        }
    }

    /// Returns the host that tokens come from, for messages.
    pub(super) fn token_host(&self) -> String {
        match self {
            Self::File { token_uri, .. } => url_parts::host(token_uri),
            Self::Metadata { host } => host.clone(),
        }
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // Opening a pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn metadata_host(env: &Env) -> Option<String> {
    let named = METADATA_HOSTS.iter().find_map(|name| env.non_empty(name)).map(str::to_owned);
    let inside = || INSIDE.iter().any(|name| env.non_empty(name).is_some());
    named.or_else(|| inside().then(|| METADATA_HOST.to_owned()))
}
