//! `pinch agent`: one embedded run, printed as payloads.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pinch_embed::coding_agent::models::local_servers;
use pinch_embed::config::thinking::{LEVELS, parse_level};
use pinch_embed::config::{Config, ProviderConfig};
use pinch_embed::engine::{Engine, EngineBuilder};
use pinch_embed::key::{self, AgentId, DmScope, Peer};
use pinch_embed::llm::model::Model;
use pinch_embed::plugin::Plugin;
use pinch_embed::plugin::process::start_plugins;
use pinch_embed::replies::tool_notes::Verbose;
use pinch_embed::run::request::PermissionMode;
use pinch_embed::run::result::RunMeta;
use pinch_embed::run::{RunError, RunRequest, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::workspace::{self, AgentSource};
use serde_json::{Value, json};

use crate::embedded::{self, FailureContext};
use crate::exit::{Blame, CommandFailure, tell, unwritten, warn_of};
use crate::show::{payloads, waits_for};
use crate::{folders, output, signals};

/// Arguments of `pinch agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Message to send (required, unless --message-file is used)
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,

    /// Read the message from a UTF-8 file or pipe, at most 4 MiB
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    message_file: Option<PathBuf>,

    /// Session to resume or create; this, --session-key, --to or --agent is required
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,

    /// Routing key of the session, e.g. agent:main:main
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,

    /// Phone number (E.164) of the person whose direct chat to continue
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    to: Option<String>,

    /// Agent whose main session to use
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<String>,

    /// How much tool output to include in replies: on, full or off
    #[arg(long, value_name = "LEVEL")]
    verbose: Option<String>,

    /// Time limit in seconds for the whole run, including retries (default: agents.defaults.timeoutSeconds, or 600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// Print payloads and metadata as one JSON object
    #[arg(long)]
    json: bool,

    /// Provider of the model
    #[arg(long, value_name = "NAME", requires = "model")]
    provider: Option<String>,

    /// Model to use instead of the configured one
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// Limit what the run may do: read-only, guarded, workspace or full; cannot loosen the limits of the configuration and the session
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// Run in a sandbox whatever the configuration says: commands stay inside, and the workspace is at most readable
    #[arg(long)]
    require_sandbox: bool,

    /// Runtime to use instead of the configured one: native (alias pi) or cli
    #[arg(long, value_name = "ID")]
    runtime: Option<String>,

    /// Working directory of tools, instead of the agent's workspace
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Configuration file, instead of the one in the state directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory of configuration, sessions and credentials (default: PINCH_STATE_DIR, or ~/.pinch)
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Accepted for compatibility; runs are always local
    #[arg(long)]
    local: bool,
}

/// The tools of embedded runs that policies and settings may restrict.
pub(super) const TOOLS: [&str; 5] = ["read", "bash", "edit", "write", "apply_patch"];

/// Builds an engine whose runs may use these tools on the local machine.
pub(super) fn engine_builder(
    state_dir: &Path,
    host: &Host,
    config: Config,
    plugins: &[Arc<dyn Plugin>],
) -> EngineBuilder {
    let builder =
        Engine::builder(state_dir).host(host.clone()).config(config).builtin_tools(TOOLS).workspace_templates();
    plugins.iter().cloned().fold(builder, EngineBuilder::hooks)
}

/// Starts the configured plugins and reports those that cannot be started.
pub(super) async fn plugins(state_dir: &Path, host: &Host, config: &Config) -> Vec<Arc<dyn Plugin>> {
    let base = config.file.as_deref().and_then(Path::parent).unwrap_or(state_dir);
    let paths = config.plugins.to_load(base, host.home());
    let (plugins, problems) = start_plugins(&paths, state_dir, host).await;
    warn_of(&problems);
    plugins
}

/// Stops plugins.
pub(super) async fn close(plugins: &[Arc<dyn Plugin>]) {
    for plugin in plugins {
        if let Err(error) = plugin.close().await {
            tell(&format_args!("Warning: the plugin {} was not stopped: {error}", plugin.name()));
        }
    }
}

/// Runs the command. With `--json`, failures are also printed as one object on stdout.
pub(crate) async fn run(args: Args) -> Result<ExitCode, CommandFailure> {
    let as_json = args.json;
    run_once(args).await.map_err(|stopped| {
        if as_json {
            // If nobody reads it, the message on stderr and the exit code must suffice.
            let _unread = write_json(&payloads::failure_json(
                stopped.kind,
                &stopped.failure.text,
                stopped.meta.map(|meta| *meta),
            ));
        }
        stopped.failure
    })
}

/// The reason why there is no result.
struct Stopped {
    failure: CommandFailure,
    /// The failure's kind in `--json`.
    kind: &'static str,
    /// What the run did before it failed.
    meta: Option<Box<RunMeta>>,
}

impl From<CommandFailure> for Stopped {
    fn from(failure: CommandFailure) -> Self {
        let kind = match failure.kind {
            Blame::Nobody | Blame::User => "user",
            Blame::Configuration => "config",
            Blame::Provider => "unknown",
            Blame::Internal => "internal",
        };
        Self { failure, kind, meta: None }
    }
}

async fn run_once(args: Args) -> Result<ExitCode, Stopped> {
    let host = Host::system();
    let message = message(&args, &host)?;
    let state_dir = state_dir(args.state_dir.as_deref(), &host)?;
    let (config, problems) = load_config(args.config.as_deref(), &state_dir, &host)?;
    warn_of(&problems);
    let target = SessionChoice::find(&args, &config)?;
    let plugins = plugins(&state_dir, &host, &config).await;
    let cancel = Cancel::new();
    let work = async {
        let of_config = |config| engine_builder(&state_dir, &host, config, &plugins).build();
        let mut engine = of_config(config.clone());
        warn_of(&engine.problems());
        let mut done = finish(&engine, request(&args, &message, &target, &engine, &cancel).await?).await;
        // Without a key, fall back to the model of a local server.
        if matches!(done, Err(RunError::NoModel))
            && let Some(model) = local_servers::find(&host).await.iter().find_map(|server| server.models.first())
        {
            engine = of_config(with_model(config, model));
            done = finish(&engine, request(&args, &message, &target, &engine, &cancel).await?).await;
        }
        if !plugins.is_empty() {
            // They are still being notified of the end.
            engine.drain(Duration::ZERO).await;
        }
        let around = FailureContext { documents: state_dir.join("agent"), names_model: args.model.is_some() };
        done.map_err(|error| Stopped {
            kind: error.kind().as_str(),
            failure: embedded::failure(&error, &around),
            meta: error.meta().cloned().map(Box::new),
        })
    };
    let (done, code) = signals::guard(&cancel, work).await;
    close(&plugins).await;
    let result = match (done, code) {
        (Ok(result), _) => result,
        (Err(stopped), None) => return Err(stopped),
        (Err(stopped), Some(code)) => {
            if args.json {
                let _unread = write_json(&payloads::failure_json(
                    stopped.kind,
                    &stopped.failure.text,
                    stopped.meta.map(|meta| *meta),
                ));
            }
            tell(&stopped.failure);
            return Ok(code);
        }
    };
    let incomplete = embedded::incomplete(&result);
    let failed = embedded::failed(&result);
    print(result, args.json).map_err(|error| unwritten(&error))?;
    if code.is_none()
        && let Some(failure) = incomplete
    {
        tell(&failure);
    }
    Ok(code.unwrap_or_else(|| failed.map_or(ExitCode::SUCCESS, |kind| ExitCode::from(kind as u8))))
}

/// Maximum bytes of a file with a message, as in OpenClaw.
const MAX_MESSAGE_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the message: the given text, or the content of the file.
fn message(args: &Args, host: &Host) -> Result<String, CommandFailure> {
    let Some(path) = &args.message_file else {
        let text = given(args.message.as_deref());
        return text.map(str::to_owned).ok_or_else(|| CommandFailure::user("Message (--message) is required"));
    };
    let path = folders::expand_home(path, host);
    let failed = |why| CommandFailure::user(format!("cannot read the message in {}: {why}", path.display()));
    folders::trimmed_text(&path, MAX_MESSAGE_BYTES).map_err(failed)
}

/// Runs a request to its end. Reports waiting for another process on stderr.
async fn finish(engine: &Engine, request: RunRequest) -> Result<RunResult, RunError> {
    let mut run = engine.run(request);
    while let Some(event) = run.next().await {
        if let RunEvent::Waiting(wait) = event {
            tell(&format_args!("Waiting for {}", waits_for(&wait)));
        }
    }
    run.result()
}

/// Returns a value that is not blank.
pub(super) fn given(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|text| !text.is_empty())
}

fn print(result: RunResult, as_json: bool) -> io::Result<()> {
    if as_json { write_json(&payloads::json(result)) } else { write_out(&payloads::text(&result)) }
}

/// Writes a value and a line feed to stdout while serializing, to avoid another copy of a long answer.
fn write_json(value: &Value) -> io::Result<()> {
    let mut out = io::BufWriter::new(output::stdout());
    pinch_embed::stdx::json::write_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// Writes a text and a line feed to stdout; nothing for an empty text.
fn write_out(text: &str) -> io::Result<()> {
    let mut out = output::stdout();
    if !text.is_empty() {
        writeln!(out, "{text}")?;
    }
    out.flush()
}

/// The session of a run.
enum SessionChoice<'a> {
    /// The session with this id, of a session key and an agent.
    Id { id: &'a str, key: Option<&'a str>, agent: Option<&'a str> },
    /// The current session of a key.
    Key(Cow<'a, str>),
}

impl<'a> SessionChoice<'a> {
    fn find(args: &'a Args, config: &Config) -> Result<Self, CommandFailure> {
        let key = given(args.session_key.as_deref());
        let agent = given(args.agent.as_deref());
        if let Some(name) = agent {
            check_agent(name, key, config)?;
        }
        let to = given(args.to.as_deref());
        match (given(args.session_id.as_deref()), key, to, agent) {
            (Some(id), key, _, agent) => Ok(Self::Id { id, key, agent }),
            (None, Some(key), _, _) => Ok(Self::Key(key.into())),
            (None, None, Some(to), agent) => direct_chat(to, agent, config).map(|key| Self::Key(key.into())),
            (None, None, None, Some(agent)) => {
                let agent = AgentId::normalise(agent);
                Ok(Self::Key(format!("agent:{agent}:{}", config.session.main_key).into()))
            }
            (None, None, None, None) => Err(CommandFailure::user(
                "Pass --to <E.164>, --session-id, --session-key, or --agent to choose a session",
            )),
        }
    }
}

/// Returns the session key of the direct chats with a phone number.
fn direct_chat(to: &str, agent: Option<&str>, config: &Config) -> Result<String, CommandFailure> {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '-' | '.' | '(' | ')');
    let compact = to.replace(is_separator, "");
    let digits = compact.strip_prefix('+').unwrap_or(&compact);
    // E.164 numbers have at most 15 digits.
    if !(1..=15).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CommandFailure::user(format!("--to: not a phone number: {to}\nhint: write it as in +15551234567")));
    }
    let session = &config.session;
    if matches!(session.dm_scope, DmScope::PerChannelPeer | DmScope::PerAccountChannelPeer) {
        return Err(CommandFailure::user(
            "--to names no channel, and session.dmScope separates the chats of each channel\nhint: name the chat with --session-key, as in \
             agent:main:whatsapp:direct:+15551234567",
        ));
    }
    let id = format!("+{digits}");
    let peer = Peer { channel: "", account_id: None, kind: "direct", id: &id };
    let agent = agent.map_or_else(|| config.agents.default_id(), AgentId::normalise);
    Ok(key::peer_key(&agent, &peer, session.dm_scope, &session.main_key, &session.identity_links))
}

/// Checks that an agent exists and matches the session key.
pub(super) fn check_agent(name: &str, session_key: Option<&str>, config: &Config) -> Result<(), CommandFailure> {
    let id = AgentId::normalise(name);
    let mut known: Vec<AgentId> = config.agents.list.iter().map(|agent| agent.id.clone()).collect();
    if known.is_empty() {
        known.push(config.agents.default_id());
    }
    if !known.contains(&id) {
        let names = known.iter().map(AgentId::as_str).collect::<Vec<_>>().join(", ");
        return Err(CommandFailure::user(format!("Unknown agent id \"{name}\". Available agents: {names}")));
    }
    match workspace::agent_of(&config.agents, None, session_key) {
        (of_key, AgentSource::SessionKey) if of_key != id => Err(CommandFailure::user(format!(
            "Agent id \"{name}\" does not match the agent \"{of_key}\" of the session key"
        ))),
        _ => Ok(()),
    }
}

/// Returns the configuration with this model, which needs no key, as the model to use.
pub(super) fn with_model(mut config: Config, model: &Model) -> Config {
    let entry = json!({
        "baseUrl": model.base_url,
        "api": model.api.as_str(),
        "apiKey": "none",
        "models": [{"id": model.id.as_str(), "input": ["text"]}],
    });
    let entry = entry.as_object().cloned().unwrap_or_default();
    config.models.providers.push(ProviderConfig { id: model.provider.clone(), models: Vec::new(), entry });
    config.agents.defaults.model.primary = Some(format!("{}/{}", model.provider, model.id));
    config
}

/// Configuration arguments of a command that runs nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file, instead of the one in the state directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory of configuration and credentials (default: PINCH_STATE_DIR, or ~/.pinch)
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl ConfigArgs {
    /// Loads the state directory and the configuration, and prints its problems.
    pub(crate) fn load(&self, host: &Host) -> Result<(PathBuf, Config), CommandFailure> {
        let state_dir = state_dir(self.state_dir.as_deref(), host)?;
        let (config, problems) = load_config(self.config.as_deref(), &state_dir, host)?;
        warn_of(&problems);
        Ok((state_dir, config))
    }
}

/// Returns the state directory: the flag, then PINCH_STATE_DIR, then OPENCLAW_STATE_DIR, then ~/.pinch.
pub(crate) fn state_dir(flag: Option<&Path>, host: &Host) -> Result<PathBuf, CommandFailure> {
    let cwd = folders::working_directory()?;
    let of_env = || ["PINCH_STATE_DIR", "OPENCLAW_STATE_DIR"].iter().find_map(|name| host.env().non_empty(name));
    let named = flag.map(Path::to_owned).or_else(|| of_env().map(PathBuf::from));
    let dir = match (named, host.home()) {
        (Some(dir), _) => cwd.join(folders::expand_home(&dir, host)),
        (None, Some(home)) => home.join(".pinch"),
        (None, None) => {
            let text = "no home directory\nhint: name a directory with --state-dir or PINCH_STATE_DIR";
            return Err(CommandFailure::configuration(text));
        }
    };
    if dir.exists() && !dir.is_dir() {
        return Err(CommandFailure::user(format!("not a directory: {}", dir.display())));
    }
    Ok(dir)
}

/// Loads the configuration: the flag, then the variables, then the first file in the state directory; empty if there is none.
pub(crate) fn load_config(
    flag: Option<&Path>,
    state_dir: &Path,
    host: &Host,
) -> Result<(Config, Vec<pinch_embed::coding_agent::document::Problem>), CommandFailure> {
    let env = host.env();
    let named = flag.map(Path::to_owned).or_else(|| {
        let path = env.non_empty("PINCH_CONFIG_PATH").or_else(|| env.non_empty("OPENCLAW_CONFIG_PATH"));
        path.map(PathBuf::from)
    });
    if let Some(path) = &named
        && !path.is_file()
    {
        return Err(CommandFailure::configuration(format!("configuration file not found: {}", path.display())));
    }
    let found = named.or_else(|| Config::find(state_dir));
    let (config, problems) = found.map_or_else(|| (Config::default(), Vec::new()), |path| Config::load(&path, env));
    match config.unusable {
        // The intention is unknown, so nothing is run.
        Some(why) => Err(CommandFailure::configuration(why)),
        None => Ok((config, problems)),
    }
}

/// Limits a request by the permission mode with this name, if there is one.
pub(super) fn limited(request: RunRequest, mode: Option<&str>) -> Result<RunRequest, CommandFailure> {
    let Some(word) = mode else { return Ok(request) };
    let mode = PermissionMode::parse(word).ok_or_else(|| {
        let names = PermissionMode::ALL.map(PermissionMode::name).join(", ");
        CommandFailure::user(format!("Invalid permission mode \"{word}\". Valid values: {names}"))
    })?;
    Ok(request.permission_mode(mode))
}

async fn request(
    args: &Args,
    message: &str,
    target: &SessionChoice<'_>,
    engine: &Engine,
    cancel: &Cancel,
) -> Result<RunRequest, CommandFailure> {
    let mut request = match target {
        SessionChoice::Id { id, key, agent } => engine.request(id, *key, *agent, message),
        SessionChoice::Key(key) => {
            let around = FailureContext { documents: PathBuf::new(), names_model: false };
            engine.message(key, message).await.map_err(|error| embedded::failure(&error, &around))?
        }
    };
    // Whoever starts a run from a shell owns the agent.
    request.caller.is_owner = true;
    request = request.cancel(cancel.clone()).require_reply();
    if let Some(word) = &args.thinking {
        let level = parse_level(word).ok_or_else(|| {
            let words = LEVELS.join(", ");
            CommandFailure::user(format!("Invalid thinking level \"{word}\". Valid values: {words}"))
        })?;
        request = request.think_level(level);
    }
    if let Some(word) = &args.verbose {
        let level = Verbose::parse(word).ok_or_else(|| {
            CommandFailure::user(format!("Invalid verbose level \"{word}\". Valid values: on, full, off"))
        })?;
        request = request.verbose_level(level);
    }
    if let Some(secs) = args.timeout {
        request = request.timeout(Some(Duration::from_secs(secs)));
    }
    request = limited(request, args.permission_mode.as_deref())?;
    request.requires_sandbox = args.require_sandbox;
    if args.model.is_some() {
        request.provider.clone_from(&args.provider);
        request.model.clone_from(&args.model);
    }
    if let Some(runtime) = given(args.runtime.as_deref()) {
        request = request.runtime(runtime);
    }
    if let Some(workspace) = &args.workspace {
        request.workspace_dir = Some(folders::working_directory()?.join(workspace));
    }
    Ok(request)
}
