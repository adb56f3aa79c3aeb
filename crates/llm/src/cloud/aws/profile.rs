//! Credentials from a profile in the user's files.

use std::process::{Command, Stdio};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::process::{ChildTree, Exit, ProcessEnd};
use pinch_stdx::secret::Secret;

use super::files::{expand, read_file};
use super::{AwsKeys, Cx, Fetched, Lasts, env_keys, failed, remote};
use crate::error::LlmError;

/// Maximum length of a chain of profiles.
const MAX_DEPTH: usize = 8;
/// Time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Grace period of a stopped command.
const COMMAND_GRACE: Duration = Duration::from_secs(1);
/// Maximum bytes of a command's output that are read.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Maximum number of cached login tokens to check.
const MAX_TOKENS: usize = 256;

const NO_LOGIN_SESSIONS: &str = "logins of `aws login` are not supported. Make another profile with \
    credential_process = aws configure export-credentials --format process --profile …, and use that.";
const NO_DEVICE_CODES: &str = "roles that want a code of a device (mfa_serial) are not supported. Get credentials with \
    `aws sts assume-role`, and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.";
const NO_OUTPUT: &str =
    "credential_process printed no credentials: expected JSON with AccessKeyId and SecretAccessKey.";

/// Returns the credentials of the named profile, or of the default one; `None` if it has none.
///
/// # Errors
/// Returns an error if a named profile does not exist, or if its credentials are unavailable.
pub(super) async fn fetch(cx: Cx<'_>, named: Option<&str>) -> Result<Option<Fetched>, LlmError> {
    let name = named.unwrap_or("default");
    if cx.files.has(name) {
        return of_profile(cx, name, Vec::new()).await;
    }
    match named {
        Some(name) => {
            let text = format!("AWS profile \"{name}\" is not in {}. Add it, or unset AWS_PROFILE.", cx.files.names());
            Err(failed(cx.request, text))
        }
        None => Ok(None),
    }
}

/// Resolves one profile, with the help of others. `seen` contains the profiles visited so far.
fn of_profile<'a>(cx: Cx<'a>, name: &'a str, seen: Vec<&'a str>) -> BoxFuture<'a, Result<Option<Fetched>, LlmError>> {
    Box::pin(async move {
        let value = |key: &str| cx.files.value(name, key);
        // A profile that serves as a source is used through its keys first: it may name itself.
        if !seen.is_empty()
            && let Some(keys) = static_keys(cx, name)
        {
            return Ok(Some(keys));
        }
        if seen.contains(&name) || seen.len() >= MAX_DEPTH {
            return Err(refused(cx, name, "its source_profile leads back to itself. Break the circle."));
        }
        if let Some(role) = value("role_arn") {
            if let Some(file) = value("web_identity_token_file") {
                let session = value("role_session_name");
                let identity = remote::WebIdentity { token_file: file, role, session, region: value("region") };
                return remote::web_identity(cx, identity).await.map(Some);
            }
            if value("source_profile").is_some() || value("credential_source").is_some() {
                return assume(cx, name, role, seen).await.map(Some);
            }
        }
        if let Some(keys) = static_keys(cx, name) {
            return Ok(Some(keys));
        }
        if let Some(command) = value("credential_process") {
            return process(cx, name, command).await.map(Some);
        }
        if value("sso_session").is_some() || value("sso_start_url").is_some() {
            return sso(cx, name).await.map(Some);
        }
        match value("login_session") {
            Some(_) => Err(refused(cx, name, NO_LOGIN_SESSIONS)),
            None => Ok(None),
        }
    })
}

fn refused(cx: Cx<'_>, profile: &str, why: &str) -> LlmError {
    failed(cx.request, format!("AWS profile \"{profile}\" of {}: {why}", cx.files.names()))
}

fn static_keys(cx: Cx<'_>, profile: &str) -> Option<Fetched> {
    let value = |key: &str| cx.files.value(profile, key);
    let keys = AwsKeys {
        access_key_id: value("aws_access_key_id")?.to_owned(),
        secret_access_key: value("aws_secret_access_key")?.into(),
        session_token: value("aws_session_token").map(Secret::from),
    };
    Some(Fetched { keys, lasts: Lasts::ReadAgain })
}

/// Assumes a role with the credentials of another source.
async fn assume<'a>(cx: Cx<'a>, name: &'a str, role: &'a str, mut seen: Vec<&'a str>) -> Result<Fetched, LlmError> {
    let value = |key: &str| cx.files.value(name, key);
    if value("mfa_serial").is_some() {
        return Err(refused(cx, name, NO_DEVICE_CODES));
    }
    let by = match (value("source_profile"), value("credential_source")) {
        (Some(source), _) => {
            if !cx.files.has(source) {
                return Err(refused(cx, name, &format!("its source_profile \"{source}\" is not there. Add it.")));
            }
            seen.push(name);
            of_profile(cx, source, seen).await?
        }
        (None, Some("Environment")) => {
            env_keys(cx.request.host.env()).map(|keys| Fetched { keys, lasts: Lasts::ReadAgain })
        }
        (None, Some("EcsContainer")) => remote::container(cx).await?,
        (None, Some("Ec2InstanceMetadata")) => remote::machine(cx).await?,
        (None, other) => {
            let other = other.unwrap_or("");
            let known = "Use Environment, EcsContainer or Ec2InstanceMetadata.";
            return Err(refused(cx, name, &format!("credential_source \"{other}\" is not known. {known}")));
        }
    };
    let Some(by) = by else {
        return Err(refused(cx, name, "there are no credentials to assume its role with. Check source_profile."));
    };
    let role = remote::AssumedRole {
        arn: role,
        session: value("role_session_name"),
        external_id: value("external_id"),
        seconds: value("duration_seconds"),
        region: value("region"),
    };
    remote::assume_role(cx, role, &by.keys).await
}

/// Runs a command that prints credentials.
async fn process(cx: Cx<'_>, name: &str, line: &str) -> Result<Fetched, LlmError> {
    let host = &cx.request.host;
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(shell);
    command.arg(flag).arg(line).env_clear().envs(host.env().iter());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(home) = host.home().filter(|home| home.is_dir()) {
        command.current_dir(home);
    }
    let mut child = ChildTree::spawn_as_is(command)
        .map_err(|error| refused(cx, name, &format!("credential_process does not start: {error}")))?;
    let mut output = Vec::new();
    let mut collect = |piece: &[u8]| {
        let room = MAX_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(&piece[..piece.len().min(room)]);
    };
    // On a timeout, dropping the process kills it.
    let ended = child.pump(&Cancel::new(), Some(COMMAND_LIMIT), COMMAND_GRACE, &mut collect).await;
    // The output may contain keys, so it is not reported.
    let why = match ended {
        Ok(ProcessEnd::Exited(Exit::Code(0))) => {
            return remote::from_json(&output).ok_or_else(|| refused(cx, name, NO_OUTPUT));
        }
        Ok(ProcessEnd::Exited(exit)) => {
            format!("credential_process failed with status {}. Run it by hand to see why.", exit.status())
        }
        Ok(_) => format!("credential_process took longer than {} s.", COMMAND_LIMIT.as_secs()),
        Err(error) => format!("credential_process could not be run: {error}"),
    };
    Err(refused(cx, name, &why))
}

/// Uses a login of `aws sso login`.
async fn sso(cx: Cx<'_>, name: &str) -> Result<Fetched, LlmError> {
    let session = cx.files.value(name, "sso_session");
    let value = |key: &str| {
        let of_session = session.and_then(|session| cx.files.session_value(session, key));
        of_session.or_else(|| cx.files.value(name, key))
    };
    let wanted = |key: &str| value(key).ok_or_else(|| refused(cx, name, &format!("{key} is missing. Add it.")));
    let (start_url, region) = (wanted("sso_start_url")?, wanted("sso_region")?);
    let (account, role) = (wanted("sso_account_id")?, wanted("sso_role_name")?);
    let log_in =
        || refused(cx, name, &format!("its login is over or was never made. Run `aws sso login --profile {name}`."));
    let token = cached_token(cx, start_url).await.map_err(|text| failed(cx.request, text))?.ok_or_else(log_in)?;
    remote::sso(cx, remote::SsoRole { region, account, role, token: &token }).await?.ok_or_else(log_in)
}

/// Returns the token that `aws sso login` cached for a start URL, if it is still valid.
async fn cached_token(cx: Cx<'_>, start_url: &str) -> Result<Option<Secret>, String> {
    let host = &cx.request.host;
    let Some(home) = host.home() else { return Ok(None) };
    let folder = expand("~/.aws/sso/cache", Some(home));
    let listing = tokio::task::spawn_blocking(move || -> Vec<std::path::PathBuf> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).take(MAX_TOKENS).collect()
    });
    let now = host.now_ms();
    let mut best: Option<(i64, Secret)> = None;
    for path in listing.await.unwrap_or_default() {
        let text = read_file(&path).await?;
        let Ok(file) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        let is_it =
            file["startUrl"].as_str().is_some_and(|url| url.trim_end_matches('/') == start_url.trim_end_matches('/'));
        let end = file["expiresAt"].as_str().and_then(remote::time);
        if let (Some(token), Some(end), true) = (file["accessToken"].as_str(), end, is_it)
            && end > now
            && best.as_ref().is_none_or(|(known, _)| end > *known)
        {
            best = Some((end, token.into()));
        }
    }
    Ok(best.map(|(_, token)| token))
}
