//! What all runs of an engine share.

use std::collections::BTreeMap;
use std::path::PathBuf;
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

use crate::config::Config;
use crate::delivery::EventBus;
use crate::inbox::{Inbox, Seen};
use crate::key::AgentId;
use crate::lanes::Lanes;
use crate::plugin::registry::PluginSet;
use crate::replies::ReplyOptions;
use crate::replies::compose::{Stages, UnknownStage};
use crate::run::RunRequest;
use crate::run::failover::ProbeThrottle;
use crate::run::system_prompt::PromptMaker;
use crate::runtime::AttemptRuntime;
use crate::texts::TextTable;
use pinch_ports::{ApprovalBroker, HealthStore, QuestionBroker, RunLeases, SessionIndex};
use pinch_tools::process::ProcessRegistry;

pub(crate) mod credentials;
pub(crate) mod notes;
pub(crate) mod commands;
pub(crate) mod toolbox;
pub(crate) mod sandboxes;
pub(crate) mod active;
pub(crate) mod gate;

use active::ActiveRuns;
use credentials::Credentials;
use gate::RunGate;
use sandboxes::Sandboxes;
use toolbox::Toolbox;

/// Chooses the machine of a run.
pub(crate) type MachineFor = Arc<dyn Fn(&RunRequest) -> Arc<dyn Machine> + Send + Sync>;
/// Changes the stages of replies.
pub(crate) type ReplyStages = Arc<dyn Fn(&ReplyOptions, &mut Stages) -> Result<(), UnknownStage> + Send + Sync>;

/// What the host registered.
pub(crate) struct HostParts {
    pub(crate) toolbox: Toolbox,
    pub(crate) machine_for: MachineFor,
    pub(crate) extensions: Vec<Arc<dyn Extension>>,
    pub(crate) plugins: PluginSet,
    pub(crate) prompt: Option<PromptMaker>,
    /// The product that agents are told they are a part of.
    pub(crate) product: String,
    pub(crate) reply_stages: Option<ReplyStages>,
    /// What people read.
    pub(crate) texts: TextTable,
    /// Who is asked before commands run.
    pub(crate) approvals: Arc<dyn ApprovalBroker>,
    /// The sandboxes of all runs.
    pub(crate) sandboxes: Sandboxes,
    /// Who is asked what agents cannot decide; `None`: nobody can be asked.
    pub(crate) questions: Option<Arc<dyn QuestionBroker>>,
    /// The commands of all runs.
    pub(crate) processes: ProcessRegistry,
    /// Serializes changes of one file across all runs.
    pub(crate) files: FileQueue,
}

/// The parts of an engine as agents with documents of their own see them, as far as those were read.
pub(crate) type LoadedAgents = BTreeMap<AgentId, Arc<Parts>>;

/// The parts of one engine. Deeper functions take what they need of it as arguments.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) host: Host,
    pub(crate) config: Arc<Config>,
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<ModelRegistry>,
    pub(crate) profiles: Credentials,
    /// The host's own store of health, for the next configuration.
    pub(crate) health: Option<Arc<dyn HealthStore>>,
    /// Renews logins, for all agents.
    pub(crate) logins: Arc<Logins>,
    /// The same for agents with documents of their own, as far as they were read.
    pub(crate) agents: Arc<Mutex<LoadedAgents>>,
    /// The lanes of the default leases, whose sizes the configuration sets.
    pub(crate) lanes: Option<Lanes>,
    pub(crate) gate: RunGate,
    pub(crate) leases: Arc<dyn RunLeases>,
    pub(crate) index: Arc<dyn SessionIndex>,
    /// Where transcripts are.
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) inbox: Inbox,
    pub(crate) seen: Seen,
    pub(crate) bus: EventBus,
    pub(crate) throttle: Arc<Mutex<ProbeThrottle>>,
    pub(crate) runtimes: BTreeMap<String, Arc<dyn AttemptRuntime>>,
    pub(crate) registered: Arc<HostParts>,
    pub(crate) active: ActiveRuns,
    /// How long a run waits for a locked session file.
    pub(crate) wait_limit: Option<Duration>,
    pub(crate) state_dir: PathBuf,
    pub(crate) agent_dir: PathBuf,
}
