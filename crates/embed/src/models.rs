//! Model selection: references, aliases, candidates, and the context window.

pub mod select;
pub mod providers;
pub(crate) mod implicit;
pub(crate) mod lookup;
pub mod candidates;
pub mod window;

pub use candidates::{CandidateRequest, candidates};
pub use select::{Aliases, ModelRef};
pub use window::{Window, WindowSource};
