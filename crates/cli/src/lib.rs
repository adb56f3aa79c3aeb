//! The command line of `pinch`, as data: what there is to say, and what was said.

pub mod options;
