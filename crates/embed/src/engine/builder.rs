//! Builds an engine from what a host registers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use pinch_agent_core::tool::Tool;
use pinch_coding_agent::auth::Logins;
use pinch_coding_agent::document::Problem;
use pinch_coding_agent::extension::Extension;
use pinch_coding_agent::machine::{LocalMachine, Machine};
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::store::{JsonlStore, SessionStore};
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_llm::provider::ProviderRegistry;
use pinch_ports::{ApprovalBroker, DenyAll, Guardrail, HealthStore, QuestionBroker, RunLeases, SessionIndex};
use pinch_stdx::host::Host;
use pinch_tools::pipeline::PluginTools;
use pinch_tools::process::{ProcessLimits, ProcessRegistry};

use super::configured::{AgentDocuments, DocumentSources, set_slots};
use super::{Current, Engine, subagents};
use crate::config::Config;
use crate::config::exec_variables::ExecVariables;
use crate::delivery::{EventBus, ReplySink};
use crate::inbox::{Inbox, Seen};
use crate::lanes::Lanes;
use crate::parts::active::ActiveRuns;
use crate::parts::background::BackgroundTasks;
use crate::parts::gate::RunGate;
use crate::parts::sandboxes::Sandboxes;
use crate::parts::toolbox::{Toolbox, ToolsFor};
use crate::parts::{HostParts, MachineFor, Parts};
use crate::plugin::Plugin;
use crate::plugin::registry::PluginSet;
use crate::ports::{FileIndex, LocalLeases};
use crate::replies::ReplyOptions;
use crate::replies::compose::{Stages, UnknownStage};
use crate::run::RunRequest;
use crate::run::system_prompt::{PromptInputs, PromptMaker};
use crate::runtime::AttemptRuntime;
use crate::runtime::cli::CliRuntime;
use crate::runtime::native::NativeRuntime;
use crate::subagents::registry::SubagentRegistry;
use crate::system_events::SystemEvents;
use crate::texts::TextTable;

/// Product name if the host sets none.
const PRODUCT: &str = "pinch";

/// Milliseconds that a session stays in memory after a run; 0 keeps none. The name is OpenClaw's.
const SESSION_CACHE_TTL: &str = "OPENCLAW_SESSION_MANAGER_CACHE_TTL_MS";

/// Builds an [`Engine`]. Everything is optional.
#[must_use = "a builder does nothing until `build` is called"]
pub struct EngineBuilder {
    state_dir: PathBuf,
    host: Option<Host>,
    config: Option<Arc<Config>>,
    agent_dir: Option<PathBuf>,
    providers: ProviderRegistry,
    store: Option<Arc<dyn SessionStore>>,
    runtimes: BTreeMap<String, Arc<dyn AttemptRuntime>>,
    wait_limit: Option<Duration>,
    leases: Option<Arc<dyn RunLeases>>,
    health: Option<Arc<dyn HealthStore>>,
    logins: Option<Arc<Logins>>,
    index: Option<Arc<dyn SessionIndex>>,
    parts: HostParts,
}

impl EngineBuilder {
    pub(super) fn new(state_dir: &Path) -> Self {
        let events = SystemEvents::default();
        Self {
            state_dir: state_dir.to_owned(),
            host: None,
            config: None,
            agent_dir: None,
            providers: ProviderRegistry::builtin(),
            store: None,
            runtimes: BTreeMap::new(),
            wait_limit: None,
            leases: None,
            health: None,
            logins: None,
            index: None,
            parts: HostParts {
                toolbox: Toolbox::default(),
                machine_for: Arc::new(|_| Arc::new(LocalMachine)),
                extensions: Vec::new(),
                plugins: PluginSet::default(),
                prompt: None,
                workspace_templates: false,
                product: PRODUCT.to_owned(),
                reply_stages: None,
                texts: TextTable::default(),
                approvals: Arc::new(DenyAll),
                questions: None,
                background_replies: None,
                guardrail: None,
                sandboxes: Sandboxes::default(),
                processes: reporting(&events),
                exec_variables: ExecVariables::default(),
                events,
                files: FileQueue::default(),
            },
        }
    }

    /// Sets clock, ids, environment and home directory. The default is the system's clock and random ids, no environment and no home
    /// directory; keys in environment variables are then not seen.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the configuration. The default is that of the state directory, if there is one: see [`Config::find`].
    pub fn config(mut self, config: impl Into<Arc<Config>>) -> Self {
        self.config = Some(config.into());
        self
    }

    /// Sets the directory of `auth.json`, `models.json`, `settings.json` and the profiles. The default is that of the agent `main`.
    pub fn agent_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(dir.into());
        self
    }

    /// Replaces the model providers.
    pub fn providers(mut self, providers: ProviderRegistry) -> Self {
        self.providers = providers;
        self
    }

    /// Sets where sessions are stored. The default is files in the state directory.
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Offers a tool to every run. It replaces a built-in tool of the same name, and configured deny lists apply to it.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.parts.toolbox.add(Arc::new(tool));
        self
    }

    /// Offers tools that depend on the run: `make` is called once per run, with the request and its completed
    /// [`caller`](RunRequest::caller). May be called repeatedly; a later tool replaces an earlier one of the same name.
    pub fn tools_for(mut self, make: impl Fn(&RunRequest) -> Vec<Arc<dyn Tool>> + Send + Sync + 'static) -> Self {
        let make: ToolsFor = Arc::new(make);
        self.parts.toolbox.add_for(make);
        self
    }

    /// Offers a tool of a channel, such as one that sends messages. It comes after the built-in tools, and never replaces another one.
    pub fn channel_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.parts.toolbox.add_for_channel(Arc::new(tool));
        self
    }

    /// Offers the tools of a plugin. They come after those of channels and never replace others. Tool lists can name them all by the
    /// plugin's id or as `group:plugins`; optional ones are offered only if an allow list names them. Tools of extensions come
    /// after all others.
    pub fn plugin_tools(mut self, plugin: PluginTools) -> Self {
        self.parts.toolbox.add_plugin(plugin);
        self
    }

    /// Enables built-in tools by name: `read`, `edit`, `write`, `apply_patch`, `ls`, `exec`, `process`, `bash`, `sessions_spawn` and
    /// `subagents`, and with the feature `search` also `grep` and `find`. None is enabled by default, because they act on the host with the privileges of the process.
    /// [`Engine::problems`] reports unknown names.
    ///
    /// `exec` runs commands under the rules of `tools.exec`. Without any, it runs harmless commands and those on the allow list of
    /// `exec-approvals.json` in the state directory, and [asks for approval](Self::approvals) of others. The host's keys are not in their
    /// environment. `process` manages background commands, all of which end with the engine. `bash` runs any command. If the configuration
    /// restricts which commands may run, `exec` and `process` replace `bash`.
    ///
    /// `sessions_spawn` starts sub-agents and `subagents` manages them, in sessions with a key. They work in the background, as tasks of the
    /// runtime, and end with the engine; see also [`background_replies`](Self::background_replies) and [`Engine::announce_start`].
    pub fn builtin_tools<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.parts.toolbox.enable(names);
        self
    }

    /// Reserves tools, whoever offers them, for the owner of the agent: other senders' runs do not have them. `cron`, `gateway`, `nodes` and
    /// `whatsapp_login` always are. Whether a sender is the owner is in [`caller`](RunRequest::caller).
    pub fn owner_only<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.parts.toolbox.reserve(names);
        self
    }

    /// Gives agents the first files of their workspaces, such as AGENTS.md and SOUL.md, unless `agents.defaults.skipBootstrap` is set. A
    /// brand-new workspace also gets instructions for a first conversation and, where git is installed, a repository. Nothing is
    /// overwritten, and a directory that a request names gets nothing.
    pub fn workspace_templates(mut self) -> Self {
        self.parts.workspace_templates = true;
        self
    }

    /// Sets who is asked before `exec` runs a command that is not allowed yet. By default nobody is asked, and the command does not run.
    pub fn approvals(mut self, approvals: Arc<dyn ApprovalBroker>) -> Self {
        self.parts.approvals = approvals;
        self
    }

    /// Sets who decides about every tool call, before the hooks of plugins and extensions, and again about what they change. What it blocks
    /// does not run, and the model is told why. By default nobody decides. A command-line runtime runs its own tools, unasked.
    pub fn guardrail(mut self, guardrail: Arc<dyn Guardrail>) -> Self {
        self.parts.guardrail = Some(guardrail);
        self
    }

    /// Sets who answers the questions of agents. Runs started by a person's message are then offered the tool `ask_user`, unless a policy
    /// removes it; sub-agents are not. By default nobody can be asked, and the tool does not exist.
    pub fn questions(mut self, questions: Arc<dyn QuestionBroker>) -> Self {
        self.parts.questions = Some(questions);
        self
    }

    /// Sets who receives the replies of runs that the engine starts by itself, because the sub-agent of a session has ended. `choose` gets the
    /// request of the run, whose [`caller`](RunRequest::caller) and [`message_to`](RunRequest::message_to) name the chat, and can change it as
    /// the host does for messages. Without a sink, replies are only part of the session.
    pub fn background_replies(
        mut self,
        choose: impl Fn(&mut RunRequest) -> Option<Arc<dyn ReplySink>> + Send + Sync + 'static,
    ) -> Self {
        self.parts.background_replies = Some(Arc::new(choose));
        self
    }

    /// Sets where built-in tools act. The default is this computer.
    pub fn machine(self, machine: Arc<dyn Machine>) -> Self {
        self.machine_for(move |_| Arc::clone(&machine))
    }

    /// Chooses where built-in tools act for each run, from the request and its completed [`caller`](RunRequest::caller). Sandboxed runs act
    /// in their sandbox instead.
    pub fn machine_for(mut self, choose: impl Fn(&RunRequest) -> Arc<dyn Machine> + Send + Sync + 'static) -> Self {
        let choose: MachineFor = Arc::new(choose);
        self.parts.machine_for = choose;
        self
    }

    /// Adds an extension that observes sessions and can change what they do. All runs share it, and it is registered with each session; its
    /// calls name the session they are about.
    pub fn extension(mut self, extension: Arc<dyn Extension>) -> Self {
        self.parts.extensions.push(extension);
        self
    }

    /// Adds a plugin: an extension that also hooks into the attempts of runs. All runs share it.
    pub fn hooks(mut self, plugin: Arc<dyn Plugin>) -> Self {
        self.parts.plugins.add(plugin);
        self
    }

    /// Sets the product name that agents are told; its lower-case form is the command that they may run. The default is `pinch`.
    pub fn product(mut self, name: impl Into<String>) -> Self {
        self.parts.product = name.into();
        self
    }

    /// Replaces the system prompt. `make` is called when a session is opened, and again whenever extensions change its tools. The default
    /// prompt is built from [`PromptInputs::params`].
    pub fn prompt(
        mut self,
        make: impl Fn(&PromptInputs<'_>) -> pinch_coding_agent::prompt::PromptSections + Send + Sync + 'static,
    ) -> Self {
        let make: PromptMaker = Arc::new(make);
        self.parts.prompt = Some(make);
        self
    }

    /// Changes the stages that replies pass through: `change` receives the default ones and inserts others before or after any of them, by
    /// name. Runs fail if a stage is inserted next to one that does not exist.
    pub fn reply_stages(
        mut self,
        change: impl Fn(&ReplyOptions, &mut Stages) -> Result<(), UnknownStage> + Send + Sync + 'static,
    ) -> Self {
        self.parts.reply_stages = Some(Arc::new(change));
        self
    }

    /// Replaces the texts for people: error messages, notices, headings.
    pub fn texts(mut self, texts: TextTable) -> Self {
        self.parts.texts = texts;
        self
    }

    /// Registers a runtime under an id, which requests and the configuration select. Registering `native` replaces the built-in one.
    pub fn runtime(mut self, id: impl Into<String>, runtime: Arc<dyn AttemptRuntime>) -> Self {
        self.runtimes.insert(id.into(), runtime);
        self
    }

    /// Limits how long a run waits before it may begin: for earlier runs of its session, for other processes that use the session, and for
    /// a slot of its lane. After that it ends with [`RunError::Busy`](crate::run::RunError::Busy). By default a run waits as long as its
    /// own time limit.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = Some(limit);
        self
    }

    /// Sets what decides when runs may begin, for engines that share sessions with other hosts. The default is [`LocalLeases`].
    pub fn leases(mut self, leases: Arc<dyn RunLeases>) -> Self {
        self.leases = Some(leases);
        self
    }

    /// Sets where the health of auth profiles is stored. The default is `auth-profiles.json` in the agent directory.
    pub fn health_store(mut self, store: Arc<dyn HealthStore>) -> Self {
        self.health = Some(store);
        self
    }

    /// Sets how logins are renewed, for providers with their own login flow. By default the built-in flows renew them over the network.
    pub fn logins(mut self, logins: impl Into<Arc<Logins>>) -> Self {
        self.logins = Some(logins.into());
        self
    }

    /// Sets where sessions are stored by key. The default is `sessions.json` of each agent.
    pub fn session_index(mut self, index: Arc<dyn SessionIndex>) -> Self {
        self.index = Some(index);
        self
    }

    /// Builds the engine. Problems in documents are skipped and reported by [`Engine::problems`].
    pub fn build(mut self) -> Engine {
        let background = Arc::new(BackgroundTasks::default());
        if let Some(tools) = subagents::tools_of_run(&self.parts.toolbox, &Arc::downgrade(&background)) {
            self.parts.toolbox.add_services(tools);
        }
        let agent_dir = self.agent_dir.unwrap_or_else(|| self.state_dir.join("agents/main/agent"));
        let host = self.host.unwrap_or_else(|| Host::builder().build());
        let mut problems = Vec::new();
        let config = self.config.unwrap_or_else(|| {
            let found = Config::find(&self.state_dir).map(|file| Config::load(&file, host.env()));
            let (config, found) = found.unwrap_or_default();
            problems.extend(found);
            Arc::new(config)
        });
        let sources = DocumentSources {
            state_dir: self.state_dir.clone(),
            host: host.clone(),
            health: self.health,
            logins: self.logins.unwrap_or_else(|| Arc::new(Logins::over_network(&host))),
        };
        let loaded = AgentDocuments::load(&sources, &config, &agent_dir, None);
        problems.extend(loaded.problems);
        problems.extend(self.parts.toolbox.unknown().map(|name| {
            Problem::new(&self.state_dir, format!("\"{name}\" is not a built-in tool"))
                .remedy("Enable only tools included in this build")
        }));
        problems.extend(self.parts.toolbox.idle_exec_keys(&config.exec).map(|key| {
            let file = config.file.as_deref().unwrap_or(&self.state_dir);
            Problem::new(file, "has no effect: commands run through bash")
                .at(format!("tools.exec.{key}"))
                .remedy("Set tools.exec.mode, so that exec replaces bash; \"full\" allows all commands")
        }));
        let (exec_variables, unreadable) = ExecVariables::read(host.env());
        problems.extend(unreadable);
        let store = self.store.unwrap_or_else(|| Arc::new(own_store(&self.state_dir, &loaded.settings)));
        let mut runtimes = self.runtimes;
        runtimes.entry(crate::runtime::CLI.to_owned()).or_insert_with(|| Arc::new(CliRuntime::new(Arc::clone(&store))));
        runtimes.entry(crate::runtime::NATIVE.to_owned()).or_insert_with(|| {
            let ttl = session_cache_ttl(&host).unwrap_or_else(|problem| {
                problems.push(problem);
                None
            });
            let runtime = NativeRuntime::new(self.providers, Arc::clone(&store));
            Arc::new(match ttl {
                Some(ttl) => runtime.with_sessions_kept_for(ttl),
                None => runtime,
            })
        });
        let (leases, lanes) = match self.leases {
            Some(leases) => (leases, None),
            None => {
                let lanes = Lanes::default();
                set_slots(&lanes, &config);
                let leases: Arc<dyn RunLeases> = Arc::new(LocalLeases::new(lanes.clone(), host.clone()));
                (leases, Some(lanes))
            }
        };
        let index = self.index.unwrap_or_else(|| Arc::new(FileIndex::new(&self.state_dir, host.clone())));
        let seen = Seen::new(&self.state_dir, host.clone());
        let parts = Parts {
            host,
            config,
            settings: loaded.settings,
            registry: loaded.registry,
            profiles: loaded.profiles,
            health: sources.health,
            logins: sources.logins,
            agents: Arc::default(),
            lanes,
            gate: RunGate::default(),
            is_announced: Arc::default(),
            leases,
            index,
            store,
            inbox: Inbox::default(),
            seen,
            bus: EventBus::default(),
            throttle: Arc::default(),
            prompt_texts: Arc::default(),
            runtimes,
            registered: Arc::new(HostParts { exec_variables, ..self.parts }),
            active: ActiveRuns::default(),
            subagents: SubagentRegistry::default(),
            wait_limit: self.wait_limit,
            state_dir: self.state_dir,
            agent_dir,
        };
        let parts = Arc::new(parts);
        background.set_parts(&parts);
        let current = Current { parts, problems: Arc::new(problems) };
        Engine { current: Arc::new(RwLock::new(current)), background }
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("state_dir", &self.state_dir).finish_non_exhaustive()
    }
}

/// Creates the registry of background commands, whose ends become events of their sessions.
fn reporting(events: &SystemEvents) -> ProcessRegistry {
    let events = events.clone();
    ProcessRegistry::with_listener(ProcessLimits::default(), move |notice| {
        events.push(&notice.scope, notice.ended_ms, notice.text);
    })
}

/// Creates the default store: files in the state directory, with the durability set in the settings.
fn own_store(state_dir: &Path, settings: &Settings) -> JsonlStore {
    JsonlStore::flat(state_dir.join("agents/main/sessions")).durability(settings.durability)
}

/// Returns how long sessions stay in memory after a run, if the environment sets it.
fn session_cache_ttl(host: &Host) -> Result<Option<Duration>, Problem> {
    let Some(text) = host.env().get(SESSION_CACHE_TTL).map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(|ms| Some(Duration::from_millis(ms))).map_err(|_| {
        let what = format!("\"{text}\" is not a number of milliseconds");
        Problem::new(Path::new(SESSION_CACHE_TTL), what).remedy("Set a whole number, 0 to keep no session in memory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_store_follows_the_durability_setting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        for (text, expected) in
            [("{}", "Os"), (r#"{"durability": "turn"}"#, "Turn"), (r#"{"durability": "entry"}"#, "Entry")]
        {
            std::fs::write(&path, text).unwrap();
            let store = format!("{:?}", own_store(dir.path(), &Settings::load(&path).0));
            assert!(store.contains(&format!("durability: {expected}")), "{store}");
        }
    }

    #[test]
    fn an_unreadable_time_for_sessions_in_memory_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let problems_of = |text: &str| {
            let env = pinch_stdx::host::Env::from_iter([(SESSION_CACHE_TTL, text)]);
            let engine = Engine::builder(dir.path()).host(Host::builder().env(env).build()).build();
            engine.problems().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let expected = "OPENCLAW_SESSION_MANAGER_CACHE_TTL_MS: \"45s\" is not a number of milliseconds. \
                        Set a whole number, 0 to keep no session in memory";
        assert_eq!(problems_of("45s"), [expected]);
        assert_eq!(problems_of(" 45000 "), [""; 0]);
    }

    #[test]
    fn an_unknown_builtin_tool_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::builder(dir.path()).builtin_tools(["read", "fly"]).build();
        let problems: Vec<String> = engine.problems().iter().map(ToString::to_string).collect();
        assert!(matches!(&problems[..], [one] if one.contains("\"fly\" is not a built-in tool")), "{problems:?}");
    }
}
