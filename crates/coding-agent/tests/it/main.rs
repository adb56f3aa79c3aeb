//! Behaviour of the session layer as a whole.

mod compaction;
mod guard;
mod help;
mod properties;
mod writers;
