//! What users and projects put beside the code for the agent to find: instructions, skills, prompt templates, themes, extensions.
//!
//! [`ResourceLoader`] collects all of it for one working directory. It takes plain values: directories, lists of settings, paths of the command
//! line, and whether the project is trusted. What is wrong with a file is a [`Diagnostic`]; the rest loads all the same.
//!
//! Nothing here is run: extensions are handed on as data ([`ExtensionEntry`]).

pub mod collect;
mod text_file;
pub mod frontmatter;
pub mod info;
pub mod trust;
mod real_paths;
pub mod context_files;
pub mod skills;
pub mod templates;
pub mod themes;
mod commands;
mod manifest;
mod extensions;
mod package_files;
mod inputs;
mod gather;
mod loader;
mod switches;

pub use commands::{Commands, Expanded};
pub use context_files::ContextFile;
pub use extensions::ExtensionEntry;
pub use info::{Collision, Diagnostic, DiagnosticKind, ResourceKind, ResourceOrigin, ResourceScope, SourceInfo};
pub use inputs::{CommandLinePaths, ExtraPaths, ResourceInputs, ResourceSettings, ScopeSettings, Without};
pub use loader::{Adjust, ResourceLoader, Resources};
pub use switches::{ListedResource, ProjectOverride, ResourceSwitches};
