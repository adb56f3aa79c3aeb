//! State shared by all runs of an engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinch_coding_agent::auth::Logins;
use pinch_coding_agent::extension::Extension;
use pinch_coding_agent::machine::Machine;
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::store::SessionStore;
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_stdx::host::Host;
use pinch_stdx::text::TextPool;

use crate::config::Config;
use crate::config::exec_variables::ExecVariables;
use crate::delivery::{EventBus, ReplySink};
use crate::inbox::{Inbox, Seen};
use crate::lanes::Lanes;
use crate::plugin::registry::PluginSet;
use crate::replies::ReplyOptions;
use crate::replies::compose::{Stages, UnknownStage};
use crate::run::RunRequest;
use crate::run::failover::ProbeThrottle;
use crate::run::system_prompt::PromptMaker;
use crate::runtime::AttemptRuntime;
use crate::subagents::registry::SubagentRegistry;
use crate::system_events::SystemEvents;
use crate::texts::TextTable;
use pinch_ports::{ApprovalBroker, Guardrail, HealthStore, QuestionBroker, RunLeases, SessionIndex};
use pinch_tools::process::ProcessRegistry;

pub(crate) mod credentials;
pub(crate) mod notes;
pub(crate) mod commands;
pub(crate) mod toolbox;
pub(crate) mod sandboxes;
pub(crate) mod copies;
pub(crate) mod active;
pub(crate) mod gate;
pub(crate) mod background;

use active::ActiveRuns;
use credentials::Credentials;
use gate::RunGate;
use sandboxes::Sandboxes;
use toolbox::Toolbox;

/// Chooses the machine for a run.
pub(crate) type MachineFor = Arc<dyn Fn(&RunRequest) -> Arc<dyn Machine> + Send + Sync>;
/// Changes the reply stages.
pub(crate) type ReplyStages = Arc<dyn Fn(&ReplyOptions, &mut Stages) -> Result<(), UnknownStage> + Send + Sync>;

/// Prepares a run that the engine starts by itself, and chooses where its reply goes.
pub(crate) type BackgroundReplies = Arc<dyn Fn(&mut RunRequest) -> Option<Arc<dyn ReplySink>> + Send + Sync>;

/// Parts registered by the host.
pub(crate) struct HostParts {
    pub(crate) toolbox: Toolbox,
    pub(crate) machine_for: MachineFor,
    pub(crate) extensions: Vec<Arc<dyn Extension>>,
    pub(crate) plugins: PluginSet,
    pub(crate) prompt: Option<PromptMaker>,
    /// Product name for the system prompt.
    pub(crate) product: String,
    /// Whether agents get the first files of their workspaces.
    pub(crate) workspace_templates: bool,
    pub(crate) reply_stages: Option<ReplyStages>,
    /// Texts for people.
    pub(crate) texts: TextTable,
    /// Approves commands before they run.
    pub(crate) approvals: Arc<dyn ApprovalBroker>,
    /// Decides about every tool call; `None`: nobody.
    pub(crate) guardrail: Option<Arc<dyn Guardrail>>,
    /// The sandboxes of all runs.
    pub(crate) sandboxes: Sandboxes,
    /// Answers questions of agents; `None`: nobody can be asked.
    pub(crate) questions: Option<Arc<dyn QuestionBroker>>,
    /// Prepares runs that the engine starts by itself, and receives their replies; `None`: nobody.
    pub(crate) background_replies: Option<BackgroundReplies>,
    /// Events waiting for the next run of their session.
    pub(crate) events: SystemEvents,
    /// Processes of all runs.
    pub(crate) processes: ProcessRegistry,
    /// Limits of commands that the environment sets.
    pub(crate) exec_variables: ExecVariables,
    /// Serialises changes to the same file across all runs.
    pub(crate) files: FileQueue,
}

/// Parts of the engine for agents and requests with their own documents, as far as they are loaded, by the directory of the documents.
pub(crate) type LoadedAgents = BTreeMap<PathBuf, Arc<Parts>>;

/// The parts of one engine. Inner functions take only what they need of them as arguments.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) host: Host,
    pub(crate) config: Arc<Config>,
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<ModelRegistry>,
    pub(crate) profiles: Credentials,
    /// Health store provided by the host, for the next configuration.
    pub(crate) health: Option<Arc<dyn HealthStore>>,
    /// Renews logins, for all agents.
    pub(crate) logins: Arc<Logins>,
    /// Parts for agents with their own documents, as far as they are loaded.
    pub(crate) agents: Arc<Mutex<LoadedAgents>>,
    /// Lanes of the default leases, sized by the configuration.
    pub(crate) lanes: Option<Lanes>,
    pub(crate) gate: RunGate,
    /// Whether plugins know that messages are accepted.
    pub(crate) is_announced: Arc<AtomicBool>,
    pub(crate) leases: Arc<dyn RunLeases>,
    pub(crate) index: Arc<dyn SessionIndex>,
    /// Store of the transcripts.
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) inbox: Inbox,
    pub(crate) seen: Seen,
    pub(crate) bus: EventBus,
    pub(crate) throttle: Arc<Mutex<ProbeThrottle>>,
    /// Sections of system prompts: those of many runs are the same.
    pub(crate) prompt_texts: Arc<TextPool>,
    pub(crate) runtimes: BTreeMap<String, Arc<dyn AttemptRuntime>>,
    pub(crate) registered: Arc<HostParts>,
    pub(crate) active: ActiveRuns,
    pub(crate) subagents: SubagentRegistry,
    /// How long a run waits for a locked session file.
    pub(crate) wait_limit: Option<Duration>,
    pub(crate) state_dir: PathBuf,
    pub(crate) agent_dir: PathBuf,
}
