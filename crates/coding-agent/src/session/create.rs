//! Creating a session from services and options.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{Hooks, NoHooks};
use pinch_agent_core::tool::{Tool, ToolSet};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};

use super::extension_models::{ServiceModels, change_provider};
use super::models::ScopedModel;
use super::{AgentSession, SessionError, SessionParts};
use crate::auth::{Authorised, RequestAuth};
use crate::extension::host::GivenFlag;
use crate::extension::ui::Ui;
use crate::extension::{Extension, Extensions, OutputListener, SessionReason, TrustPrompt};
use crate::images::{ImageIntake, ImageProcessing};
use crate::machine::Machine;
use crate::machine::local::LocalMachine;
use crate::models::dispatch::Dispatch;
use crate::models::local_servers::LocalServer;
use crate::models::pattern::NotFound;
use crate::prompt::{PromptParts, PromptSections as SystemPrompt};
use crate::recovery::transport::RepeatingProvider;
use crate::services::Services;
use crate::session_log::SessionLog;
use crate::settings::Settings;
use crate::settings::values::TransportSetting;
use crate::tools::bash::{BashTool, NoShell, Shell};
use crate::tools::facts::SessionFacts;
use crate::tools::path::WorkingDirectory;
use crate::tools::{ALL, CODING, ToolParts, all_tools, choice};

mod chooser;
mod extensions;

pub(crate) use chooser::Chooser;

/// Options of a session. Defaults come from the settings.
#[derive(Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The model to use.
    pub model: ModelChoice,
    /// The thinking level, clamped to those the model supports.
    pub thinking: Option<ThinkingLevel>,
    /// Patterns of the models to cycle through; `None` uses the settings.
    pub scope: Option<Vec<String>>,
    /// An API key for the model's provider, which is not stored.
    pub api_key: Option<Secret>,
    /// Names of the active tools, interpreted by [`choice::choose`]; `None` uses the default ones.
    pub tools: Option<Vec<String>>,
    /// Names of tools to exclude.
    pub excluded_tools: Vec<String>,
    /// Which tools are not created at all.
    pub without_tools: WithoutTools,
    /// Additional tools; they are active, and replace built-in ones with the same name.
    pub custom_tools: Vec<Arc<dyn Tool>>,
    /// The caller's hooks.
    pub hooks: Arc<dyn Hooks>,
    /// The machine that tools act on.
    pub machine: Arc<dyn Machine>,
    /// If the machine is a sandbox: what tools can reach in it, for the system prompt. Commands then see only the environment variables that
    /// programs need, unless configured otherwise.
    pub sandbox: Option<String>,
    /// A provider that replaces the models' servers and handles credentials itself.
    pub provider: Option<Arc<dyn Provider>>,
    /// Whether to look for model servers on this machine if no other model is available.
    pub look_for_local_servers: bool,
    /// A model server on this machine, found earlier, to use if no other model is available.
    pub local_server: Option<LocalServer>,
    /// Extensions supplied by the program; they precede those found as files.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// Flags for extensions, with their values.
    pub flags: Vec<GivenFlag>,
    /// The user interface for extension dialogs; `None` if there is none.
    pub ui: Option<Arc<dyn Ui>>,
    /// Receives what extensions in files print, line by line; `None` discards it.
    pub extension_output: Option<OutputListener>,
    /// Asks the user through `ui` whether to trust undecided projects; `None` does not trust them.
    pub trust_prompt: Option<Arc<TrustPrompt>>,
    /// Why the session starts, reported to extensions.
    pub reason: SessionReason,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            model: ModelChoice::Default,
            thinking: None,
            scope: None,
            api_key: None,
            tools: None,
            excluded_tools: Vec::new(),
            without_tools: WithoutTools::None,
            custom_tools: Vec::new(),
            hooks: Arc::new(NoHooks),
            machine: Arc::new(LocalMachine),
            sandbox: None,
            provider: None,
            look_for_local_servers: false,
            local_server: None,
            extensions: Vec::new(),
            flags: Vec::new(),
            ui: None,
            extension_output: None,
            trust_prompt: None,
            reason: SessionReason::Startup,
        }
    }
}

/// How to select the model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ModelChoice {
    /// The session's model, or else the first of the scope, the configured one, or one with credentials.
    #[default]
    Default,
    /// The model matching a pattern.
    Named {
        /// Its provider.
        provider: Option<String>,
        /// An id, part of an id, or `provider/id`, optionally followed by a colon and a thinking level.
        pattern: String,
    },
    /// This model.
    Exact(Arc<Model>),
}

/// Which tools are not created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithoutTools {
    /// Create all tools.
    #[default]
    None,
    /// Create no built-in tools.
    BuiltIn,
    /// Create no tools at all.
    All,
}

/// A new session and related values.
#[non_exhaustive]
pub struct Created {
    /// The session.
    pub session: AgentSession,
    /// The services shared by sessions of its working directory.
    pub services: Arc<Services>,
    /// The models to cycle through; empty means all available ones.
    pub scope: Vec<ScopedModel>,
    /// Runs the user's commands.
    pub shell: Arc<BashTool>,
    /// Notes about documents and selections, as sentences for people.
    pub notes: Vec<String>,
}

impl Created {
    /// Notifies the extensions of the session, and of the file of the one whose place it takes.
    pub(crate) async fn arrive(&mut self, reason: SessionReason, previous: Option<PathBuf>) {
        self.session.arrive(reason, previous).await;
        self.notes.extend(self.services.take_problems());
        let failures = self.session.control().extensions().take_failures();
        self.notes.extend(
            failures
                .iter()
                .map(|failed| format!("Extension {} failed at {}: {}", failed.extension, failed.event, failed.error)),
        );
    }
}

/// Why a session could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// No model matches the pattern.
    #[error(transparent)]
    Model(#[from] NotFound),
    /// No model is configured.
    #[error("No models available. Set a provider's key, or configure a server in {}", file_or_name(models_json.as_deref(), "models.json"))]
    NoModel {
        /// The file in which servers can be configured, if there is an agent directory.
        models_json: Option<PathBuf>,
    },
    /// There are no credentials for the requested model.
    #[error("No API key found for {provider}")]
    NoKey {
        /// Its provider.
        provider: ProviderId,
    },
    /// A requested tool does not exist.
    #[error("Unknown tool name: {name}. Available tools: {}", known.join(", "))]
    UnknownTool {
        /// Name of the tool.
        name: String,
        /// Names of the existing tools.
        known: Vec<String>,
    },
    /// No shell was found.
    #[error(transparent)]
    Shell(#[from] NoShell),
    /// Settings that restrict sessions cannot be read.
    #[error(
        "{} sets defaultTools or shellEnvironment but cannot be read; without it the session could do more than it allows. \
         Repair the file, or remove it",
        path.display()
    )]
    UnreadSettings {
        /// The document.
        path: PathBuf,
    },
    /// Unknown flags, or flags without a value.
    #[error("{}", problems.join("\n"))]
    Flags {
        /// Descriptions of the problems.
        problems: Vec<String>,
    },
    /// The log cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Creates a session on a log.
///
/// # Errors
/// [`CreateError`]; nothing was written to the log.
pub fn create(
    services: Services,
    log: SessionLog,
    options: &SessionOptions,
) -> BoxFuture<'_, Result<Created, CreateError>> {
    Box::pin(async move {
        let mut created = prepare(services, log, options).await?;
        created.arrive(options.reason, None).await;
        Ok(created)
    })
}

/// Like [`create`], without notifying the extensions: see [`Created::arrive`].
pub(crate) async fn prepare(
    services: Services,
    log: SessionLog,
    options: &SessionOptions,
) -> Result<Created, CreateError> {
    if let Some(path) = services.settings().unread_restriction() {
        return Err(CreateError::UnreadSettings { path });
    }
    let mut notes = Vec::new();
    let (services, found) = extensions::found(services, options, &mut notes).await;
    notes.splice(0..0, services.take_problems());
    let settings = services.settings().settings();
    notes.extend(log.problems());
    let context = log.context();
    let extensions = extensions::load(&services, found, options, &mut notes)?;
    let choice = Chooser::of(options).choose_found(&services, &settings, &context, options, &mut notes).await?;
    let services = match &options.api_key {
        Some(key) => services.with_key(choice.model.provider.clone(), key.clone()),
        None => services,
    };
    let is_configured = services.auth().is_configured(&choice.model.provider);
    if options.provider.is_none() && !is_configured {
        return Err(CreateError::NoKey { provider: choice.model.provider.clone() });
    }
    let facts = SessionFacts::default();
    let images =
        ImageIntake::new(if settings.images.auto_resize { ImageProcessing::Resized } else { ImageProcessing::Checked });
    let host = services.host().clone();
    let parts = ToolParts {
        machine: Arc::clone(&options.machine),
        place: WorkingDirectory { cwd: services.cwd().to_owned(), home: host.home().map(Path::to_owned) },
        files: services.files().clone(),
        shell: shell(&settings, &services, &host, options.sandbox.is_some())?,
        facts: facts.clone(),
        images: images.clone(),
        read_budget: None,
    };
    let toolbox = choose_tools(&parts, &settings, options, &extensions, &mut notes)?;
    let auth: Arc<dyn RequestAuth> = Arc::clone(services.auth()) as Arc<dyn RequestAuth>;
    let provider = options.provider.clone().unwrap_or_else(|| {
        let dispatch = Arc::new(Dispatch::new(Arc::clone(services.models())));
        let authorised = Arc::new(Authorised::new(dispatch, Arc::clone(&auth)));
        Arc::new(RepeatingProvider::new(authorised, settings.recovery.transport))
    });
    let thinking = choice.level(&settings, &log);
    let services = Arc::new(services);
    let sandbox = options.sandbox.clone();
    let (known, telling, loading) = (Arc::clone(&services), Arc::clone(&services), Arc::clone(&services));
    let slash = services.slash_commands();
    let usual = SessionParts::new(host, log, choice.model, provider);
    let session = AgentSession::assemble(SessionParts {
        thinking,
        usual_thinking: settings.default_thinking,
        find_model: Some(Arc::new(move |provider, id| {
            known.models().find(provider, id.as_str()).filter(|model| known.auth().is_configured(&model.provider))
        })),
        models: Some(Arc::new(ServiceModels::new(Arc::clone(&services), choice.scope.clone()))),
        is_project_trusted: services.trust().is_trusted(),
        auth: options.provider.is_none().then_some(auth),
        tools: toolbox.active,
        facts,
        all_tools: toolbox.all,
        allowed_tools: toolbox.allowed,
        prompt_for: Some(Arc::new(move |tools| system_prompt(&telling, sandbox.as_deref(), tools))),
        extensions: extensions.clone(),
        templates: slash.templates,
        skills: slash.skills,
        load_found: Some(Arc::new(move |found| {
            loading.extend_resources(found.to_vec());
            loading.slash_commands()
        })),
        hooks: Arc::clone(&options.hooks),
        block_images: settings.images.block,
        images,
        branch_reserve_tokens: settings.branch_reserve_tokens,
        compaction: settings.compaction.clone(),
        plan: settings.recovery,
        options: CallOptions::default()
            .with_thinking_budgets(settings.thinking_budgets)
            .with_timeouts(settings.timeouts)
            .with_native(transport(&settings))
            .into(),
        ..usual
    })
    .await?;
    let control = session.control();
    control.begin_with_queue_modes(settings.steering_mode, settings.follow_up_mode);
    Ok(Created { session, services, scope: choice.scope, shell: Arc::new(BashTool::new(&parts)), notes })
}

/// The tools of a session.
struct SessionTools {
    /// The initially active tools, without those of extensions.
    active: ToolSet,
    /// All tools; `None` if a conversation must not change the selection.
    all: Option<ToolSet>,
    /// Names of the only tools that may exist; `None` allows all.
    allowed: Option<Vec<String>>,
}

/// Returns the tools named, in that order.
fn choose_tools(
    parts: &ToolParts,
    settings: &Settings,
    options: &SessionOptions,
    extensions: &Extensions,
    notes: &mut Vec<String>,
) -> Result<SessionTools, CreateError> {
    let custom = &options.custom_tools;
    let built_in = match options.without_tools {
        WithoutTools::None => all_tools(parts),
        WithoutTools::BuiltIn | WithoutTools::All => ToolSet::new(),
    };
    // The caller's tools replace built-in ones.
    let is_replaced = |name: &str| custom.iter().any(|own| own.spec().name == name);
    let all: Vec<Arc<dyn Tool>> =
        built_in.iter().filter(|tool| !is_replaced(&tool.spec().name)).cloned().chain(custom.iter().cloned()).collect();
    let all: ToolSet = all.into_iter().collect();
    let theirs: Vec<String> = extensions.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    let of_extensions = theirs.iter().map(String::as_str);
    let known: Vec<&str> = all.iter().map(|tool| tool.spec().name.as_str()).chain(of_extensions).collect();
    let of_custom = custom.iter().map(|own| own.spec().name.clone());
    let usual: Vec<String> = CODING
        .iter()
        .filter(|name| known.contains(*name) && !is_replaced(name))
        .map(|name| (*name).to_owned())
        .chain(of_custom)
        .collect();
    let unknown =
        |name: String| CreateError::UnknownTool { name, known: known.iter().map(|name| (*name).to_owned()).collect() };
    let usual = match settings.default_tools.as_ref().map(|list| choice::choose_known(&usual, list, &known)) {
        None => usual,
        Some((names, left_out)) => {
            if !left_out.is_empty() && options.without_tools == WithoutTools::None {
                let why = unknown(left_out.join(", "));
                notes.push(format!("defaultTools in settings.json: unknown tools are ignored. {why}"));
            }
            names
        }
    };
    let named = match &options.tools {
        _ if options.without_tools == WithoutTools::All => Vec::new(),
        None => usual,
        Some(list) => choice::choose(&usual, list, &known).map_err(unknown)?,
    };
    let can_be_excluded: Vec<&str> = ALL.iter().chain(&known).copied().collect();
    let excluded = choice::choose(&[], &options.excluded_tools, &can_be_excluded).map_err(unknown)?;
    let active = named.iter().filter(|name| !excluded.contains(name)).filter_map(|name| all.get(name).cloned());
    let allowed = match &options.tools {
        _ if options.without_tools == WithoutTools::All => Some(Vec::new()),
        Some(list) if !choice::is_change(list) => Some(named.clone()),
        _ if excluded.is_empty() => None,
        _ => Some(known.iter().map(|name| (*name).to_owned()).filter(|name| !excluded.contains(name)).collect()),
    };
    // A selection for this run takes precedence over that of the conversation.
    let is_chosen = options.tools.is_some() || options.without_tools != WithoutTools::None || !excluded.is_empty();
    Ok(SessionTools { active: active.collect(), all: (!is_chosen).then_some(all), allowed })
}

/// Returns how commands run: the user's shell, with the agent directory's programs, and marked as run by an agent.
fn shell(settings: &Settings, services: &Services, host: &Host, is_sandboxed: bool) -> Result<Shell, CreateError> {
    let program = Shell::program(settings.shell_path.as_deref())?;
    let rule = &settings.shell_environment;
    let rule = if is_sandboxed { rule.in_sandbox() } else { rule.clone() };
    let env = rule.select(host.env().iter(), &services.models().key_variables());
    let env = Shell::environment(env);
    Ok(Shell {
        program,
        prefix: settings.shell_command_prefix.clone(),
        env: match services.agent_dir() {
            Some(dir) => Shell::with_programs(env, &dir.join("bin")),
            None => env,
        },
        temp: host.temp().to_owned(),
    })
}

/// Returns the path of a file, or else its name.
fn file_or_name(file: Option<&Path>, name: &str) -> String {
    file.map_or_else(|| name.to_owned(), |file| file.display().to_string())
}

/// Returns the transport setting, if there is one.
fn transport(settings: &Settings) -> Map<String, Value> {
    let transport = settings.network.transport;
    let option = (transport != TransportSetting::Auto).then(|| ("transport".to_owned(), transport.as_str().into()));
    option.into_iter().collect()
}

fn system_prompt(services: &Services, sandbox: Option<&str>, tools: &ToolSet) -> SystemPrompt {
    let resources = services.resources();
    let addendum = resources.addendum();
    SystemPrompt::coding(&PromptParts {
        custom: resources.system_prompt.as_deref(),
        addendum: addendum.as_deref(),
        context_files: &resources.context_files,
        skills: resources.skills(),
        sandbox,
        ..PromptParts::new(tools, services.cwd())
    })
}
