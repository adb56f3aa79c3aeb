//! Contents of the system prompt: skills, workspace files, and runtime information.

use std::path::Path;
use std::sync::Arc;

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::prompt::PromptSections;

use super::sandboxed::RunSandbox;
use crate::config::agents::Agents;
use crate::key::AgentId;
use crate::parts::Parts;
use crate::plugin::RunHooks;
use crate::prompt::bootstrap::BootstrapContext;
use crate::prompt::{PromptMode, ReactionLevel, RuntimeInfo, SystemPromptParams, bootstrap};
use crate::run::RunRequest;
use crate::run::request::RunTrigger;
use crate::run::system_prompt::{PromptFacts, RunPrompt};
use crate::skills::{AgentSkills, SkillPlaces};

/// How many levels above the workspace to look for a repository.
const MAX_LEVELS: usize = 12;

/// Returns where to look for the skills of an agent.
pub(super) fn skill_places<'a>(parts: &'a Parts, agent: &'a AgentId, workspace: &'a Path) -> SkillPlaces<'a> {
    let Parts { host, config, state_dir, .. } = parts;
    let of_plugins = parts.registered.plugins.skill_directories();
    SkillPlaces { host, config, agent, state_dir, workspace, of_plugins }
}

/// Returns the skills of an agent.
pub(super) fn skills(parts: &Parts, agent: &AgentId, workspace: &Path) -> AgentSkills {
    let skills = AgentSkills::load(&skill_places(parts, agent, workspace));
    warn(&skills.problems);
    skills
}

fn warn(problems: &[Problem]) {
    for problem in problems {
        tracing::warn!(%problem, "skipping a file");
    }
}

/// Builds the system prompt of a run. `sandbox`: the sandbox that the run is in.
pub(super) async fn prompt(
    parts: &Parts,
    request: &Arc<RunRequest>,
    (agent, workspace): (&AgentId, &Path),
    hooks: &RunHooks,
    skills: &AgentSkills,
    sandbox: Option<&RunSandbox>,
) -> RunPrompt {
    let config = &parts.config.agents.defaults.prompt;
    let key = request.session_key.as_deref();
    let whole = request.system_prompt.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let files = match whole {
        None if config.omits_files => Vec::new(),
        None => {
            let (mut files, problems) = bootstrap::load(workspace, key, sandbox.map(|sandbox| &*sandbox.machine)).await;
            warn(&problems);
            files = hooks.bootstrap(workspace, files).await;
            if request.bootstrap_context == BootstrapContext::Lightweight {
                let is_heartbeat = request.trigger == RunTrigger::Heartbeat;
                files.retain(|file| is_heartbeat && file.name == bootstrap::HEARTBEAT);
            }
            bootstrap::inject(files, config.files)
        }
        Some(_) => Vec::new(),
    };
    let is_limited = key.is_some_and(bootstrap::is_limited) || request.trigger == RunTrigger::Cron;
    let is_new = files.iter().any(|file| file.name == bootstrap::BOOTSTRAP);
    let params = SystemPromptParams {
        product: Some(parts.registered.product.clone()),
        mode: request.prompt_mode.unwrap_or(if is_limited { PromptMode::Minimal } else { PromptMode::Full }),
        workspace_dir: workspace.display().to_string(),
        workspace_notes: is_new.then(|| COMMIT.to_owned()).into_iter().collect(),
        skills: skills.prompt.clone(),
        cites_memories: true,
        model_aliases: aliases(&parts.config.agents),
        time_zone: parts.host.time_zone(config.time_zone.as_deref()),
        today: Some(parts.host.local_day(parts.host.now_ms(), config.time_zone.as_deref())),
        sandbox: sandbox.map(RunSandbox::prompt),
        owners: request.owner_numbers.iter().map(|owner| parts.config.owner_display.shown(owner)).collect(),
        extra: request.extra_system_prompt.clone(),
        reactions: reactions(parts, request),
        reasoning_tags: request.enforce_final_tag,
        heartbeat: config.heartbeat.clone(),
        runtime: runtime_info(parts, request, agent, workspace, sandbox.is_some()),
        thinking: request.think_level.unwrap_or_default().as_str().to_owned(),
        reasoning: request.reasoning_level,
        truncation_warning: config.truncation_warning,
        files,
        ..SystemPromptParams::default()
    };
    RunPrompt::new(PromptFacts {
        request: Arc::clone(request),
        workspace: workspace.to_owned(),
        params,
        limits: config.files,
        sandbox_mode: parts.config.sandbox.of(agent).mode,
        listed: skills.listed.clone(),
        whole: whole.map(PromptSections::text),
        make: parts.registered.prompt.clone(),
        hooks: hooks.clone(),
        texts: Arc::clone(&parts.prompt_texts),
        host: parts.host.clone(),
    })
}

/// Reminder in the prompt for a new workspace.
const COMMIT: &str = "Reminder: commit your changes in this workspace after edits.";

fn aliases(agents: &Agents) -> Vec<String> {
    let models = agents.defaults.models.iter();
    models.filter_map(|(name, entry)| Some(format!("- {}: {name}", entry.alias.as_ref()?))).collect()
}

/// Channels on which agents react to messages by `reactionLevel`.
const WITH_REACTIONS: [&str; 2] = ["telegram", "signal"];

fn reactions(parts: &Parts, request: &RunRequest) -> Option<(ReactionLevel, String)> {
    let channel = request.caller.channel.as_deref()?;
    let name = channel.trim().to_lowercase();
    let config = parts.config.channels.get(&name).filter(|_| WITH_REACTIONS.contains(&name.as_str()))?;
    Some((ReactionLevel::parse(config.reaction_level.as_deref()?.trim())?, channel.to_owned()))
}

fn runtime_info(
    parts: &Parts,
    request: &RunRequest,
    agent: &AgentId,
    workspace: &Path,
    is_sandboxed: bool,
) -> RuntimeInfo {
    let (config, env, caller) = (&parts.config.agents, parts.host.env(), &request.caller);
    let shell = env.get("SHELL").map(|shell| shell.rsplit('/').next().unwrap_or(shell).to_owned());
    let channel = caller.channel.clone();
    let configured = channel.as_deref().and_then(|channel| parts.config.channels.get(&channel.trim().to_lowercase()));
    let mut capabilities = caller.capabilities.clone();
    for more in configured.into_iter().flat_map(|channel| channel.capabilities.of(caller.account.as_deref())) {
        if !capabilities.iter().any(|known| known.eq_ignore_ascii_case(more)) {
            capabilities.push(more.clone());
        }
    }
    // A sandbox does not show these.
    let machine = parts.host.machine().filter(|_| !is_sandboxed);
    RuntimeInfo {
        agent: Some(agent.as_str().to_owned()),
        host: machine.map(|machine| machine.name.clone()),
        repo: config.defaults.prompt.repo_root.clone().or_else(|| repository(workspace)),
        os: Some(machine.map_or_else(|| std::env::consts::OS.to_owned(), |machine| machine.os.clone())),
        arch: Some(std::env::consts::ARCH.to_owned()),
        pinch: Some(env!("CARGO_PKG_VERSION").to_owned()),
        default_model: config.models_of(agent).primary,
        shell: shell.filter(|shell| !shell.is_empty()),
        channel,
        capabilities,
        ..RuntimeInfo::default()
    }
}

/// Returns the directory of the repository around a workspace.
fn repository(workspace: &Path) -> Option<String> {
    let mut folders = workspace.ancestors().take(MAX_LEVELS);
    folders.find(|folder| folder.join(".git").exists()).map(|folder| folder.display().to_string())
}
