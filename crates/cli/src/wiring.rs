//! From flags to parts: folders, documents, credentials, a model, a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_cli::options::Options;
use pinch_embed::agent_core::ToolSet;
use pinch_embed::coding_agent::auth::{AuthStorage, Authorised, FixedAuth, RequestAuth};
use pinch_embed::coding_agent::machine::LocalMachine;
use pinch_embed::coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_embed::coding_agent::prompt::{Prompt as SystemPrompt, PromptParts};
use pinch_embed::coding_agent::recovery::transport::RepeatingProvider;
use pinch_embed::coding_agent::resources::context_files;
use pinch_embed::coding_agent::runtime::{SessionFactory, SessionRuntime};
use pinch_embed::coding_agent::services::Services;
use pinch_embed::coding_agent::session::{AgentSession, SessionParts};
use pinch_embed::coding_agent::session_log::SessionLog;
use pinch_embed::coding_agent::settings::Settings;
use pinch_embed::coding_agent::tools::bash::{BashTool, Shell};
use pinch_embed::coding_agent::tools::choice;
use pinch_embed::coding_agent::tools::facts::SessionFacts;
use pinch_embed::coding_agent::tools::file_queue::FileQueue;
use pinch_embed::coding_agent::tools::path::Place;
use pinch_embed::coding_agent::tools::{ALL, CODING, ToolParts, all_tools};
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::llm::provider::{Provider, ProviderRegistry};
use pinch_embed::llm::request::{Auth, CallOptions};
use pinch_embed::llm::thinking::ThinkingLevel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::secret::Secret;

use crate::exit::{Failure, Kind, warn, warn_of};
use crate::find_model::{self, Choice, Wishes};
use crate::folders::{Folders, expand_home};
use crate::open_log::open_log;

/// A session with all its parts, ready to be asked.
pub(crate) async fn runtime(args: Options, host: &Host) -> Result<SessionRuntime, Failure> {
    let folders = Folders::find(args.agent_dir.as_deref(), host)?;
    let (settings, _) = Settings::load(&folders.agent_dir.join("settings.json"));
    let log = open_log(&args, &folders, &settings, host).await?;
    let maker = Maker { args, folders, host: host.clone() };
    let (session, services) = maker.make(log).await?;
    Ok(SessionRuntime::new(session, services, Arc::new(maker)))
}

/// Makes sessions as the flags want them.
struct Maker {
    args: Options,
    folders: Folders,
    host: Host,
}

impl SessionFactory for Maker {
    fn create(&self, log: SessionLog) -> BoxFuture<'_, Result<(AgentSession, Arc<Services>), String>> {
        Box::pin(async { self.make(log).await.map_err(|failure| failure.text) })
    }
}

impl Maker {
    async fn make(&self, log: SessionLog) -> Result<(AgentSession, Arc<Services>), Failure> {
        let Self { args, folders, host } = self;
        let (settings, problems) = Settings::load(&folders.agent_dir.join("settings.json"));
        warn_of(&problems);
        let cwd = PathBuf::from(log.cwd());
        let context = log.context();
        let (registry, problems) = ModelRegistry::load(&folders.agent_dir.join("models.json"));
        warn_of(&problems);
        let registry = Arc::new(registry);
        let (choice, provider, auth, known) =
            choose(args, folders, &settings, &registry, &context, host).await.map_err(|failure| {
                // What is missing may stand in the part that cannot be read.
                let kind = if problems.is_empty() { failure.kind } else { Kind::Configuration };
                Failure { kind, ..failure }
            })?;
        let facts = SessionFacts::default();
        let parts = tool_parts(&cwd, &settings, &facts, host)?;
        let tools = tools(args, &settings, &parts)?;
        let system = system_prompt(args, folders, &cwd, &tools, host)?;
        let options = CallOptions {
            thinking_budgets: settings.thinking_budgets,
            deadlines: settings.deadlines,
            ..CallOptions::default()
        };
        let wanted = args.thinking.or(choice.thinking);
        let is_new = context.messages.is_empty();
        let thinking = wanted.or_else(|| is_new.then(|| settings.default_thinking.unwrap_or(ThinkingLevel::Medium)));
        let provider = Arc::new(RepeatingProvider::new(provider, settings.recovery.transport));
        let usual = SessionParts::new(host.clone(), log, choice.model, provider);
        let session = AgentSession::start(SessionParts {
            thinking,
            usual_thinking: settings.default_thinking,
            auth: Some(Arc::clone(&auth)),
            tools,
            system,
            branch_reserve_tokens: settings.branch_reserve_tokens,
            compaction: settings.compaction.clone(),
            plan: settings.recovery,
            options,
            ..usual
        })
        .await?;
        facts.set(session.facts());
        let services = Services {
            host: host.clone(),
            cwd,
            agent_dir: folders.agent_dir.clone(),
            settings,
            models: registry,
            auth: known,
            shell: Arc::new(BashTool::new(&parts)),
        };
        Ok((session, Arc::new(services)))
    }
}

/// The model, whoever answers for it, credentials in front, and who gives those.
async fn choose(
    args: &Options,
    folders: &Folders,
    settings: &Settings,
    registry: &Arc<ModelRegistry>,
    context: &pinch_embed::coding_agent::session_log::Context,
    host: &Host,
) -> Result<(Choice, Arc<dyn Provider>, Arc<dyn RequestAuth>, Arc<RegistryAuth>), Failure> {
    let (storage, problems) = AuthStorage::load(&folders.agent_dir.join("auth.json"));
    warn_of(&problems);
    let base = RegistryAuth::new(Arc::clone(registry), storage.clone(), None, host.clone());
    let given_for_all = args.api_key.is_some();
    let knows = find_model::knows(&base);
    let has_auth = |provider: &ProviderId| given_for_all || knows(provider);
    let wishes = Wishes {
        provider: args.provider.as_deref(),
        model: args.model.as_deref(),
        settings,
        context: Some(context),
        agent_dir: &folders.agent_dir,
    };
    let choice = find_model::find(&wishes, registry, &has_auth, host).await?;
    let model = &choice.model;
    let given = args.api_key.as_deref().map(|key| (model.provider.clone(), Secret::new(key)));
    let known = Arc::new(RegistryAuth::new(Arc::clone(registry), storage, given, host.clone()));
    let auth: Arc<dyn RequestAuth> = if choice.keyless {
        Arc::new(FixedAuth(Auth::keyless()))
    } else {
        if !has_auth(&model.provider) {
            return Err(no_key(&model.provider, &folders.agent_dir));
        }
        Arc::clone(&known) as Arc<dyn RequestAuth>
    };
    let provider = ProviderRegistry::builtin().get(&model.api).map_err(|error| {
        Failure::configuration(format!("{error}. The model {}/{} needs it", model.provider, model.id))
    })?;
    Ok((choice, Arc::new(Authorised::new(provider, Arc::clone(&auth))), auth, known))
}

/// No key for a provider that was named.
pub(crate) fn no_key(provider: &ProviderId, agent_dir: &Path) -> Failure {
    let file = agent_dir.join("auth.json");
    let rest = match pinch_embed::llm::keys::remedy(provider.as_str()) {
        Some(remedy) => format!("{remedy}, put one into {}, or give --api-key", file.display()),
        None => format!("Put one into {}, or give --api-key", file.display()),
    };
    Failure::configuration(format!("No API key found for {provider}. {rest}"))
}

/// What tools of a working directory are built from.
fn tool_parts(cwd: &Path, settings: &Settings, facts: &SessionFacts, host: &Host) -> Result<ToolParts, Failure> {
    Ok(ToolParts {
        machine: Arc::new(LocalMachine),
        place: Place { cwd: cwd.to_owned(), home: host.home().map(Path::to_owned) },
        files: FileQueue::default(),
        shell: shell(settings, host)?,
        facts: facts.clone(),
    })
}

/// The tools that flags and settings name, in the order of their names there.
fn tools(args: &Options, settings: &Settings, parts: &ToolParts) -> Result<ToolSet, Failure> {
    let all = all_tools(parts);
    let names = tool_names(args, settings)?;
    Ok(names.iter().filter_map(|name| all.get(name).cloned()).collect())
}

/// The names of the tools for a session.
fn tool_names(args: &Options, settings: &Settings) -> Result<Vec<String>, Failure> {
    let unknown = |name: String| format!("Unknown tool name: {name}. There are: {}", ALL.join(", "));
    let usual = CODING.map(str::to_owned).to_vec();
    let usual = match settings.default_tools.as_ref().map(|list| choice::choose(&usual, list, &ALL)) {
        None => usual,
        Some(Ok(names)) => names,
        Some(Err(name)) => {
            warn(&format!("defaultTools in settings.json is ignored. {}", unknown(name)));
            usual
        }
    };
    let named = match &args.tools {
        _ if args.no_tools => Vec::new(),
        None => usual,
        Some(list) => choice::choose(&usual, list, &ALL).map_err(|name| Failure::user(unknown(name)))?,
    };
    let excluded: Vec<String> = args.exclude_tools.iter().flatten().map(|name| name.trim().to_owned()).collect();
    let excluded = choice::choose(&[], &excluded, &ALL).map_err(|name| Failure::user(unknown(name)))?;
    Ok(named.into_iter().filter(|name| !excluded.contains(name)).collect())
}

/// How commands are run: the user's shell, and the environment with a mark that an agent is at work.
fn shell(settings: &Settings, host: &Host) -> Result<Shell, Failure> {
    let program = match &settings.shell_path {
        Some(path) if path.exists() => path.clone(),
        Some(path) => return Err(Failure::configuration(format!("Custom shell path not found: {}", path.display()))),
        None => {
            ["/bin/bash", "/usr/bin/bash", "/bin/sh"].map(PathBuf::from).into_iter().find(|p| p.exists()).ok_or_else(
                || {
                    Failure::configuration(
                        "There is no /bin/bash or /bin/sh. Name a shell with \"shellPath\" in settings.json",
                    )
                },
            )?
        }
    };
    let env = Shell::environment(host.env().iter());
    Ok(Shell { program, prefix: settings.shell_command_prefix.clone(), env, temp: host.temp().to_owned() })
}

fn system_prompt(
    args: &Options,
    folders: &Folders,
    cwd: &Path,
    tools: &ToolSet,
    host: &Host,
) -> Result<SystemPrompt, Failure> {
    let custom = args.system_prompt.as_deref().map(|given| text_or_file(given, folders, host)).transpose()?;
    let added = (args.append_system_prompt.iter())
        .map(|given| text_or_file(given, folders, host))
        .collect::<Result<Vec<_>, _>>()?
        .join("\n\n");
    let (files, problems) = match args.no_context_files {
        true => (Vec::new(), Vec::new()),
        false => context_files::collect(&folders.agent_dir, cwd),
    };
    warn_of(&problems);
    Ok(SystemPrompt::coding(&PromptParts {
        custom: custom.as_deref(),
        addendum: (!added.is_empty()).then_some(added.as_str()),
        context_files: &files,
        ..PromptParts::new(tools, cwd)
    }))
}

/// A value that names an existing file stands for its content.
fn text_or_file(given: &str, folders: &Folders, host: &Host) -> Result<String, Failure> {
    let path = folders.cwd.join(expand_home(Path::new(given), host));
    if given.len() < 4096 && path.is_file() {
        return std::fs::read_to_string(&path)
            .map_err(|error| Failure::user(format!("Cannot read {}: {error}", path.display())));
    }
    Ok(given.to_owned())
}
