//! `pinch auth …`: logging in and out, and printing credentials for scripts.
//!
//! Exit codes for scripts: 0 = credentials are configured, 1 = there are none, 2 = they are unusable.

mod login;
mod logout;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinch_embed::coding_agent::auth::{AuthError, AuthStorage, KeyLookup, RequestAuth as _};
use pinch_embed::coding_agent::document::Problem;
use pinch_embed::coding_agent::models::{ModelRegistry, RegistryAuth, pattern};
use pinch_embed::coding_agent::services::{DirectorySettings, ServiceOptions};
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::llm::oauth::OAuthCredential;
use pinch_embed::llm::request::Auth as Credentials;
use pinch_embed::stdx::host::Host;
use serde_json::json;

use crate::exit::{CommandFailure, tell, unwritten, warn_of};
use crate::folders::Folders;
use crate::output;

/// Exit code: there are no credentials.
const NOT_READY: u8 = 1;
/// Exit code: the credentials are unusable.
const INVALID: u8 = 2;

/// Error if neither a provider nor a model is given.
const PRINTING: &str = "Credential printing requires";

/// The subcommands of `auth`.
const COMMANDS: [&str; 5] = ["login", "logout", "print-api-key", "print-bearer-token", "check"];

/// The commands of `pinch auth`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuthCommand {
    /// Log in to a provider with a subscription or an API key
    Login(login::Args),
    /// Report whether requests to a provider would carry credentials: ready, not_ready or invalid
    Check(AuthCheck),
    /// Print the API key of a provider
    PrintApiKey(ProviderArgs),
    /// Print the access token of a provider's login, refreshed if necessary
    PrintBearerToken(Bearer),
    /// Remove the credentials of a provider from auth.json
    Logout(logout::Args),
}

/// Selects the owner of credentials.
#[derive(Debug, clap::Args)]
struct CredentialOwner {
    /// Provider, e.g. anthropic
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Provider of this model: an id, part of an id, or provider/id
    #[arg(long, value_name = "PATTERN")]
    model: Option<String>,
}

/// Selects credentials and their directory.
#[derive(Debug, clap::Args)]
pub(crate) struct ProviderArgs {
    #[command(flatten)]
    whose: CredentialOwner,

    /// Directory of auth.json and models.json (default: ~/.pinch/agent)
    #[arg(long, value_name = "DIR")]
    agent_dir: Option<PathBuf>,
}

/// Arguments of `pinch auth check`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuthCheck {
    #[command(flatten)]
    of: ProviderArgs,

    /// Print a JSON object with status, provider, authType or reason, and credentials
    #[arg(long)]
    json: bool,

    /// Print the credentials, too
    #[arg(long)]
    credentials: bool,

    /// Do not refresh an expired login
    #[arg(long)]
    no_refresh: bool,
}

/// Arguments of `pinch auth print-bearer-token`.
#[derive(Debug, clap::Args)]
pub(crate) struct Bearer {
    #[command(flatten)]
    of: ProviderArgs,

    /// Refresh the token unless it is valid for at least this time, e.g. 90s, 30m or 2h
    #[arg(long, value_name = "TIME", default_value = "5m")]
    min_expiry: String,
}

/// Returns whether a command is a short form of an `auth` subcommand.
pub(crate) fn is_short_form(word: &str) -> bool {
    matches!(word, "login" | "logout")
}

/// Returns the error for an unknown `auth` subcommand.
pub(crate) fn unknown(word: &str) -> Option<String> {
    if word.starts_with('-') || word == "help" || COMMANDS.contains(&word) {
        return None;
    }
    let known = COMMANDS.map(|name| format!("\"pinch auth {name}\""));
    let (last, others) = known.split_last()?;
    Some(format!("Unknown auth command \"{word}\". Use {}, or {last}.", others.join(", ")))
}

/// Runs the command.
pub(crate) async fn run(command: AuthCommand) -> Result<ExitCode, CommandFailure> {
    match command {
        AuthCommand::Login(args) => Box::pin(login::run(&args)).await,
        AuthCommand::Check(args) => check(&args).await,
        AuthCommand::PrintApiKey(of) => print_api_key(&of).await,
        AuthCommand::PrintBearerToken(args) => print_bearer_token(&args).await,
        AuthCommand::Logout(args) => logout::run(&args).await,
    }
}

impl CredentialOwner {
    /// Checks that one of the two is given; `what` is the requested action.
    fn check(&self, what: &str, code: u8) -> Result<(), ExitCode> {
        let wrong = |text: &str| {
            tell(&format_args!("Error: {text}"));
            Err(ExitCode::from(code))
        };
        match (&self.provider, &self.model) {
            (None, None) => wrong(&format!("{what} --provider <provider> or --model <model>")),
            _ => Ok(()),
        }
    }
}

/// The sources of credentials.
struct AuthSources {
    auth: RegistryAuth,
    registry: Arc<ModelRegistry>,
    host: Host,
    /// Problems in models.json.
    problems: Vec<Problem>,
}

impl AuthSources {
    /// Opens the documents of an agent directory. auth.json is read on first use.
    fn open(agent_dir: Option<&Path>) -> Result<Self, CommandFailure> {
        let host = Host::system();
        let folders = Folders::find(agent_dir, &host)?;
        // Problems in settings are reported where they matter.
        let (settings, _) = DirectorySettings::read(&ServiceOptions::new(host, &folders.agent_dir), &folders.cwd);
        let host = settings.host().clone();
        let (registry, problems) = ModelRegistry::load(&folders.agent_dir.join("models.json"));
        let registry = Arc::new(registry);
        let storage = AuthStorage::file(&folders.agent_dir.join("auth.json"));
        let auth = RegistryAuth::new(Arc::clone(&registry), storage, None, host.clone());
        Ok(Self { auth, registry, host, problems })
    }
}

/// The sources of credentials, and the selected provider.
struct AuthContext {
    auth: RegistryAuth,
    registry: Arc<ModelRegistry>,
    host: Host,
    provider: ProviderId,
    /// Problems in models or credentials.
    problems: Vec<Problem>,
}

impl AuthContext {
    /// Like [`AuthContext::read`], and prints problems in documents.
    fn set(of: &ProviderArgs) -> Result<Result<Self, String>, CommandFailure> {
        let context = Self::read(of)?;
        if let Ok(context) = &context {
            warn_of(&context.problems);
        }
        Ok(context)
    }

    /// Reads the documents. `Err` contains the name of an unknown provider or model.
    fn read(of: &ProviderArgs) -> Result<Result<Self, String>, CommandFailure> {
        let AuthSources { auth, registry, host, mut problems } = AuthSources::open(of.agent_dir.as_deref())?;
        auth.storage().entries();
        problems.extend(auth.storage().drain_problems());
        let provider = match (&of.whose.provider, &of.whose.model) {
            (Some(name), None) => {
                let stored = auth.storage().providers().into_iter().find(|id| id.as_str() == name);
                registry.provider(name).or(stored).ok_or_else(|| name.clone())
            }
            (name, model) => {
                let model = model.as_deref().unwrap_or_default();
                let is_configured = |provider: &ProviderId| auth.is_configured(provider);
                let found = pattern::resolve(&registry, name.as_deref(), model, &is_configured);
                match found {
                    Ok(found) => Ok(found.model.provider.clone()),
                    Err(error @ pattern::NotFound::Ambiguous { .. }) => {
                        return Err(CommandFailure::user(error.to_string()));
                    }
                    Err(_) => Err(model.to_owned()),
                }
            }
        };
        Ok(provider.map(|provider| Self { auth, registry, host, provider, problems }))
    }

    /// Returns the credentials of a request, or why there are none.
    async fn credentials(&self, no_refresh: bool) -> Result<Credentials, Unavailable> {
        let login = self.auth.storage().get(&self.provider).filter(|entry| entry["type"] == "oauth");
        if no_refresh && let Some(login) = login {
            let login = OAuthCredential::from_value(&login)
                .ok_or_else(|| Unavailable::Invalid("the login is invalid".to_owned()))?;
            return Ok(Credentials::key(login.access));
        }
        let found = match self.registry.default_model(&self.provider) {
            Some(model) => self.auth.key_and_headers(&model, KeyLookup::Value).await,
            None => self.auth.key(&self.provider, KeyLookup::Value).await,
        };
        // Renewed credentials must be stored before the program exits.
        self.auth.settle().await;
        let is_there = |auth: &Credentials| auth.key.is_some() || auth.keyless;
        match found {
            Ok(Some(found)) if is_there(&found) => Ok(found),
            Ok(_)
            | Err(AuthError::Missing { .. } | AuthError::MissingForHeader { .. } | AuthError::Unresolved { .. })
                if !self.auth.is_configured(&self.provider) =>
            {
                // An unreadable document may contain them.
                match self.problems.first() {
                    Some(problem) => Err(Unavailable::Invalid(problem.to_string())),
                    None => Err(Unavailable::NotConfigured),
                }
            }
            Ok(_) => Err(Unavailable::NotConfigured),
            Err(error) => Err(Unavailable::Invalid(error.to_string())),
        }
    }

    fn auth_type(&self) -> &'static str {
        if self.auth.is_using_oauth(&self.provider) { "oauth" } else { "api_key" }
    }
}

/// The reason why there are no credentials.
enum Unavailable {
    /// The provider is unknown.
    UnknownProvider,
    /// No credentials are configured.
    NotConfigured,
    /// Requests are authorized, but neither by a key nor by a token.
    NotAvailable,
    /// The credentials are unusable, for this reason.
    Invalid(String),
}

impl Unavailable {
    fn reason(&self) -> &'static str {
        match self {
            Self::UnknownProvider => "provider_not_found",
            Self::NotConfigured => "credentials_not_configured",
            Self::NotAvailable => "credential_not_available",
            Self::Invalid(_) => "invalid_state",
        }
    }

    fn status(&self) -> (&'static str, u8) {
        match self {
            Self::UnknownProvider | Self::NotConfigured | Self::NotAvailable => ("not_ready", NOT_READY),
            Self::Invalid(_) => ("invalid", INVALID),
        }
    }

    /// Prints the reason and returns the exit code.
    fn tell(&self, name: &str) -> ExitCode {
        let text = match self {
            Self::UnknownProvider => format!("Unknown provider \"{name}\""),
            Self::NotConfigured | Self::NotAvailable => format!("No credentials are configured for {name}"),
            Self::Invalid(why) => format!("the credentials of {name} cannot be used: {why}"),
        };
        tell(&format_args!("Error: {text}"));
        ExitCode::from(self.status().1)
    }
}

async fn check(args: &AuthCheck) -> Result<ExitCode, CommandFailure> {
    if let Err(code) = args.of.whose.check("Auth checks require", INVALID) {
        return Ok(code);
    }
    // Prints only the result; `doctor` reports more.
    let (name, done) = match AuthContext::read(&args.of)? {
        // The provider of an unknown model is unknown too.
        Err(name) if args.of.whose.model.is_some() => (name, Err(Unavailable::Invalid("no such model".to_owned()))),
        Err(name) => (name, Err(Unavailable::UnknownProvider)),
        Ok(context) => {
            let found = context.credentials(args.no_refresh).await;
            (context.provider.to_string(), found.map(|found| (found, context.auth_type())))
        }
    };
    let done = done.and_then(|(found, auth_type)| match bearer(&found) {
        None if args.credentials => Err(Unavailable::NotAvailable),
        bearer => Ok((bearer.filter(|_| args.credentials), auth_type)),
    });
    let (status, code) = done.as_ref().map_or_else(Unavailable::status, |_| ("ready", 0));
    if args.json {
        let mut shown = json!({"status": status, "provider": name});
        match &done {
            Ok((bearer, auth_type)) => {
                shown["authType"] = (*auth_type).into();
                if let Some(bearer) = bearer {
                    shown["credentials"] = bearer.as_str().into();
                }
            }
            Err(answer) => shown["reason"] = answer.reason().into(),
        }
        print(&shown.to_string())?;
    } else {
        print(done.as_ref().ok().and_then(|(bearer, _)| bearer.as_deref()).unwrap_or(status))?;
    }
    Ok(ExitCode::from(code))
}

/// Returns the key or token of requests.
fn bearer(found: &Credentials) -> Option<String> {
    if let Some(key) = &found.key {
        return Some(key.reveal().to_owned());
    }
    let mut headers = found.headers.iter();
    let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
    let (scheme, token) = value.as_deref()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start().to_owned())
}

async fn print_api_key(of: &ProviderArgs) -> Result<ExitCode, CommandFailure> {
    if let Err(code) = of.whose.check(PRINTING, NOT_READY) {
        return Ok(code);
    }
    let context = match AuthContext::set(of)? {
        Ok(context) => context,
        Err(name) => return Ok(Unavailable::UnknownProvider.tell(&name)),
    };
    let name = context.provider.as_str();
    if context.auth.is_using_oauth(&context.provider) {
        tell(&format_args!("Error: Provider \"{name}\" is configured with OAuth, not an API key"));
        return Ok(ExitCode::from(NOT_READY));
    }
    match context.credentials(false).await {
        Ok(Credentials { key: Some(key), .. }) => print(key.reveal()).map(|()| ExitCode::SUCCESS),
        Ok(_) | Err(Unavailable::NotConfigured) => {
            tell(&"Error: No usable API key is configured");
            Ok(ExitCode::from(NOT_READY))
        }
        Err(answer) => Ok(answer.tell(name)),
    }
}

async fn print_bearer_token(args: &Bearer) -> Result<ExitCode, CommandFailure> {
    if let Err(code) = args.of.whose.check(PRINTING, NOT_READY) {
        return Ok(code);
    }
    let min_expiry = parse_time(&args.min_expiry)
        .ok_or_else(|| CommandFailure::user("--min-expiry must use a duration such as 30m or 1h"))?;
    let context = match AuthContext::set(&args.of)? {
        Ok(context) => context,
        Err(name) => return Ok(Unavailable::UnknownProvider.tell(&name)),
    };
    let name = context.provider.as_str();
    let logins = context.auth.logins();
    let found = logins.lasting(&context.provider, context.auth.storage(), &context.host, min_expiry).await;
    context.auth.settle().await;
    let answer = match found {
        Ok(Some(login)) => {
            let left = i64::try_from(min_expiry.as_millis()).unwrap_or(i64::MAX);
            if !login.is_expired(context.host.now_ms().saturating_add(left)) {
                return print(login.access.reveal()).map(|()| ExitCode::SUCCESS);
            }
            let wanted = min_expiry.as_secs();
            Unavailable::Invalid(format!("the provider issues no token that is valid for {wanted} s"))
        }
        Ok(None) if context.problems.is_empty() => {
            tell(&format_args!("Error: Provider \"{name}\" is not configured with an OAuth bearer token"));
            return Ok(ExitCode::from(NOT_READY));
        }
        Ok(None) => Unavailable::Invalid("a document cannot be read".to_owned()),
        Err(error) => Unavailable::Invalid(error.to_string()),
    };
    Ok(answer.tell(name))
}

fn print(line: &str) -> Result<(), CommandFailure> {
    writeln!(output::stdout(), "{line}").map_err(|error| unwritten(&error))
}

/// Parses seconds, or a number with the unit s, m or h.
fn parse_time(text: &str) -> Option<Duration> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('h') => (number, 3_600),
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let seconds = number.parse::<u32>().ok().and_then(|number| u64::from(number).checked_mul(factor));
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let seconds = |text: &str| parse_time(text).map(|time| time.as_secs());
        assert_eq!(["90", "90s", "30m", "2h"].map(seconds), [Some(90), Some(90), Some(1_800), Some(7_200)]);
        assert_eq!(["", "m", "-1s", "1d", "99999999999h", "é"].map(seconds), [None; 6]);
    }
}
