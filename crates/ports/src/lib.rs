#![doc = include_str!("../README.md")]

mod caller;

pub use caller::{Caller, Sender};
