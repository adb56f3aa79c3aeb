//! Skills of agents: `SKILL.md` files that describe how to perform a kind of task, which of them an agent may use, and how the prompt lists
//! them.
//!
//! The file format and the locations are OpenClaw's. A skill that needs a missing program, variable or setting is left out.

mod metadata;
mod head;
mod load;
mod eligible;
mod listing;
mod environment;
mod commands;
mod agent_skills;
mod invoke;
mod install;

pub use agent_skills::{AgentSkills, SkillStatus};
pub use commands::command_name;
pub use eligible::{Ineligible, SkillNeeds, SkillWorld, check};
pub use head::{SkillHead, SkillInvocation};
pub use install::{InstallChoice, InstallCommand, InstallRefusal};
pub use invoke::SkillCall;
pub use load::{LoadedSkill, SkillOrigin};
pub use metadata::{SkillInstaller, SkillMetadata, SkillRequirements};

pub(crate) use agent_skills::SkillPlaces;
