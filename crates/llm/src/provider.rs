//! The seam: whoever answers requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pinch_stdx::cancel::Cancel;

pub mod http;

use self::http::HttpProvider;
use crate::event::EventStream;
use crate::http::HttpClient;
use crate::ids::ApiId;
use crate::request::Request;
use crate::wire;

/// Turns one conversation into a stream of events; every failure is the stream's end. Never retries, never waits: that is the caller's choice.
///
/// Authorisation, repetition, recording and scripting are providers around providers.
pub trait Provider: Send + Sync {
    /// Begins a call. Nothing is sent before the stream is polled.
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream;
}

/// Which provider serves which wire format. A value, not a global: each owner has its own.
#[derive(Clone, Default)]
pub struct ProviderRegistry {
    by_api: HashMap<ApiId, Arc<dyn Provider>>,
}

impl ProviderRegistry {
    /// Nothing registered.
    pub fn new() -> Self {
        Self::default()
    }

    /// The wire formats of this crate, over one client.
    pub fn builtin() -> Self {
        let client = Arc::new(HttpClient::new());
        let mut registry = Self::new();
        for format in wire::builtin() {
            let api = format.api();
            registry.register(api, Arc::new(HttpProvider::new(format, Arc::clone(&client))));
        }
        registry
    }

    /// Registers a provider for a wire format, in place of an earlier one.
    pub fn register(&mut self, api: impl Into<ApiId>, provider: Arc<dyn Provider>) {
        self.by_api.insert(api.into(), provider);
    }

    /// The provider of a wire format.
    ///
    /// # Errors
    /// When none is registered.
    pub fn get(&self, api: &ApiId) -> Result<Arc<dyn Provider>, UnknownApi> {
        self.by_api.get(api).cloned().ok_or_else(|| UnknownApi { api: api.clone() })
    }

    /// The registered wire formats, sorted.
    pub fn apis(&self) -> Vec<&ApiId> {
        let mut apis: Vec<_> = self.by_api.keys().collect();
        apis.sort();
        apis
    }
}

impl fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.apis()).finish()
    }
}

/// No provider is registered for a wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("No API provider registered for api: {api}")]
pub struct UnknownApi {
    /// The wire format.
    pub api: ApiId,
}
