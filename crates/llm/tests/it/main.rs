//! Behaviour of the crate: one binary, one module per concern.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abort;
#[cfg(feature = "bedrock")]
mod aws_credentials;
#[cfg(feature = "bedrock")]
mod bedrock;
mod broken;
mod client;
#[cfg(feature = "cloud-code-assist")]
mod cloud_code;
mod compressed;
mod conformance;
mod timeouts;
mod endless;
mod formats;
mod decode;
mod examples;
mod google;
mod mistral;
mod gated;
mod history;
mod network;
mod oauth;
mod oauth_browser;
#[cfg(feature = "cloud-code-assist")]
mod oauth_google;
mod redaction;
mod reencode;
mod requests;
mod responses;
#[cfg(feature = "codex-ws")]
mod socket;
mod support;
mod usage;
#[cfg(feature = "vertex")]
mod vertex;
