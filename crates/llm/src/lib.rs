//! A client for language models: one conversation in, one stream of events out, for every provider's wire format.
//!
//! ```no_run
//! use pinch_llm::stdx::host::Host;
//! use pinch_llm::{Client, LlmError};
//!
//! # async fn example() -> Result<(), LlmError> {
//! let client = Client::from_env(&Host::system());
//! let reply = client.chat("anthropic/claude-sonnet-4-5").system("Be brief.").user("What is a crab?").send().await?;
//! println!("{} (${:.4})", reply.text(), reply.cost.total);
//! # Ok(())
//! # }
//! ```
//!
//! [`client`] is the main entry point. Below it, a [`Provider`](provider::Provider) streams a [`Request`](request::Request) as
//! [`StreamEvent`](event::StreamEvent)s; most providers are a [`WireFormat`](wire::WireFormat) over HTTP, and you can add your own.
//!
//! The crate has no tool loop (see pinch-agent-core), never sleeps and never repeats a request: a failure is an [`LlmError`] with
//! everything that a caller needs to decide. It reads no files except those in which clouds store credentials.

pub mod ids;

pub mod thinking;

pub mod schema;

pub mod message;

pub mod model;

pub mod catalog;

pub mod keys;

pub mod error;

pub mod request;

pub mod redact;

pub mod event;

pub mod normalise;

pub mod frame;

pub mod wire;

pub mod cloud;

pub mod oauth;

pub mod provider;

pub mod client;

pub use client::{Chat, Client, Reply};
pub use error::{LlmError, LlmErrorKind};

pub use pinch_http as http;
pub use pinch_stdx as stdx;

/// Compiles the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
