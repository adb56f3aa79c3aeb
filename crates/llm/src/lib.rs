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
//! [`client`] is the front door. Below it, a [`Request`](request::Request) is streamed by a [`Provider`](provider::Provider) as
//! [`StreamEvent`](event::StreamEvent)s; a provider is most often a [`WireFormat`](wire::WireFormat) over HTTP, and forks add their own.
//!
//! The crate knows no tool loop (pinch-agent-core has it), never sleeps and never repeats a request: a failure is an [`LlmError`] with
//! everything that a caller needs to decide. It reads no files but those in which a cloud keeps its credentials.

pub mod ids;

pub mod thinking;

pub mod message;

pub mod schema;

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

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
