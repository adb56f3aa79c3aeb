//! Resolves a request against the configuration.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::document::{self, Problem};
use pinch_coding_agent::extension::{Extension, Extensions};
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::models::pattern::NotFound;
use pinch_coding_agent::store::SessionRef;
use pinch_llm::catalog;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_ports::Fence;
use pinch_stdx::host::Env;
use pinch_tools::policy::PolicyDecision;
use serde_json::Value;

use super::offering::{
    RunMachines, SharedWithSession, credential_variables, elevated, finish_patches, loop_guard, offer,
    restricts_commands,
};
use super::{prompting, sandboxed};
use crate::compaction::{self, SummaryPlan};
use crate::config::Config;
use crate::config::agents::{AgentDefaults, Agents};
use crate::config::compaction::SummaryModelSetting;
use crate::guarding::RunGuardrail;
use crate::history::{self, HistoryLimit};
use crate::key::{self, AgentId};
use crate::models::candidates::{self, CandidateRequest};
use crate::models::providers::provider_layer;
use crate::models::select::{self, Aliases, Allowed, ModelRef};
use crate::models::window::Window;
use crate::models::{implicit, lookup};
use crate::parts::Parts;
use crate::plugin::RunHooks;
use crate::prompt::{bootstrap, templates};
use crate::run::cli_sessions::CliSessions;
use crate::run::failover::CandidateAttempt;
use crate::run::request::BlockReplies;
use crate::run::scope::RunScope;
use crate::run::{RunError, RunRequest};
use crate::runtime::choice::RuntimeChoice;
use crate::runtime::{CLI, NATIVE};
use crate::skills::AgentSkills;
use crate::workspace::{self, RunWorkspace, WorkspaceRequest};

/// Minimum number of tokens reserved in embedded runs: their answers are longer than in a terminal.
const RESERVE_FLOOR: u64 = 20_000;
/// The longest header of a session file, in bytes.
const MAX_HEADER: u64 = 64 * 1024;
/// The longest session name in a file name, in characters.
const MAX_FILE_NAME: usize = 128;

/// Loads the models of models.json, overlaid with the configured providers.
pub(super) fn registry(models_json: &Path, config: &Config, env: &Env) -> (ModelRegistry, Vec<Problem>) {
    let (root, mut problems) = match document::read_object(models_json) {
        Ok(root) => (root, Vec::new()),
        Err(problem) => (serde_json::Map::new(), vec![problem]),
    };
    let root = provider_layer(root, &implicit::providers(env), &config.models);
    let (registry, more) = ModelRegistry::from_document(root, models_json);
    // A problem is reported for the document that the provider came from.
    let is_configured =
        |at: &str| config.models.providers.iter().any(|provider| is_below(at, &format!("providers.{}", provider.id)));
    problems.extend(more.into_iter().map(|problem| match (&config.file, &problem.at) {
        (Some(file), Some(at)) if is_configured(at) => {
            Problem { file: file.clone(), at: Some(format!("models.{at}")), ..problem }
        }
        _ => problem,
    }));
    (registry, problems)
}

/// Returns whether a path in a document is a member or within it.
fn is_below(at: &str, member: &str) -> bool {
    at.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Creates a request with the configured defaults filled in.
pub(super) fn request(
    parts: &Parts,
    session_id: &str,
    session_key: Option<&str>,
    agent_id: Option<&str>,
    prompt: &str,
) -> RunRequest {
    let (agent, _) = workspace::agent_of(&parts.config.agents, agent_id, session_key);
    let dir = parts.state_dir.join("agents").join(agent.as_str()).join("sessions");
    let mut request = RunRequest::new(session_id, SessionRef::Path(session_file(&dir, session_id)), prompt);
    request.agent_id = agent_id.map(AgentId::normalise);
    // Two runs of a session need different ids.
    request.run_id = parts.host.ids().uuid_v4().into();
    request.session_key = session_key.map(Into::into);
    let defaults = &parts.config.agents.defaults;
    let own = parts.config.agents.get(&agent);
    request.think_level = own.and_then(|agent| agent.thinking).or(defaults.thinking);
    request.verbose_level = defaults.verbose.unwrap_or_default();
    request.timeout = defaults.timeout(None);
    let blocks = &defaults.block_streaming;
    if blocks.on == Some(true) {
        let break_at = blocks.break_at.unwrap_or_default();
        let chunking = Some(blocks.chunk.unwrap_or_default());
        request.block_replies = Some(BlockReplies { break_at, chunking, coalescing: None });
        request.blocks_are_default = true;
    }
    request
}

/// Resolves everything an attempt may use. Creates the workspace if necessary, and enters the sandbox if the run needs one.
pub(super) async fn scope(
    parts: &Parts,
    mut request: Box<RunRequest>,
    hooks: RunHooks,
    fence: Arc<dyn Fence>,
) -> Result<RunScope, RunError> {
    let RunWorkspace { dir: workspace, fallback, agent_id, agent_source } = workspace(parts, &request)?;
    if let Some(fallback) = fallback {
        let (reason, source) = (fallback.as_str(), agent_source.as_str());
        tracing::debug!(reason, source, agent = agent_id.as_str(), "the run uses the directory of its agent");
    }
    check_header(parts, &request)?;
    let planned = sandboxed::plan(parts, &request, &agent_id, &workspace);
    check_enforced(&parts.config, &agent_id, planned.is_some())?;
    complete_caller(&parts.config.agents, &mut request, &agent_id);
    pinch_stdx::fs::create_private_dir(&workspace).map_err(|error| not_created(&workspace, &error))?;
    if fallback.is_some() && parts.registered.workspace_templates && !parts.config.agents.defaults.skip_bootstrap {
        templates::create(&workspace, &parts.host).await.map_err(|error| not_created(&workspace, &error))?;
    }
    let shared = SharedWithSession::new(&parts.settings);
    let mut skills = match &request.skills {
        Some(skills) => AgentSkills::clone(skills),
        None => prompting::skills(parts, &agent_id, &workspace),
    };
    let skill_call = skills.called(&request.prompt);
    if let Some(prompt) = skills.expand(&request.prompt) {
        request.prompt = prompt;
    }
    let request: Arc<RunRequest> = request.into();
    let (workspace, mut sandbox) = match &planned {
        Some(planned) => (planned.workspace.clone(), Some(Box::pin(planned.enter(parts, &skills)).await?)),
        None => (workspace, None),
    };
    skills.variables.extend(sandbox.iter().flat_map(|sandbox| sandbox.variables.clone()));
    let machines = RunMachines::of(parts, &request, &workspace, &agent_id, sandbox.as_ref());
    let machine = Arc::clone(&machines.files);
    let tools = offer(parts, &request, &workspace, machines, (&shared, &skills))?
        .in_sandbox(sandbox.is_some().then(|| parts.config.tools.sandbox(agent_id.as_str())));
    if tools.applies_patches() {
        finish_patches(parts, &workspace, &*machine, sandbox.is_some()).await;
    }
    let may_leave = elevated(&parts.config, &request, &agent_id);
    if let Some(sandbox) = &mut sandbox {
        let (is_enabled, is_allowed, level) = (may_leave.is_enabled, may_leave.is_allowed, may_leave.level.name());
        sandbox.facts = sandbox.facts.clone().with_elevated(is_enabled, is_allowed, Some(level));
    }
    let prompt = prompting::prompt(parts, &request, (&agent_id, &workspace), &hooks, &skills, sandbox.as_ref()).await;
    let (place, confined) = (workspace.clone(), sandbox.as_ref().map(|sandbox| Arc::clone(&sandbox.machine)));
    let summaries = summaries(parts).with_instructions(move || {
        let (place, confined) = (place.clone(), confined.clone());
        Box::pin(async move { bootstrap::instructions(&place, confined.as_deref()).await })
    });
    Ok(RunScope {
        tools,
        loops: Arc::new(loop_guard(&parts.config, &agent_id, &request)),
        skill_call,
        prompt,
        extensions: extensions(parts, &request, &agent_id, &hooks),
        call_guard: call_guard(parts, &request, &agent_id),
        hooks,
        model_params: parts.config.agents.params_of(&agent_id),
        agent_id,
        workspace,
        machine,
        sandbox: sandbox.map(|sandbox| sandbox.prompt()),
        images: shared.images,
        block_images: parts.settings.images.block,
        facts: shared.facts,
        compaction: compaction_rules(parts),
        summaries,
        pruning: parts.config.agents.defaults.pruning.effective(),
        timeouts: parts.settings.timeouts,
        silence: parts.config.defaults.silence,
        cli_backends: parts.config.agents.defaults.cli_backends.clone(),
        cli_sessions: CliSessions::default(),
        credential_variables: Arc::new(credential_variables(parts)),
        host: parts.host.clone(),
        fence,
        request,
    })
}

fn not_created(workspace: &Path, error: &std::io::Error) -> RunError {
    RunError::Config(format!("cannot create the workspace {}: {error}", workspace.display()))
}

/// Returns when conversations are compacted, and what is reserved for answers.
pub(super) fn compaction_rules(parts: &Parts) -> CompactionRules {
    let mut rules = parts.settings.compaction.clone();
    let floor = parts.config.agents.defaults.compaction.reserve_tokens_floor.unwrap_or(RESERVE_FLOOR);
    rules.settings.reserve_tokens = rules.settings.reserve_tokens.max(floor);
    for of_model in rules.of_models.values_mut() {
        of_model.reserve_tokens = of_model.reserve_tokens.map(|tokens| tokens.max(floor));
    }
    rules.reserve_divisor = parts.config.defaults.reserve_divisor;
    rules
}

/// Returns the policy decision about the tools of a request, for the model it would be sent to first. Creates nothing.
pub(super) fn tool_policy(
    parts: &Parts,
    mut request: RunRequest,
    hooks: &RunHooks,
) -> Result<PolicyDecision, RunError> {
    let RunWorkspace { dir, agent_id, .. } = workspace(parts, &request)?;
    let is_sandboxed = sandboxed::plan(parts, &request, &agent_id, &dir).is_some();
    check_enforced(&parts.config, &agent_id, is_sandboxed)?;
    complete_caller(&parts.config.agents, &mut request, &agent_id);
    // Tool names do not depend on the machine.
    let machines = RunMachines::of(parts, &request, &dir, &agent_id, None);
    let offer =
        offer(parts, &request, &dir, machines, (&SharedWithSession::new(&parts.settings), &AgentSkills::default()))?
            .in_sandbox(is_sandboxed.then(|| parts.config.tools.sandbox(agent_id.as_str())));
    let models = candidates(parts, &request)?;
    let extensions = extensions(parts, &request, &agent_id, hooks);
    models.first().map(|model| offer.decide(model, &extensions)).ok_or(RunError::NoModel)
}

/// Fills in what the engine knows about the caller.
pub(super) fn complete_caller(agents: &Agents, request: &mut RunRequest, agent_id: &AgentId) {
    request.caller.agent = Some(agent_id.as_str().to_owned());
    let key = request.session_key.as_deref();
    request.caller.session_key = key.map(|key| workspace::lookup_key(agents, key).into_owned().into());
}

/// Returns how summaries are made: by a lighter model if there is one with credentials.
fn summaries(parts: &Parts) -> SummaryPlan {
    let config = parts.config.agents.defaults.compaction.clone();
    let (registry, profiles, setting) = (Arc::clone(&parts.registry), parts.profiles.clone(), config.model.clone());
    SummaryPlan::new(config, move |run| {
        let usable = match &setting {
            SummaryModelSetting::Run => return None,
            SummaryModelSetting::Auto => registry.models(&run.provider).to_vec(),
            SummaryModelSetting::Named(_) => registry.available(&|provider| profiles.is_configured(provider)),
        };
        let model = compaction::model::choose(&setting, run, &usable)?;
        let order = profiles.order(&model.provider, None);
        let profile = order.iter().find(|id| profiles.is_usable(id, &model));
        if profile.is_none() && !order.is_empty() {
            return None;
        }
        let auth = profiles.auth(profile, &model).ok()?;
        Some((model, auth))
    })
}

/// Returns the extensions of a run's session: those of the host and its plugins, between the two decisions of the guardrail, then the
/// history limit.
fn extensions(parts: &Parts, request: &RunRequest, agent_id: &AgentId, hooks: &RunHooks) -> Extensions {
    let caller = &request.caller;
    let key = caller.session_key.as_deref().unwrap_or_default();
    let limit = history::limit_for(&parts.config.channels, key, caller.account.as_deref());
    let limit = limit.filter(|limit| *limit > 0);
    let limit = limit.map(|limit| Arc::new(HistoryLimit(limit)) as Arc<dyn Extension>);
    let registered = &parts.registered;
    let guardrail = registered.guardrail.clone();
    let guardrail = guardrail
        .map(|guardrail| RunGuardrail::new(guardrail, agent_id.to_string(), request.session_key.clone()).extensions());
    let (first, last) = guardrail.map_or((None, None), |[first, last]| (Some(first), Some(last)));
    let of_host = registered.extensions.iter().cloned().chain(registered.plugins.extensions());
    let hooks = of_host.chain(hooks.of_session());
    Extensions::load(&parts.host, first.into_iter().chain(hooks).chain(last).chain(limit))
}

/// Returns what must decide about each tool call or command of an agent, if anything.
fn call_guard(parts: &Parts, request: &RunRequest, agent_id: &AgentId) -> Option<String> {
    if parts.registered.guardrail.is_some() {
        return Some("the guardrail".to_owned());
    }
    restricts_commands(&parts.config, request, agent_id).then(|| "tools.exec".to_owned())
}

/// Returns the runtimes of a run: the one that the request or the configuration names, else one per model. `pi` is an alias of `native`.
pub(super) fn runtimes(parts: &Parts, request: &RunRequest) -> Result<RuntimeChoice, RunError> {
    let agents = &parts.config.agents;
    let of_agent = agents.get(&request.agent(agents));
    let named = request
        .runtime
        .as_deref()
        .or_else(|| of_agent.and_then(|agent| agent.runtime.as_deref()))
        .or(agents.defaults.runtime.as_deref())
        .map(str::trim)
        .filter(|id| !id.is_empty())
        .map(|id| if id == "pi" { NATIVE } else { id });
    let find = |id: &str| {
        parts.runtimes.get(id).cloned().ok_or_else(|| {
            let known: Vec<&str> = parts.runtimes.keys().map(String::as_str).collect();
            RunError::Config(format!("unknown runtime \"{id}\"; registered: {}", known.join(", ")))
        })
    };
    Ok(RuntimeChoice {
        named: named.map(find).transpose()?,
        native: find(NATIVE)?,
        cli: find(CLI)?,
        backends: agents.defaults.cli_backends.clone(),
    })
}

/// Fails if the configuration restricts the tools of an agent in a way that is not enforced, or is enforced only in a sandbox.
fn check_enforced(config: &Config, agent: &AgentId, is_sandboxed: bool) -> Result<(), RunError> {
    let of_agent = config.agents.get(agent);
    let file = config.file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default();
    let mut need_sandbox = config.need_sandbox.iter().chain(of_agent.into_iter().flat_map(|agent| &agent.need_sandbox));
    if let Some(key) = need_sandbox.next().filter(|_| !is_sandboxed) {
        return Err(RunError::Config(format!(
            "{file}{key} requires a sandbox, but this run has none. Set agents.defaults.sandbox.mode, or remove the key"
        )));
    }
    let of_agent = of_agent.into_iter().flat_map(|agent| &agent.unenforced);
    match config.unenforced.iter().chain(of_agent).chain(config.channels.unenforced()).next() {
        None => Ok(()),
        Some(key) => Err(RunError::Config(format!(
            "{file}{key} restricts tools in a way that this version cannot enforce. Remove the key, or deny tools by name with tools.deny"
        ))),
    }
}

/// Returns the file name for a session. If a character had to be replaced or the name truncated, a hash of the id is appended, so that
/// different ids have different files.
pub(super) fn file_name(session_id: &str) -> String {
    let name = plain_name(session_id);
    if name == session_id {
        return format!("{name}.jsonl");
    }
    let cut = &name[..name.len().min(MAX_FILE_NAME - 9)];
    format!("{cut}-{}.jsonl", key::short_hash(session_id))
}

/// Replaces the characters of an id that are not allowed in file names.
fn plain_name(session_id: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = session_id.chars().map(safe).take(MAX_FILE_NAME).collect();
    if name.chars().all(|c| c == '.') { "session".to_owned() } else { name }
}

/// Returns the file of a session in a directory. A file that an earlier version named without a hash stays in use.
fn session_file(dir: &Path, session_id: &str) -> PathBuf {
    let file = dir.join(file_name(session_id));
    let old = dir.join(format!("{}.jsonl", plain_name(session_id)));
    if old != file && !file.exists() && header_id(&old).is_some_and(|id| id == session_id) { old } else { file }
}

/// Returns the session id in the header of a file; `None` if there is no file or no header.
fn header_id(file: &Path) -> Option<String> {
    let mut first = String::new();
    BufReader::new(File::open(file).ok()?).take(MAX_HEADER).read_line(&mut first).ok()?;
    let header: Value = serde_json::from_str(&first).ok()?;
    (header["type"] == "session").then(|| header["id"].as_str().map(str::to_owned)).flatten()
}

/// Refuses to continue another session than the requested one, according to the header of its file in the state directory.
fn check_header(parts: &Parts, request: &RunRequest) -> Result<(), RunError> {
    let SessionRef::Path(file) = &request.session else { return Ok(()) };
    match header_id(file).filter(|id| file.starts_with(&parts.state_dir) && *id != request.session_id) {
        None => Ok(()),
        Some(id) => Err(RunError::Config(format!(
            "{} is the file of session {id}, not of {}. Choose another session, or move the file away",
            file.display(),
            request.session_id
        ))),
    }
}

/// Returns the workspace and the agent of a run.
pub(super) fn workspace(parts: &Parts, request: &RunRequest) -> Result<RunWorkspace, RunError> {
    let asked = WorkspaceRequest {
        dir: request.workspace_dir.as_deref(),
        session_key: request.session_key.as_deref(),
        agent_id: request.agent_id.as_deref(),
        home: parts.host.home(),
        default_dir: &parts.state_dir.join("workspace"),
    };
    workspace::resolve(&parts.config.agents, &asked).map_err(|error| RunError::Config(error.to_string()))
}

/// Returns the working directory of a run's tools: its workspace, or the sandbox's replacement for it.
pub(super) fn working_dir(parts: &Parts, request: &RunRequest) -> Option<PathBuf> {
    let RunWorkspace { dir, agent_id, .. } = workspace(parts, request).ok()?;
    Some(sandboxed::plan(parts, request, &agent_id, &dir).map_or(dir, |planned| planned.workspace))
}

/// The models of a run.
pub(super) struct RunModels {
    /// The requested or configured one.
    pub(super) wanted: ModelRef,
    /// Those that can be tried, in order.
    pub(super) known: Vec<Arc<Model>>,
    /// Configured ones that do not exist.
    pub(super) unknown: Vec<CandidateAttempt>,
}

/// Returns the models of a run that can be tried: the requested or configured one, then its fallbacks.
pub(super) fn candidates(parts: &Parts, request: &RunRequest) -> Result<Vec<Arc<Model>>, RunError> {
    models(parts, request).map(|models| models.known)
}

/// Returns the models of a run. A configured one that does not exist is skipped if there are others; a requested one must exist.
pub(super) fn models(parts: &Parts, request: &RunRequest) -> Result<RunModels, RunError> {
    let agents = &parts.config.agents;
    let mut setting = agents.models_of(&request.agent(agents));
    let has_auth = |provider: &ProviderId| parts.profiles.is_configured(provider);
    let find = |provider: Option<&str>, name: &str| -> Result<Arc<Model>, RunError> {
        if let Some(model) = lookup::of_cli(&agents.defaults.cli_backends, provider, name) {
            return Ok(as_configured(Arc::new(model), &agents.defaults));
        }
        lookup::find(&parts.registry, &parts.config.models, provider, name, &has_auth)
            .map(|found| as_configured(found, &agents.defaults))
            .map_err(|why| unknown_model(provider, name, why))
    };
    let aliases = Aliases::of(&agents.defaults);
    let first = match (&request.model, &setting.primary) {
        (Some(model), _) => Ok(find(request.provider.as_deref(), alias(parts, model))?),
        (None, Some(primary)) => find(None, alias(parts, primary)),
        (None, None) => Ok(as_configured(with_key(parts, &has_auth)?, &agents.defaults)),
    };
    let wanted = match &first {
        Ok(first) => ModelRef::new(first.provider.as_str(), first.id.as_str()),
        Err(_) => select::primary(setting.primary.as_deref(), &aliases),
    };
    setting.primary.get_or_insert_with(|| wanted.to_string());
    let asked = CandidateRequest {
        setting: &setting,
        aliases: &aliases,
        requested: Some(&wanted),
        fallbacks_override: request.fallbacks.as_deref(),
    };
    check_allowed(parts, &wanted, &asked)?;
    let mut models = RunModels { wanted: wanted.clone(), known: Vec::new(), unknown: Vec::new() };
    let mut add = |model: &ModelRef, found: &Result<Arc<Model>, RunError>| match found {
        Ok(found) => models.known.push(Arc::clone(found)),
        Err(error) => {
            tracing::warn!(%error, %model, "skipping a configured model");
            models.unknown.push(CandidateAttempt::unknown(model.clone(), error));
        }
    };
    add(&wanted, &first);
    for other in candidates::candidates(&asked).into_iter().skip(1) {
        add(&other, &find(Some(other.provider.as_str()), other.model.as_str()));
    }
    match first {
        Err(error) if models.known.is_empty() => Err(error),
        _ => Ok(models),
    }
}

fn unknown_model(provider: Option<&str>, name: &str, why: NotFound) -> RunError {
    let name = provider.map_or_else(|| name.to_owned(), |provider| format!("{provider}/{name}"));
    RunError::UnknownModel { name, why }
}

/// Rejects a requested model that is not on the configured list, if there is one. Explicitly requested fallbacks are allowed.
fn check_allowed(parts: &Parts, wanted: &ModelRef, asked: &CandidateRequest<'_>) -> Result<(), RunError> {
    let defaults = &parts.config.agents.defaults;
    let listed: Vec<&String> = match &defaults.allowed_models {
        Some(allowed) => allowed.iter().collect(),
        None => defaults.models.iter().map(|(name, _)| name).collect(),
    };
    let listed: Vec<ModelRef> = listed.into_iter().filter_map(|name| asked.aliases.resolve(name)).collect();
    let default = select::primary(asked.setting.primary.as_deref(), asked.aliases);
    let is_fallback = asked.setting.fallbacks.iter().any(|name| asked.aliases.resolve(name).as_ref() == Some(wanted));
    let list = match defaults.allowed_models {
        Some(_) => "agents.defaults.modelPolicy.allow",
        None => "agents.defaults.models",
    };
    match (Allowed { models: &listed, default: &default }).check(wanted) {
        Err(refused) if !is_fallback => {
            Err(RunError::Config(format!("{refused}. Add it to {list}, or remove that list to allow every model")))
        }
        _ => Ok(()),
    }
}

/// Returns the model with its window and images limited by the configuration.
fn as_configured(model: Arc<Model>, defaults: &AgentDefaults) -> Arc<Model> {
    let window = Window::resolve(None, Some(model.context_window), defaults.context_tokens);
    let limits = model.image_limits();
    let max_side = defaults.image_max_side.unwrap_or(u32::MAX);
    if window.tokens == model.context_window && limits.max_width.max(limits.max_height) <= max_side {
        return model;
    }
    let mut limited = Model::clone(&model);
    limited.context_window = window.tokens;
    limited.limit_image_sides(max_side);
    Arc::new(limited)
}

fn alias<'a>(parts: &'a Parts, name: &'a str) -> &'a str {
    let models = &parts.config.agents.defaults.models;
    let is_it = |alias: &Option<String>| alias.as_ref().is_some_and(|alias| alias.eq_ignore_ascii_case(name));
    models.iter().find(|(_, entry)| is_it(&entry.alias)).map_or(name, |(reference, _)| reference)
}

/// Returns the preferred model among those with a key.
fn with_key(parts: &Parts, has_auth: &dyn Fn(&ProviderId) -> bool) -> Result<Arc<Model>, RunError> {
    let preferred = catalog::default_ids().map(|(provider, _)| ProviderId::new(provider));
    preferred
        .chain(parts.registry.providers())
        .find(|provider| has_auth(provider))
        .and_then(|provider| parts.registry.default_model(&provider))
        .ok_or(RunError::NoModel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_become_safe_file_names() {
        assert_eq!(file_name("user-1"), "user-1.jsonl");
        assert_eq!(file_name("user-1/../x y"), "user-1_.._x_y-2a4aa4ce.jsonl");
        assert!(file_name("..").starts_with("session-"));
        assert_ne!(file_name("Анна"), file_name("Иван"));
        assert_ne!(file_name(&"x".repeat(500)), file_name(&"x".repeat(501)));
        assert!(file_name(&"x".repeat(500)).len() <= MAX_FILE_NAME + ".jsonl".len());
    }
}
