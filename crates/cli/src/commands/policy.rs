//! `pinch policy`: which tools an embedded agent may use, and why.

use std::io::Write as _;
use std::process::ExitCode;

use pinch_embed::Sender;
use pinch_embed::engine::Engine;
use pinch_embed::run::RunRequest;
use pinch_embed::stdx::host::Host;
use pinch_embed::tools::policy::{Explanation, PolicyDecision};
use serde_json::{Value, json};

use super::agent::{self, ConfigArgs};
use crate::embedded::{self, FailureContext};
use crate::exit::{CommandFailure, unwritten};
use crate::output;

/// Subcommands of `pinch policy`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print the rule that allows or denies each tool, for one caller and model
    Explain(ExplainArgs),
}

/// Arguments of `pinch policy explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Tools to explain (default: all that `pinch agent` has)
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,

    /// Agent that receives the message
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Routing key of the session, e.g. agent:main:telegram:group:-100
    #[arg(long, value_name = "KEY")]
    session_key: Option<String>,

    /// Channel the message came through, e.g. telegram
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// Channel account that received the message
    #[arg(long, value_name = "ID", requires = "channel")]
    account: Option<String>,

    /// Group the message was sent in
    #[arg(long, value_name = "ID", requires = "channel", allow_hyphen_values = true)]
    group: Option<String>,

    /// Id of the person who sent it
    #[arg(long, value_name = "ID")]
    sender: Option<String>,

    /// Display name of that person; only rules with `name:` match it
    #[arg(long, value_name = "NAME")]
    sender_name: Option<String>,

    /// User name of that person
    #[arg(long, value_name = "NAME")]
    sender_username: Option<String>,

    /// Phone number of that person
    #[arg(long, value_name = "NUMBER")]
    sender_phone: Option<String>,

    /// Key of the session that spawned this one as a sub-agent
    #[arg(long, value_name = "KEY")]
    spawned_by: Option<String>,

    /// The sender does not own the agent
    #[arg(long)]
    stranger: bool,

    /// Permission mode of the session: read-only, guarded, workspace or full
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// Provider of the model
    #[arg(long, value_name = "NAME", requires = "model")]
    provider: Option<String>,

    /// Model to decide for, instead of the configured one
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// Print one JSON object per tool in an array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the command.
pub(crate) fn run(command: &PolicyCommand) -> Result<ExitCode, CommandFailure> {
    match command {
        PolicyCommand::Explain(args) => explain(args),
    }
}

fn explain(args: &ExplainArgs) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let (state_dir, config) = args.config.load(&host)?;
    let engine = Engine::builder(&state_dir).host(host).config(config).builtin_tools(agent::TOOLS).build();
    let around = FailureContext { documents: state_dir.join("agent"), names_model: args.model.is_some() };
    let decision = engine.tool_policy(request(args, &engine)?).map_err(|error| embedded::failure(&error, &around))?;
    print(args, &decision).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the request of the caller described by the arguments.
fn request(args: &ExplainArgs, engine: &Engine) -> Result<RunRequest, CommandFailure> {
    let mut request = engine.request("policy", args.session_key.as_deref(), args.agent.as_deref(), "");
    request.model.clone_from(&args.model);
    request.provider.clone_from(&args.provider);
    let caller = &mut request.caller;
    caller.is_owner = !args.stranger;
    caller.channel.clone_from(&args.channel);
    caller.account.clone_from(&args.account);
    caller.group.clone_from(&args.group);
    let mut sender = Sender::default();
    sender.id.clone_from(&args.sender);
    sender.name.clone_from(&args.sender_name);
    sender.user_name.clone_from(&args.sender_username);
    sender.phone.clone_from(&args.sender_phone);
    caller.spawned_by = args.spawned_by.as_deref().map(Into::into);
    caller.sender = sender;
    agent::limited(request, args.permission_mode.as_deref())
}

fn print(args: &ExplainArgs, decision: &PolicyDecision) -> std::io::Result<()> {
    let explanations: Vec<Explanation> = match args.tools.is_empty() {
        true => decision.explanations().collect(),
        false => args.tools.iter().map(|tool| decision.explain(tool)).collect(),
    };
    let mut out = output::stdout();
    if args.json {
        let all: Vec<Value> = explanations.iter().map(shown).collect();
        pinch_embed::stdx::json::write_pretty(&mut out, &json!(all))?;
        writeln!(out)?;
    } else {
        for explanation in &explanations {
            writeln!(out, "{explanation}")?;
        }
        for warning in decision.warnings() {
            writeln!(out, "warning: {warning}")?;
        }
    }
    out.flush()
}

fn shown(explanation: &Explanation) -> Value {
    let is_allowed = explanation.removed.is_none() && explanation.is_offered;
    json!({
        "tool": explanation.tool,
        "allowed": is_allowed,
        "exists": explanation.is_offered,
        "rule": explanation.rule(),
        "explanation": explanation.to_string(),
    })
}
