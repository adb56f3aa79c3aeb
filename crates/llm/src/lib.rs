//! One conversation in, one stream of events out, for every provider wire format.
//!
//! This crate knows no tool loop, no retries and no files but those in which a cloud keeps its credentials. It never sleeps and never
//! repeats a request: what goes wrong arrives as a typed [`error::LlmError`] in the last event, with everything a caller needs to decide.
//!
//! ```no_run
//! # use std::sync::Arc;
//! use futures::StreamExt;
//! use pinch_llm::event::StreamEvent;
//! use pinch_llm::message::Message;
//! use pinch_llm::model::Model;
//! use pinch_llm::provider::ProviderRegistry;
//! use pinch_llm::request::{Auth, CallOptions, Request, SystemPrompt};
//! use pinch_llm::stdx::{cancel::Cancel, host::Host};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::from_record(&serde_json::json!({
//!     "id": "m1", "api": "openai-completions", "provider": "local", "baseUrl": "http://localhost:8080/v1"
//! }))?;
//! let request = Request {
//!     model: Arc::new(model),
//!     system: SystemPrompt::text("Be brief."),
//!     messages: vec![Arc::new(Message::user("hello", 0))],
//!     tools: Arc::default(),
//!     options: CallOptions::default(),
//!     auth: Auth::key("none"),
//!     host: Host::builder().build(),
//! };
//! let registry = ProviderRegistry::builtin(); // one for the whole program: it keeps the connections
//! let mut events = registry.get(&request.model.api)?.stream(request, Cancel::new());
//! while let Some(event) = events.next().await {
//!     if let StreamEvent::End(finished) = event {
//!         assert_eq!(finished.error.is_none(), finished.is_ok());
//!     }
//! }
//! # Ok(())
//! # }
//! ```

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

pub use pinch_http as http;
pub use pinch_stdx as stdx;
