//! Resources that users and projects provide for the agent: instructions, skills, prompt templates, themes, extensions.
//!
//! [`ResourceLoader`] collects them for one working directory from plain values: directories, lists in settings, command-line paths, and
//! whether the project is trusted. A problem with a file becomes a [`Diagnostic`], and everything else still loads.
//!
//! Nothing is executed here: extensions are returned as data ([`ExtensionEntry`]).

pub mod collect;
mod text_file;
pub mod frontmatter;
pub mod info;
pub mod trust;
pub mod sandboxed;
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
pub use loader::{Adjust, ResourceLoader, Resources, skill_templates};
pub use switches::{ListedResource, ProjectOverride, ResourceSwitches};
