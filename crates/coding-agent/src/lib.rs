//! wip
pub mod auth;
pub mod document;
pub mod images;
pub mod machine;
pub mod recovery;
pub mod tools;
pub use pinch_agent_core as agent_core;
