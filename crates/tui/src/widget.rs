//! Parts of dialogs: lists to choose from, and a sign that something is going on.

mod loader;
mod picker;

pub use loader::Loader;
pub use picker::{PickItem, Picker, PickerEvent};
