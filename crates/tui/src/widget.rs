//! Widgets for dialogs: selection lists and spinners.

mod loader;
mod picker;

pub use loader::Loader;
pub use picker::{PickItem, Picker, PickerEvent};
