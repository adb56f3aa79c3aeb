//! The command line of `pinch` as data: its definition and its parsed form.

pub mod options;
