//! The fork's parts pass pinch's suites and work in pinch's layers.

mod embed;
mod format;
mod layers;
mod ports;
mod store;
