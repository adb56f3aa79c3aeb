//! `pinch skills`: the skills of embedded agents.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use pinch_embed::coding_agent::resources::templates::Template;
use pinch_embed::engine::Engine;
use pinch_embed::skills::{AgentSkills, InstallChoice, InstallCommand, InstallRefusal, SkillInstaller, SkillStatus};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::process::{ChildTree, ProcessEnd};
use pinch_embed::stdx::text::shortened;
use serde_json::{Value, json};

use super::agent::ConfigArgs;
use crate::embedded::{self, FailureContext};
use crate::exit::{CommandFailure, unwritten, warn_of};
use crate::output;

/// Maximum bytes of a description that are listed.
const MAX_DESCRIPTION: usize = 100;

/// Subcommands of `pinch skills`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills of an agent, and what unusable ones lack
    List(ListArgs),

    /// Install the programs that a skill requires, with a package manager that the skill names
    Install(InstallArgs),
}

/// Arguments of `pinch skills install`.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    /// Name of the skill
    name: String,

    /// Agent whose skills are searched
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Id or number of the installer, instead of the first whose package manager is there
    #[arg(long, value_name = "ID")]
    installer: Option<String>,

    /// Print the command without running it
    #[arg(long)]
    dry_run: bool,

    /// Time limit in seconds, at most 900
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=900))]
    timeout: u64,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Arguments of `pinch skills list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Agent whose skills are listed
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// List only skills that the agent can use
    #[arg(long)]
    eligible: bool,

    /// Print one JSON object per skill in an array
    #[arg(long)]
    json: bool,

    /// Workspace whose skills are listed, instead of the agent's
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the command.
pub(crate) async fn run(command: &SkillsCommand) -> Result<ExitCode, CommandFailure> {
    match command {
        SkillsCommand::List(args) => list(args),
        SkillsCommand::Install(args) => install(args).await,
    }
}

async fn install(args: &InstallArgs) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let (state_dir, config) = args.config.load(&host)?;
    let rules = config.skills.clone();
    let engine = Engine::builder(&state_dir).host(host.clone()).config(config).build();
    let request = engine.request("skills", None, args.agent.as_deref(), "");
    let around = FailureContext { documents: state_dir.join("agent"), names_model: false };
    let find = || -> Result<SkillStatus, CommandFailure> {
        let skills = engine.skills(&request).map_err(|error| embedded::failure(&error, &around))?;
        let found = skills.skills.into_iter().find(|status| status.skill.name == args.name);
        found.ok_or_else(|| {
            let text = format!("there is no skill {:?}\nhint: `pinch skills list` shows all", args.name);
            CommandFailure::configuration(text)
        })
    };
    let mut choice = InstallChoice::new(&rules, &host);
    choice.wanted = args.installer.as_deref();
    let refused = |refusal: InstallRefusal| CommandFailure::configuration(format!("{}: {refusal}", args.name));
    let command = find()?.skill.install_command(&choice).map_err(refused)?;
    let mut out = output::stdout();
    writeln!(out, "{command}").and_then(|()| out.flush()).map_err(|error| unwritten(&error))?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    carry_out(&command, Duration::from_secs(args.timeout)).await?;
    let text = match find()?.ineligible {
        None => format!("{} can be used now.", args.name),
        Some(reason) => format!("{} is still not usable: {reason}", args.name),
    };
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a package manager, which writes to the terminal itself.
async fn carry_out(command: &InstallCommand, limit: Duration) -> Result<(), CommandFailure> {
    let failed = |why: String| CommandFailure::user(format!("{command}: {why}"));
    let mut process = std::process::Command::new(command.program);
    process.args(&command.arguments).stdin(Stdio::null());
    let mut process = ChildTree::spawn_as_is(process).map_err(|error| failed(error.to_string()))?.ending_rest();
    let end = process.pump(&Cancel::new(), Some(limit), Duration::from_secs(2), &mut |_| {}).await;
    match end.map_err(|error| failed(error.to_string()))? {
        ProcessEnd::Exited(exit) if exit.is_success() => Ok(()),
        ProcessEnd::Exited(exit) => Err(failed(format!("exit status {}", exit.status()))),
        ProcessEnd::TimedOut(_) => Err(failed(format!("stopped after {} seconds", limit.as_secs()))),
        ProcessEnd::Cancelled(..) => Err(failed("stopped".to_owned())),
    }
}

fn list(args: &ListArgs) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let (state_dir, config) = args.config.load(&host)?;
    let engine = Engine::builder(&state_dir).host(host).config(config).build();
    let mut request = engine.request("skills", None, args.agent.as_deref(), "");
    request.workspace_dir.clone_from(&args.workspace);
    let around = FailureContext { documents: state_dir.join("agent"), names_model: false };
    let skills = engine.skills(&request).map_err(|error| embedded::failure(&error, &around))?;
    warn_of(&skills.problems);
    print(args, &skills).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &ListArgs, skills: &AgentSkills) -> std::io::Result<()> {
    let shown = skills.skills.iter().filter(|status| !args.eligible || status.ineligible.is_none());
    let mut out = output::stdout();
    let templates = skills.templates();
    if args.json {
        let all: Vec<Value> = shown.map(|status| as_json(status, &templates)).collect();
        pinch_embed::stdx::json::write_pretty(&mut out, &json!(all))?;
        writeln!(out)?;
        return out.flush();
    }
    let mut is_empty = true;
    for SkillStatus { skill, ineligible, command, .. } in shown {
        is_empty = false;
        let command = command.as_ref().map(|command| format!(" (/{command})")).unwrap_or_default();
        let description = shortened(skill.description.lines().next().unwrap_or_default(), MAX_DESCRIPTION);
        writeln!(out, "{}{command}: {description}", skill.name)?;
        for template in templates.iter().filter(|template| is_of(template, &skill.name)) {
            writeln!(out, "  /{}: {}", template.name, template.description)?;
        }
        if let Some(reason) = ineligible {
            writeln!(out, "  not usable: {reason}")?;
            for installer in &skill.metadata.install {
                writeln!(out, "  install: {}", installed(installer))?;
            }
        }
    }
    if is_empty {
        writeln!(out, "No skills found.")?;
    }
    out.flush()
}

/// Describes an installer for people.
fn installed(installer: &SkillInstaller) -> String {
    let what = ["formula", "package", "module", "url"].iter().find_map(|name| installer.what.get(*name)?.as_str());
    let by = what.map_or_else(|| installer.kind.clone(), |what| format!("{} {what}", installer.kind));
    installer.label.as_ref().map_or_else(|| by.clone(), |label| format!("{label} ({by})"))
}

fn is_of(template: &Template, skill: &str) -> bool {
    template.name.strip_prefix(skill).is_some_and(|rest| rest.starts_with(':'))
}

fn as_json(status: &SkillStatus, templates: &[Template]) -> Value {
    let SkillStatus { skill, ineligible, command, .. } = status;
    let own = templates.iter().filter(|template| is_of(template, &skill.name));
    let own: Vec<Value> =
        own.map(|template| json!({"name": template.name, "description": template.description})).collect();
    json!({
        "name": skill.name,
        "description": skill.description,
        "location": skill.path.display().to_string(),
        "source": skill.origin.as_str(),
        "eligible": ineligible.is_none(),
        "reason": ineligible.as_ref().map(ToString::to_string),
        "command": command,
        "templates": own,
        "emoji": skill.metadata.emoji,
        "homepage": skill.metadata.homepage,
        "inPrompt": ineligible.is_none() && skill.invocation.by_model,
    })
}
