//! Settings: settings.json as small values for the parts that need them.
//!
//! The project's document is merged over the user's. [`SettingsManager`] reads, changes and writes them; [`Settings`] holds the merged
//! values. [`keys`] is the table of all keys.

pub mod keys;
mod moves;
mod layer;
mod write;
pub mod values;
pub mod manager;

pub use layer::{SettingsProblem, SettingsScope};
pub use manager::{SetError, SettingsFiles, SettingsManager};
pub use values::Settings;
