//! Tool policies: which tools a run is offered.
//!
//! A [`ToolPolicies`] is read from a configuration once. [`ToolPolicies::resolve`] selects the rules for one caller and one model; the
//! resulting [`RunPolicy`] decides about any list of tools and explains each decision. There are up to twelve steps, and each can only
//! remove tools:
//!
//! 1. owner: tools reserved for the owner of the agent;
//! 2. profile, and the profile of the model's provider;
//! 3. `tools` and `tools.byProvider`, for all agents;
//! 4. `tools` and `tools.byProvider` of the agent;
//! 5. the group that the message was sent in, and its sender;
//! 6. the mode of the session;
//! 7. the sandbox;
//! 8. the depth of a sub-agent.
//!
//! Invalid configuration denies: an unreadable list, and an allow list that names no existing tool.

mod names;

mod rules;

mod config;

mod group;

mod levels;

mod mode;

mod decide;

mod resolve;

pub use config::PolicyProblem;
pub use decide::{Explanation, OfferedTool, PolicyDecision, PolicyWarning, RemovalReason};
pub use levels::nesting_depth;
pub use mode::PermissionMode;
pub use names::canonical_name;
pub use resolve::{PolicyRequest, RunPolicy, ToolPolicies};
pub use rules::ToolRules;
