//! `pinch auth login`: logs in to a provider and stores the credentials.

use std::path::PathBuf;
use std::process::ExitCode;

use pinch_embed::coding_agent::auth::storage::StoreAuthError;
use pinch_embed::coding_agent::login::{LoggedIn, LoginError, LoginMethod, LoginProvider, LoginRequest, status};
use pinch_embed::coding_agent::models::RegistryAuth;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::secret::Secret;
use pinch_embed::stdx::text::with_causes;

use super::{AuthSources, print};
use crate::exit::{Blame, CommandFailure, tell, warn, warn_of};
use crate::line_input::LineInput;
use crate::signals;

mod conversation;

use conversation::LoginConversation;

/// Arguments of `pinch auth login`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Provider, e.g. anthropic; without one, choose from a list
    provider: Option<String>,

    /// Login method (default: ask if there are several, subscription without a terminal)
    #[arg(long, value_enum, value_name = "METHOD")]
    method: Option<Method>,

    /// Same as --method api-key
    #[arg(long, hide = true, conflicts_with = "method")]
    api_key: bool,

    /// Read the API key from stdin
    #[arg(long)]
    api_key_stdin: bool,

    /// Print the URL and wait for a pasted code instead of opening a browser
    #[arg(long, conflicts_with_all = ["api_key", "api_key_stdin"])]
    no_browser: bool,

    /// Store an API key without checking it with the provider
    #[arg(long)]
    no_check: bool,

    /// Directory of auth.json and models.json (default: ~/.pinch/agent)
    #[arg(long, value_name = "DIR")]
    agent_dir: Option<PathBuf>,
}

/// A login method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    Subscription,
    ApiKey,
}

impl Args {
    /// Returns the requested method.
    fn method(&self) -> Result<Option<LoginMethod>, CommandFailure> {
        let named = self.method.map(|method| match method {
            Method::Subscription => LoginMethod::Subscription,
            Method::ApiKey => LoginMethod::ApiKey,
        });
        match named {
            Some(LoginMethod::Subscription) if self.api_key_stdin => {
                Err(CommandFailure::user("--api-key-stdin cannot be used with --method subscription"))
            }
            None if self.api_key || self.api_key_stdin => Ok(Some(LoginMethod::ApiKey)),
            named => Ok(named),
        }
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<ExitCode, CommandFailure> {
    let method = args.method()?;
    let sources = AuthSources::open(args.agent_dir.as_deref())?;
    warn_of(&sources.problems);
    let cancel = Cancel::new();
    let (done, signal) = signals::guard(&cancel, log_in(args, method, &sources, &cancel)).await;
    match (done, signal) {
        (Ok(done), _) => report(&done),
        (Err(LoginFailure::Login(LoginError::Cancelled)), Some(code)) => {
            tell(&LoginError::Cancelled);
            Ok(code)
        }
        (Err(LoginFailure::Login(error)), _) => Err(failure(&error, &sources.auth)),
        (Err(LoginFailure::Command(failure)), _) => Err(failure),
    }
}

/// The reason why the login failed.
enum LoginFailure {
    Login(LoginError),
    Command(CommandFailure),
}

async fn log_in(
    args: &Args,
    method: Option<LoginMethod>,
    sources: &AuthSources,
    cancel: &Cancel,
) -> Result<LoggedIn, LoginFailure> {
    let input = LineInput::new();
    let mut conversation = LoginConversation::new(input, &sources.host, !args.no_browser);
    let give_up = |_| LoginFailure::Login(LoginError::Cancelled);
    let provider = match &args.provider {
        Some(name) => name.clone(),
        None => {
            let choice = choose(&sources.auth, &mut conversation, args.api_key_stdin);
            cancel.run(choice).await.map_err(give_up)?.map_err(LoginFailure::Command)?
        }
    };
    let mut request = LoginRequest::new(&*provider).with_method(method);
    if args.no_check {
        request = request.without_check();
    }
    if args.api_key_stdin {
        let read = cancel.run(conversation.into_rest()).await.map_err(give_up)?;
        let key =
            read.map_err(|error| LoginFailure::Command(CommandFailure::user(format!("cannot read stdin: {error}"))))?;
        request = request.with_key(Secret::new(key));
        conversation = LoginConversation::new(LineInput::new(), &sources.host, !args.no_browser);
    } else if !conversation.is_terminal() {
        request = without_terminal(request, &sources.auth).map_err(LoginFailure::Command)?;
    }
    conversation.log_in(request, &sources.auth, cancel).await.map_err(LoginFailure::Login)
}

/// Rejects requests that need a choice or a typed key, because there is no terminal.
fn without_terminal(mut request: LoginRequest, auth: &RegistryAuth) -> Result<LoginRequest, CommandFailure> {
    let Some(provider) = LoginProvider::find(auth, &request.provider) else { return Ok(request) };
    request.method = request.method.or(provider.methods.first().copied());
    if request.method == Some(LoginMethod::ApiKey) {
        let id = &provider.id;
        return Err(CommandFailure::user(format!(
            "cannot ask for the API key, because stdin is not a terminal\n\
             hint: pipe it to: pinch auth login {id} --api-key-stdin"
        )));
    }
    Ok(request)
}

/// Lists the providers with their status and asks for one.
async fn choose(
    auth: &RegistryAuth,
    conversation: &mut LoginConversation<'_>,
    needs_stdin: bool,
) -> Result<String, CommandFailure> {
    let all = LoginProvider::all(auth);
    let width = |text: fn(&LoginProvider) -> &str| all.iter().map(|provider| text(provider).chars().count()).max();
    let ids = width(|provider| provider.id.as_str()).unwrap_or(0);
    let names = width(|provider| provider.name.as_str()).unwrap_or(0);
    for (at, provider) in all.iter().enumerate() {
        let LoginProvider { id, name, .. } = provider;
        let status = status(auth, provider, None).await;
        print(&format!("{:>3}  {:ids$}  {name:names$}  {status}", at + 1, id.as_str()))?;
    }
    if needs_stdin || !conversation.is_terminal() {
        let why = if needs_stdin { "stdin has the API key" } else { "stdin is not a terminal" };
        return Err(CommandFailure::user(format!(
            "no provider was named, and {why}\nhint: name one, e.g. pinch auth login anthropic"
        )));
    }
    let ids: Vec<&str> = all.iter().map(|provider| provider.id.as_str()).collect();
    let chosen = conversation.choose("Provider (number or id)", &ids, None).await;
    chosen.map(|at| ids[at].to_owned()).ok_or_else(cancelled)
}

fn report(done: &LoggedIn) -> Result<ExitCode, CommandFailure> {
    if let Some(why) = &done.unchecked {
        warn(&format!("the API key could not be checked: {why}"));
    }
    warn_of(&done.problems);
    print(&done.to_string()).map(|()| ExitCode::SUCCESS)
}

fn cancelled() -> CommandFailure {
    CommandFailure::bare(Blame::User, LoginError::Cancelled.to_string())
}

fn failure(error: &LoginError, auth: &RegistryAuth) -> CommandFailure {
    let text = error.to_string();
    match error {
        LoginError::Cancelled => cancelled(),
        LoginError::UnknownProvider { .. } => {
            let mut ids: Vec<String> =
                LoginProvider::all(auth).iter().map(|provider| provider.id.to_string()).collect();
            ids.sort();
            CommandFailure::bare(Blame::User, format!("{text}.\nProviders: {}", ids.join(", ")))
        }
        LoginError::KeyRejected { .. } => {
            CommandFailure::new(Blame::Provider, format!("{text}\nhint: to store it anyway, use --no-check"))
        }
        LoginError::Flow { .. } => CommandFailure::new(Blame::Provider, text),
        LoginError::Store(why @ StoreAuthError::Damaged(_)) => CommandFailure::configuration(why.to_string()),
        LoginError::Store(why) => CommandFailure::internal(with_causes(why)),
        _ => CommandFailure::user(text),
    }
}
