//! Containers: arguments for creating them, and the checks on these arguments.

mod environment;
mod rules;
mod arguments;
mod fingerprint;
mod options;

pub use arguments::{ContainerMounts, ContainerSpec};
pub use environment::{ContainerEnvironment, container_environment};
pub use fingerprint::{config_hash, sandbox_hash};
pub use options::ContainerOptions;
pub use rules::AGENT_MOUNT;
pub use rules::{BindRules, ContainerRefusal, check_network, check_profile};
