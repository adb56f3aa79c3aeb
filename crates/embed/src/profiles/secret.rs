//! Finds secrets that profiles refer to: in variables, in files, and in the output of programs.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinch_coding_agent::auth::AuthError;
use pinch_coding_agent::auth::config_value::Remembered;
use pinch_llm::ids::ProviderId;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::read_regular;
use pinch_stdx::host::{Env, Host};
use pinch_stdx::process::{ChildTree, Exit, ProcessEnd};
use pinch_stdx::secret::Secret;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::config::auth::clean_secret;
use crate::config::paths::expand_home;
use crate::config::secrets::{KeySource, SecretPlace, SecretProvider, SecretRef, SecretsConfig};

/// Size limit of secret files and of the output of programs, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Id of a secret that takes the whole file.
const WHOLE: &str = "value";
/// How long a program that timed out may take to exit.
const GRACE: Duration = Duration::from_millis(500);

/// Sources of secrets.
pub(super) struct SecretLookup<'a> {
    pub(super) config: &'a SecretsConfig,
    pub(super) host: &'a Host,
    /// Remembered output of commands in `auth.json`.
    pub(super) commands: &'a Remembered,
}

impl SecretLookup<'_> {
    /// Finds the secret for a provider's profile.
    ///
    /// # Errors
    /// [`AuthError`]. It contains no secrets.
    pub(super) async fn find(&self, source: &KeySource, of: &ProviderId) -> Result<Secret, AuthError> {
        let unresolved = |how: String| AuthError::Unresolved { what: format!("the key of {of}"), how };
        let missing = || AuthError::Missing { provider: of.clone() };
        let found = match source {
            KeySource::Text(_) => return plain(source, self.host.env()).ok_or_else(missing),
            KeySource::Value(value) => {
                let found = self.commands.resolve(value.reveal(), self.host.env()).await;
                found.map_err(|error| unresolved(error.to_string()))?
            }
            KeySource::Reference(reference) => self.look_up(reference).await.map_err(unresolved)?,
        };
        let found = clean_secret(&found);
        if found.is_empty() { Err(missing()) } else { Ok(Secret::new(found)) }
    }

    async fn look_up(&self, reference: &SecretRef) -> Result<String, String> {
        let SecretRef { provider, id, .. } = reference;
        let configured = self.config.providers.get(provider);
        match (reference.source, configured) {
            (SecretPlace::Env, configured) => {
                if let Some(SecretProvider::Env { allowed: Some(allowed) }) = configured
                    && !allowed.contains(id)
                {
                    return Err(format!(
                        "from environment variable {id}: secrets.providers.{provider} does not list it"
                    ));
                }
                let found = self.host.env().non_empty(id);
                found.map(str::to_owned).ok_or_else(|| format!("from environment variable: {id}"))
            }
            (SecretPlace::File, Some(SecretProvider::File { path, is_single })) => {
                let path = expand_home(Path::new(path), self.host.home());
                let (id, is_single) = (id.clone(), *is_single);
                let read = spawn_blocking(move || read_file(&path, &id, is_single)).await;
                read.map_err(|error| error.to_string())?
            }
            (SecretPlace::Exec, Some(SecretProvider::Exec { command, args, env, pass_env, timeout, json_only })) => {
                if !Path::new(command).is_absolute() {
                    return Err(format!("from {command}: it must be an absolute path"));
                }
                let mut program = std::process::Command::new(command);
                let passed = pass_env.iter().filter_map(|name| Some((name.as_str(), self.host.env().get(name)?)));
                program.args(args).env_clear().envs(passed).envs(env.iter().map(|(name, value)| (name, value)));
                let request = json!({"protocolVersion": 1, "provider": provider, "ids": [id]}).to_string();
                let printed = run(program, request, *timeout).await;
                let printed =
                    printed.ok_or_else(|| format!("from {command}: it failed, took too long or printed no text"))?;
                printed_secret(&printed, id, *json_only)
                    .ok_or_else(|| format!("from {command}: it printed no \"{id}\""))
            }
            _ => Err(format!("from {provider}: secrets.providers.{provider} is not configured for this")),
        }
    }
}

/// Returns a literal text, or the value of the variable it refers to.
pub(super) fn plain(source: &KeySource, env: &Env) -> Option<Secret> {
    match source {
        KeySource::Text(secret) | KeySource::Value(secret) => text(secret, env),
        KeySource::Reference(SecretRef { source: SecretPlace::Env, id, .. }) => env.non_empty(id).map(Secret::new),
        KeySource::Reference(_) => None,
    }
}

/// Returns a text, or the value of the variable it names as `${NAME}`.
pub(super) fn text(secret: &Secret, env: &Env) -> Option<Secret> {
    let text = secret.reveal().trim();
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let text = match name {
        Some(name) => env.non_empty(name)?,
        None => text,
    };
    (!text.is_empty()).then(|| Secret::new(text))
}

/// Returns whether a secret may exist, without reading files or running programs.
pub(super) fn may_be_found(source: &KeySource, env: &Env) -> bool {
    match source {
        KeySource::Reference(SecretRef { source: SecretPlace::File | SecretPlace::Exec, .. }) => true,
        KeySource::Value(value) => !value.is_empty(),
        KeySource::Text(_) | KeySource::Reference(_) => plain(source, env).is_some(),
    }
}

fn read_file(path: &Path, id: &str, is_single: bool) -> Result<String, String> {
    let problem = |what: &str| format!("from {}: {what}", path.display());
    let bytes = read_regular(path, MAX_BYTES as u64).map_err(|error| problem(&error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text"))?;
    if is_single {
        return if id == WHOLE { Ok(text) } else { Err(problem(&format!("its only id is \"{WHOLE}\""))) };
    }
    let document: Value = serde_json::from_str(&text).map_err(|_| problem("is not valid JSON"))?;
    let found = document.pointer(id).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| problem(&format!("there is no text at {id}")))
}

/// Runs a program with a text as its stdin and returns its output.
async fn run(mut program: std::process::Command, input: String, limit: Duration) -> Option<String> {
    let started = spawn_blocking(move || {
        // Unlike a pipe, a file cannot block.
        let mut file = tempfile::tempfile().ok()?;
        file.write_all(input.as_bytes()).ok()?;
        file.rewind().ok()?;
        program.stdin(file).stdout(Stdio::piped()).stderr(Stdio::null());
        ChildTree::spawn_as_is(program).ok()
    });
    let mut process = started.await.ok()??;
    let mut output = Vec::new();
    let mut keep = |data: &[u8]| {
        let room = MAX_BYTES.saturating_sub(output.len());
        output.extend_from_slice(&data[..data.len().min(room)]);
    };
    let ended = process.pump(&Cancel::new(), Some(limit), GRACE, &mut keep).await.ok()?;
    let text = String::from_utf8(output).ok()?;
    (ended == ProcessEnd::Exited(Exit::Code(0))).then_some(text)
}

fn printed_secret(printed: &str, id: &str, json_only: bool) -> Option<String> {
    match serde_json::from_str::<Value>(printed) {
        Ok(answer) if answer.is_object() => answer["values"][id].as_str().map(str::to_owned),
        _ if json_only => None,
        _ => Some(printed.to_owned()),
    }
}
