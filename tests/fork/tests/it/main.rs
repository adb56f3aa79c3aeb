//! The fork's parts pass the suites of pinch, and work inside its layers.

mod embed;
mod format;
mod layers;
mod ports;
mod store;
