//! `pinch agent`: one embedded run, printed as payloads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinch_embed::config::Config;
use pinch_embed::engine::Engine;
use pinch_embed::llm::thinking::ThinkingLevel;
use pinch_embed::replies::tool_notes::Verbose;
use pinch_embed::run::{RunError, RunRequest, RunResult};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;

use crate::exit::{Failure, Kind, warn_of};
use crate::show::payloads;
use crate::{signals, wiring};

/// What `pinch agent` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the user says.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,

    /// The session; its file is made when it is not there.
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,

    /// The session's routing key, e.g. agent:main:main.
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,

    /// The agent whose main session is used.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<String>,

    /// How much of the tools is shown: on, full, off.
    #[arg(long, value_name = "LEVEL")]
    verbose: Option<String>,

    /// Seconds an attempt may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// Prints payloads and meta as JSON.
    #[arg(long)]
    json: bool,

    /// Provider of the model.
    #[arg(long, value_name = "NAME", requires = "model")]
    provider: Option<String>,

    /// Model, in place of the configured one.
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// Where tools work, in place of the agent's workspace.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Configuration, in place of pinch.json or openclaw.json in the state folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// State folder (default: ~/.pinch).
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Accepted for scripts that name it; runs are always local.
    #[arg(long)]
    local: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let host = Host::system();
    let message = args.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let message = message.ok_or_else(|| Failure::user("Message (--message) is required"))?;
    if args.session_id.is_none() && args.session_key.is_none() && args.agent.is_none() {
        return Err(Failure::user("Pass --session-id, --session-key, or --agent to choose a session"));
    }
    let state_dir = state_dir(args.state_dir.as_deref(), &host)?;
    let (config, problems) = load_config(args.config.as_deref(), &state_dir, &host)?;
    warn_of(&problems);
    let engine = Engine::builder(host.clone(), Arc::new(config), &state_dir).build();
    warn_of(engine.problems());
    let cancel = Cancel::new();
    let request = request(&args, message, &engine, &cancel)?;
    let (done, code) = signals::guard(&cancel, pinch_embed::run_embedded_agent(&engine, request)).await;
    let result = done.map_err(failure)?;
    print(&result, args.json);
    Ok(code.unwrap_or_else(|| exit_code(&result)))
}

fn print(result: &RunResult, as_json: bool) {
    let text = if as_json { payloads::json(result) } else { payloads::text(result) };
    if !text.is_empty() {
        println!("{text}");
    }
}

/// 0 with an answer; else by whose failure it is.
fn exit_code(result: &RunResult) -> ExitCode {
    let only_errors = !result.payloads.is_empty() && result.payloads.iter().all(|payload| payload.is_error);
    if result.meta.aborted {
        ExitCode::from(Kind::User as u8)
    } else if only_errors || result.meta.error.is_some() {
        ExitCode::from(Kind::Provider as u8)
    } else {
        ExitCode::SUCCESS
    }
}

/// A run without a result in words for a person.
pub(crate) fn failure(error: RunError) -> Failure {
    let kind = match &error {
        RunError::Cancelled(_) => Kind::User,
        RunError::Config(_) => Kind::Configuration,
        RunError::Failover(_) => Kind::Provider,
        RunError::Busy(_) | RunError::Internal(_) => Kind::Internal,
    };
    Failure::new(kind, error.to_string())
}

/// The state folder: the flag, then PINCH_STATE_DIR, then ~/.pinch.
pub(crate) fn state_dir(flag: Option<&Path>, host: &Host) -> Result<PathBuf, Failure> {
    let cwd = wiring::working_directory()?;
    let named = flag.map(Path::to_owned).or_else(|| host.env().non_empty("PINCH_STATE_DIR").map(PathBuf::from));
    match (named, host.home()) {
        (Some(dir), _) => Ok(cwd.join(wiring::expand_home(&dir, host))),
        (None, Some(home)) => Ok(home.join(".pinch")),
        (None, None) => {
            Err(Failure::configuration("There is no home folder. Name a folder with --state-dir or PINCH_STATE_DIR"))
        }
    }
}

/// The configuration: the flag, then the variables, then the first file of the state folder; none is an empty one.
fn load_config(
    flag: Option<&Path>,
    state_dir: &Path,
    host: &Host,
) -> Result<(Config, Vec<pinch_embed::coding_agent::document::Problem>), Failure> {
    let env = host.env();
    let named = flag.map(Path::to_owned).or_else(|| {
        let path = env.non_empty("PINCH_CONFIG_PATH").or_else(|| env.non_empty("OPENCLAW_CONFIG_PATH"));
        path.map(PathBuf::from)
    });
    if let Some(path) = &named
        && !path.is_file()
    {
        return Err(Failure::configuration(format!("Configuration file not found: {}", path.display())));
    }
    let found = named.or_else(|| {
        ["pinch.json", "openclaw.json"].map(|name| state_dir.join(name)).into_iter().find(|path| path.is_file())
    });
    Ok(found.map_or_else(|| (Config::default(), Vec::new()), |path| Config::load(&path)))
}

fn request(args: &Args, message: &str, engine: &Engine, cancel: &Cancel) -> Result<RunRequest, Failure> {
    let agent = args.agent.as_deref();
    let session_id = args.session_id.clone().or_else(|| args.session_key.clone()).unwrap_or_else(|| "main".to_owned());
    let mut request = engine.request(&session_id, args.session_key.as_deref(), agent, message);
    request = request.cancel(cancel.clone());
    if let Some(word) = &args.thinking {
        let level = ThinkingLevel::parse(word).ok_or_else(|| {
            let words = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            Failure::user(format!("Invalid thinking level \"{word}\". Valid values: {words}"))
        })?;
        request = request.think_level(level);
    }
    if let Some(word) = &args.verbose {
        let level = Verbose::parse(word)
            .ok_or_else(|| Failure::user(format!("Invalid verbose level \"{word}\". Valid values: on, full, off")))?;
        request = request.verbose_level(level);
    }
    if let Some(secs) = args.timeout {
        request = request.timeout(Some(Duration::from_secs(secs)));
    }
    request.provider.clone_from(&args.provider);
    request.model.clone_from(&args.model);
    if let Some(workspace) = &args.workspace {
        request.workspace_dir = wiring::working_directory()?.join(workspace);
    }
    Ok(request)
}
