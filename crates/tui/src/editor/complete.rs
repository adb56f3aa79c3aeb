//! Completion of commands, their arguments, and paths.
//!
//! [`Autocomplete`] sits between the keys and an [`Editor`](super::Editor): it detects what can be completed, requests suggestions, shows
//! them, and
//! inserts the chosen one. Suggestions come from [`CompletionSources`], or from elsewhere.
//!
//! ```
//! use pinch_tui::editor::Editor;
//! use pinch_tui::editor::complete::{Autocomplete, CommandSuggestion, CompletionSources};
//! use pinch_tui::key::KeyPress;
//! use pinch_tui::keymap::Keymap;
//!
//! let (keymap, mut editor, mut completion) = (Keymap::default(), Editor::new(), Autocomplete::default());
//! let sources = CompletionSources {
//!     commands: vec![CommandSuggestion::new("model", "Choose a model"), CommandSuggestion::new("new", "Start a session")],
//!     ..CompletionSources::new("/home/me/project".into())
//! };
//! for c in "/mo".chars() {
//!     completion.handle(&KeyPress::typed(c), &keymap, &mut editor);
//!     if let Some(request) = completion.take_request() {
//!         // Requests that access files belong on another thread.
//!         let found = sources.complete(&request.query, &request.cancel);
//!         completion.offer(&request, found, &mut editor);
//!     }
//! }
//! assert!(completion.is_open());
//! completion.handle(&KeyPress::of("tab".parse()?), &keymap, &mut editor);
//! assert_eq!(editor.text(), "/model ");
//! # Ok::<(), pinch_tui::key::ParseKeyError>(())
//! ```

mod query;

mod listing;

mod index;

mod sources;

mod menu;

mod autocomplete;

#[cfg(test)]
mod tests;

pub use autocomplete::{Autocomplete, CompletionRequest};
pub use index::PathIndex;
pub use query::CompletionQuery;
pub use sources::{CommandSuggestion, CompletionSources};
