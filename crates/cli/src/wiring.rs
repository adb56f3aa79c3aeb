//! Builds a session from flags: every flag becomes a value of [`AgentSessionOptions`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_cli::options::CliOptions;
use pinch_embed::coding_agent::extension::ui::Ui;
use pinch_embed::coding_agent::extension::{OutputListener, TrustPrompt};
use pinch_embed::coding_agent::models::local_servers::LocalServer;
use pinch_embed::coding_agent::packages::source::{PackageSource, absolute};
use pinch_embed::coding_agent::resources::{CommandLinePaths, Without, trust};
use pinch_embed::coding_agent::runtime::{AgentSessionOptions, RuntimeError, SessionRuntime, SessionSetup};
use pinch_embed::coding_agent::services::{
    Announce, DirectorySettings, ResourceOptions, ResourceSource, ServiceOptions, Services,
};
use pinch_embed::coding_agent::session::create::{ModelChoice, WithoutTools};
use pinch_embed::coding_agent::session::{CreateError, SessionOptions};
use pinch_embed::coding_agent::startup_moves;
use pinch_embed::llm::model::Model;
use pinch_embed::llm::provider::missing_feature;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::secret::Secret;

use crate::exit::{Blame, CommandFailure, tell, warn, warn_of};
use crate::find_model;
use crate::folders::Folders;
use crate::open_log::{self, session_folder};
use crate::sandbox;

/// Creates the session described by the options. `local_server`: a model server on this machine that the user has chosen.
pub(crate) async fn runtime(
    options: &CliOptions,
    host: &Host,
    user: SessionUser,
    local_server: Option<LocalServer>,
) -> Result<SessionRuntime, CommandFailure> {
    let folders = Folders::find(options.agent_dir.as_deref(), host)?;
    check_extensions(options, &folders, host)?;
    let project_dir = trust::project_dir(&folders.cwd, host.home());
    warn_of(&startup_moves::run(&folders.agent_dir, project_dir.as_deref(), host).problems);
    let mut wanted = AgentSessionOptions::new(host.clone(), &folders.cwd, &folders.agent_dir);
    wanted.services = service_options(options, &folders, host);
    wanted.session = session_options(options, user);
    wanted.session.local_server = local_server;
    wanted.session_dir = session_folder(options, host);
    wanted.session_id = options.session_id.as_deref().map(Into::into);
    wanted.name.clone_from(&options.name);
    let skills = || sandbox::skill_dirs(services(options, &folders, host).resources().skills());
    let sandbox = sandbox::enter(options.sandbox, &folders, skills, host).await?;
    if let Some(sandbox) = &sandbox {
        wanted.session.machine = Arc::clone(&sandbox.entered.machine);
        wanted.session.sandbox = Some(sandbox.description.clone());
    }
    let setup = SessionSetup::new(wanted.clone());
    let target = open_log::target(options, setup.store(), &folders, host).await?;
    let mut runtime = match setup.open(target).create().await {
        Err(RuntimeError::DirectoryGone { cwd, file: Some(file) }) if let Some(ui) = person_of(&wanted.session) => {
            let Some(target) = open_log::without_directory(&cwd, file, ui, &folders, host).await else {
                return Err(CommandFailure::cancelled());
            };
            SessionSetup::new(wanted).open(target).create().await
        }
        opened => opened,
    }
    .map_err(|error| failure(error, &folders))?;
    if !options.no_mcp {
        let services = runtime.services();
        let project_dir = trust::project_dir(services.cwd(), host.home()).filter(|_| services.trust().is_trusted());
        warn_of_mcp([Some(folders.agent_dir.clone()), project_dir]);
    }
    runtime.take_notes().iter().for_each(|note| warn(note));
    if options.verbose {
        loaded(&runtime).iter().for_each(|line| tell(line));
        sandbox.iter().for_each(|sandbox| tell(&format!("sandbox: {}", sandbox.entered.backend)));
    }
    Ok(runtime)
}

/// Fails if an extension on the command line is a path at which nothing exists.
fn check_extensions(options: &CliOptions, folders: &Folders, host: &Host) -> Result<(), CommandFailure> {
    for text in &options.extensions {
        let Ok(PackageSource::Local(path)) = PackageSource::parse(text) else { continue };
        let path = absolute(&path, &folders.cwd, host.home());
        if !path.exists() {
            return Err(CommandFailure::user(format!("Extension path does not exist: {}", path.display())));
        }
    }
    Ok(())
}

/// Returns the maximum bytes of stdin.
pub(crate) fn max_input_bytes(options: &CliOptions, host: &Host) -> Result<u64, CommandFailure> {
    let folders = Folders::find(options.agent_dir.as_deref(), host)?;
    // Problems in documents are reported when they are read for the session.
    let (folder, _) = DirectorySettings::read(&service_options(options, &folders, host), &folders.cwd);
    let max = folder.settings().value("maxInputBytes").and_then(|max| max.as_f64());
    Ok(max.map_or(u64::MAX, |max| max as u64))
}

/// Warns about ignored lists of MCP servers.
fn warn_of_mcp(dirs: [Option<PathBuf>; 2]) {
    let lists = dirs.into_iter().flatten().map(|dir| dir.join("mcp.json")).filter(|path| path.is_file());
    let lists: Vec<String> = lists.map(|path| path.display().to_string()).collect();
    if !lists.is_empty() {
        let lists = lists.join(" and ");
        warn(&format!("{lists}: ignored, because MCP servers are not supported yet. --no-mcp hides this warning"));
    }
}

/// Lists the loaded resources, one line each.
fn loaded(runtime: &SessionRuntime) -> Vec<String> {
    let (session, resources) = (runtime.session(), runtime.services().resources());
    let model = session.model();
    let mut lines = vec![format!("model: {}/{}, thinking {}", model.provider, model.id, session.thinking())];
    lines.extend(session.path().map(|path| format!("session: {}", path.display())));
    lines.extend(resources.context_files.iter().map(|file| format!("context file: {}", file.path.display())));
    lines.extend(resources.skills().iter().map(|skill| format!("skill: {} ({})", skill.name, skill.path.display())));
    let templates = resources.commands.templates.iter();
    lines
        .extend(templates.map(|template| format!("prompt template: /{} ({})", template.name, template.path.display())));
    lines.extend(session.control().extensions().names().map(|name| format!("extension: {name}")));
    lines
}

/// Returns the available models.
pub(crate) fn available_models(options: &CliOptions, host: &Host) -> Result<Vec<Arc<Model>>, CommandFailure> {
    let folders = Folders::find(options.agent_dir.as_deref(), host)?;
    let services = services(options, &folders, host);
    let mut models = services.available_models();
    leave_out_missing(&mut models);
    services.take_problems().iter().for_each(|problem| warn(problem));
    // Problems with other models are reported as well: users look here for a missing model.
    services.models().problems();
    services.models().take_new_problems().iter().for_each(|problem| warn(&problem.to_string()));
    Ok(models)
}

/// Removes models whose wire format this build lacks, and warns about them.
fn leave_out_missing(models: &mut Vec<Arc<Model>>) {
    let mut missing: BTreeMap<(String, &str), usize> = BTreeMap::new();
    models.retain(|model| {
        let feature = missing_feature(&model.api);
        if let Some(feature) = feature {
            *missing.entry((model.provider.to_string(), feature)).or_default() += 1;
        }
        feature.is_none()
    });
    for ((provider, feature), n_models) in missing {
        let noun = if n_models == 1 { "model" } else { "models" };
        warn(&format!("{n_models} {noun} of {provider} not listed: this build lacks the feature {feature}"));
    }
}

pub(crate) fn services(options: &CliOptions, folders: &Folders, host: &Host) -> Services {
    Services::load(&service_options(options, folders, host), &folders.cwd)
}

/// Returns whether the project is trusted, according to the flag, else the environment.
pub(crate) fn trust_of(flag: Option<bool>, host: &Host) -> Option<bool> {
    flag.or_else(|| host.env().is_on("PINCH_TRUST").then_some(true))
}

fn service_options(options: &CliOptions, folders: &Folders, host: &Host) -> ServiceOptions {
    let mut services = ServiceOptions::new(host.clone(), &folders.agent_dir);
    services.trust = trust_of(options.trust, host);
    services.resources = ResourceSource::Discover(ResourceOptions {
        paths: CommandLinePaths {
            extensions: options.extensions.clone(),
            skills: options.skills.clone(),
            prompts: options.prompt_templates.clone(),
            themes: options.themes.clone(),
        },
        without: Without {
            extensions: options.no_extensions,
            skills: options.no_skills,
            prompts: options.no_prompt_templates,
            themes: options.no_themes,
            context_files: options.no_context_files,
        },
        system_prompt: options.system_prompt.clone(),
        append_system_prompt: options.append_system_prompt.clone(),
        skill_names: options.skill_names.clone(),
    });
    services.install_packages =
        (!options.offline).then(|| Announce::new(|package| tell(&format_args!("Installing {package}"))));
    services
}

/// The user who can be asked while a session is open.
pub(crate) enum SessionUser {
    /// Nobody.
    Nobody,
    /// A program, which shows dialogs of extensions.
    Client(Arc<dyn Ui>),
    /// A person at a terminal, who also makes trust decisions.
    Person(Arc<dyn Ui>),
}

/// Returns the user interface if there is a person at it.
fn person_of(session: &SessionOptions) -> Option<&dyn Ui> {
    session.ui.as_deref().filter(|_| session.trust_prompt.is_some())
}

fn session_options(options: &CliOptions, user: SessionUser) -> SessionOptions {
    let mut session = SessionOptions::default();
    if let Some(pattern) = &options.model {
        session.model = ModelChoice::Named { provider: options.provider.clone(), pattern: pattern.clone() };
    }
    session.thinking = options.thinking;
    session.scope.clone_from(&options.models);
    session.api_key = options.api_key.as_deref().map(Secret::new);
    session.excluded_tools = options.exclude_tools.clone().unwrap_or_default();
    (session.tools, session.without_tools) = chosen_tools(options);
    session.look_for_local_servers = !options.offline;
    session.flags = options.unknown.clone().into_iter().collect();
    if !matches!(user, SessionUser::Person(_)) {
        session.extension_output = Some(OutputListener::new(|line| tell(&line)));
    }
    match user {
        SessionUser::Nobody => {}
        SessionUser::Client(ui) => session.ui = Some(ui),
        SessionUser::Person(ui) => {
            session.ui = Some(ui);
            session.trust_prompt = Some(Arc::new(TrustPrompt::new()));
        }
    }
    session
}

/// Returns the chosen tools: names after `--tools` are enabled in spite of `--no-tools` and `--no-builtin-tools`, as in pi.
fn chosen_tools(options: &CliOptions) -> (Option<Vec<String>>, WithoutTools) {
    let tools = options.tools.clone();
    let is_change = |name: &String| name.starts_with(['+', '-']);
    match (options.no_tools, options.no_builtin_tools, tools) {
        (false, false, tools) => (tools, WithoutTools::None),
        // Without built-in tools, all tools are those of extensions.
        (false, true, Some(names)) if names.iter().any(|name| name == "*") => (Some(names), WithoutTools::BuiltIn),
        (_, _, Some(names)) if !names.iter().any(is_change) && !names.is_empty() => (Some(names), WithoutTools::None),
        (true, _, Some(names)) if names.iter().any(|name| name.starts_with('+')) => {
            let added = names.iter().filter_map(|name| name.strip_prefix('+')).map(str::to_owned);
            (Some(added.collect()), WithoutTools::None)
        }
        (true, _, tools) => (tools, WithoutTools::All),
        (false, true, tools) => (tools, WithoutTools::BuiltIn),
    }
}

fn failure(error: RuntimeError, folders: &Folders) -> CommandFailure {
    match error {
        RuntimeError::Store(error) => error.into(),
        RuntimeError::DirectoryGone { ref file, .. } => {
            // The text is pi's, for scripts that match it.
            let file = file.as_ref().map_or_else(|| "(in memory)".into(), |path| path.display().to_string());
            let text = format!("{error}\nSession file: {file}\nCurrent working directory: {}", folders.cwd.display());
            CommandFailure::bare(Blame::User, text)
        }
        RuntimeError::Create { source, problems } => {
            problems.iter().for_each(|problem| warn(problem));
            let failure = not_created(source, folders);
            // The missing value may be in the unreadable document.
            let kind = if problems.is_empty() { failure.kind } else { Blame::Configuration };
            CommandFailure { kind, ..failure }
        }
        error => CommandFailure::user(error.to_string()),
    }
}

fn not_created(error: CreateError, folders: &Folders) -> CommandFailure {
    match error {
        CreateError::Model(error) => find_model::not_found(&error),
        CreateError::NoModel { .. } => find_model::no_model(&folders.agent_dir),
        CreateError::NoKey { provider } => find_model::no_key(&provider, &folders.agent_dir),
        CreateError::UnknownTool { .. } | CreateError::Flags { .. } => CommandFailure::user(error.to_string()),
        CreateError::UnreadSettings { .. } | CreateError::Shell(_) => CommandFailure::configuration(error.to_string()),
        CreateError::Session(error) => error.into(),
        error => CommandFailure::internal(error.to_string()),
    }
}
