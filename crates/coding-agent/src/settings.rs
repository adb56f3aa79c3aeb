//! settings.json: what a user wants, as small values for the parts that need them.
//!
//! Two documents are laid over each other: the user's own and the project's. [`SettingsManager`] reads, changes and writes them; [`Settings`]
//! is what they come to. Parts take values out of it and know no document.

mod keys;
mod moves;
mod layer;
mod write;
pub mod values;
pub mod manager;

pub use layer::{Scope, SettingsProblem};
pub use manager::{SetError, SettingsFiles, SettingsManager};
pub use values::Settings;
