//! `pinch chat`: a chat with embedded agents in a terminal.

mod history;
mod progress;
mod questions;
mod prompt_sizes;
mod auth_profiles;
mod login;
mod backend;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinch_embed::coding_agent::machine::LocalMachine;
use pinch_embed::coding_agent::models::local_servers;
use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_embed::coding_agent::tools::ToolParts;
use pinch_embed::coding_agent::tools::bash::{BashTool, Shell};
use pinch_embed::coding_agent::tools::path::WorkingDirectory;
use pinch_embed::config::Config;
use pinch_embed::config::thinking::{LEVELS, parse_level};
use pinch_embed::engine::Engine;
use pinch_embed::key::AgentId;
use pinch_embed::plugin::Plugin;
use pinch_embed::ports::{ApprovalBroker, QuestionBroker};
use pinch_embed::run::RunError;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_tui::chat::{ChatEnd, ChatOptions, ChatStartError, Verbosity, chat};

use self::backend::EmbeddedChat;
use self::questions::Questions;
use super::agent::{ConfigArgs, check_agent, given, with_model};
use super::{agent, interactive};
use crate::exit::{self, Blame, CommandFailure, warn_of};
use crate::folders;
use crate::signals;

/// Grace period for runs when the user leaves the chat.
const LEAVING: Duration = Duration::from_secs(3);

/// Arguments of `pinch chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session to open, by name or routing key, e.g. notes or agent:main:notes (default: the agent's last session, else its main session)
    #[arg(long, visible_alias = "session-key", value_name = "KEY")]
    session: Option<String>,

    /// Agent to talk to
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<String>,

    /// Message to send immediately
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,

    /// Time limit of each run in milliseconds (default: agents.defaults.timeoutSeconds, or 10 minutes)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,

    /// How many messages of a session to show when it is opened
    #[arg(long, value_name = "N", default_value_t = ChatOptions::HISTORY_LIMIT)]
    history_limit: usize,

    /// How much tool output to show: on, full or off
    #[arg(long, value_name = "LEVEL")]
    verbose_level: Option<String>,

    /// Screen-reader mode: plain lines, read line by line
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the chat until the user leaves.
pub(crate) async fn run(args: Args) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let thinking = word(args.thinking.as_deref(), "thinking level", parse_level, || LEVELS.join(", "))?;
    let verbose =
        word(args.verbose_level.as_deref(), "verbose level", Verbosity::parse, || "on, full, off".to_owned())?;
    interactive::check_terminal()?;
    // Messages written meanwhile would disturb the screen.
    let kept = exit::keep_warnings();
    let (state_dir, config) = args.config.load(&host)?;
    let is_plain = interactive::is_plain(args.plain, &host, &state_dir.join("agent"));
    if !is_plain {
        interactive::check_movable(&host)?;
    }
    if let Some(name) = given(args.agent.as_deref()) {
        check_agent(name, args.session.as_deref(), &config)?;
    }
    let plugins = agent::plugins(&state_dir, &host, &config).await;
    let build = async |questions| engine(&state_dir, &host, config, &questions, &plugins).await;
    let backend = Arc::new(EmbeddedChat::new(state_dir.clone(), host.clone(), build).await);
    warn_of(&backend.engine().problems());
    let cwd = folders::working_directory()?;
    let mut options = ChatOptions::new(host.clone(), state_dir.join("agent"), &cwd);
    options.agent = given(args.agent.as_deref()).map(|name| AgentId::normalise(name).to_string());
    options.session = given(args.session.as_deref()).map(str::to_owned);
    options.message = given(args.message.as_deref()).map(str::to_owned);
    options.thinking = thinking;
    options.verbose = verbose;
    options.timeout = args.timeout_ms.map(Duration::from_millis);
    options.history_limit = args.history_limit;
    options.shell = shell(&host, cwd).map(Arc::new);
    options.warnings = exit::take_warnings();
    options.plain = is_plain;
    let settings = SettingsManager::of_user(&state_dir.join("agent"), &host).settings().interface.terminal.clone();
    options.notify = settings.notify;
    options.shows_progress = settings.show_progress;
    let stop = Cancel::new();
    let engine = backend.engine().clone();
    let login = backend.login_of_chat();
    let work = Box::pin(chat(options, backend, &stop));
    let (end, code) = match is_plain {
        true => signals::guard_without_interrupt(&stop, work).await,
        false => signals::guard_unless(|| login.owns_interrupt(), &stop, work).await,
    };
    drop(kept);
    engine.shutdown(LEAVING).await;
    agent::close(&plugins).await;
    match end {
        Ok(ChatEnd::Exited) => Ok(code.unwrap_or(ExitCode::SUCCESS)),
        Ok(ChatEnd::HungUp) => Ok(code.unwrap_or(ExitCode::from(interactive::HUNG_UP))),
        Err(error @ ChatStartError::UnknownAgent { .. }) => Err(CommandFailure::user(error.to_string())),
        Err(error) => Err(CommandFailure::new(Blame::Internal, error.to_string())),
    }
}

/// Parses an option's word.
fn word<T>(
    given: Option<&str>,
    what: &str,
    parse: fn(&str) -> Option<T>,
    valid: impl FnOnce() -> String,
) -> Result<Option<T>, CommandFailure> {
    let Some(word) = given else { return Ok(None) };
    match parse(word) {
        Some(value) => Ok(Some(value)),
        None => Err(CommandFailure::user(format!("Invalid {what} \"{word}\". Valid values: {}", valid()))),
    }
}

/// Builds the engine. Without a key, a local server's model replaces the configured one.
async fn engine(
    state_dir: &Path,
    host: &Host,
    config: Config,
    questions: &Arc<Questions>,
    plugins: &[Arc<dyn Plugin>],
) -> (Engine, Arc<Config>) {
    let build = |config: Config| {
        let approvals = Arc::clone(questions) as Arc<dyn ApprovalBroker>;
        let questions = Arc::clone(questions) as Arc<dyn QuestionBroker>;
        agent::engine_builder(state_dir, host, config, plugins).approvals(approvals).questions(questions).build()
    };
    let engine = build(config.clone());
    if matches!(engine.candidates(&engine.request("", None, None, "")), Err(RunError::NoModel))
        && let Some(model) = local_servers::find(host).await.iter().find_map(|server| server.models.first())
    {
        let config = with_model(config, model);
        return (build(config.clone()), Arc::new(config));
    }
    (engine, Arc::new(config))
}

/// Creates the tool that runs the user's commands in the working directory.
fn shell(host: &Host, cwd: PathBuf) -> Option<BashTool> {
    let program = Shell::usual_program()?;
    let mut env = host.env().to_vec();
    // Lets programs detect that they run in an agent chat; the name is OpenClaw's.
    env.push(("OPENCLAW_SHELL".to_owned(), "tui-local".to_owned()));
    let place = WorkingDirectory { cwd, home: host.home().map(Path::to_owned) };
    let shell = Shell { program, prefix: None, env, temp: host.temp().to_owned() };
    Some(BashTool::new(&ToolParts::new(Arc::new(LocalMachine), place, shell)))
}
