#![doc = include_str!("../README.md")]
//!
//! ## Where to start
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
