//! Providers, which serve requests.

#[cfg(feature = "scripted")]
pub mod scripted;

use std::fmt;
use std::sync::Arc;

use pinch_http::HttpClient;
use pinch_stdx::cancel::Cancel;

mod budget;

pub mod http;

#[cfg(feature = "codex-ws")]
pub mod socket;

use self::http::HttpProvider;
use crate::cloud;
use crate::event::EventStream;
use crate::ids::ApiId;
use crate::request::Request;
use crate::wire;

/// Turns a conversation into a stream of events; every failure is the stream's end. Never retries, never sleeps: that is up to the caller.
///
/// Authorization, retries, recording and scripting are providers that wrap others.
pub trait Provider: Send + Sync {
    /// Starts a call. Nothing is sent before the stream is polled.
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream;

    /// Releases resources kept for a conversation, such as open connections. Running calls continue.
    fn close_session(&self, session_id: &str) {
        let _ = session_id;
    }
}

/// Maps wire formats to the providers that serve them. A value, not a global: clones are independent.
///
/// A wire format may be registered several times, by different sources (an extension, a models.json): the last one serves, and if its
/// source is removed, the previous one serves again.
#[derive(Clone, Default)]
pub struct ProviderRegistry {
    /// Ordered by first registration.
    entries: Vec<(ApiId, Vec<RegisteredProvider>)>,
}

/// A provider and the source that registered it.
#[derive(Clone)]
struct RegisteredProvider {
    source: Option<String>,
    provider: Arc<dyn Provider>,
}

impl ProviderRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry of this crate's wire formats, sharing one HTTP client.
    pub fn builtin() -> Self {
        let client = Arc::new(HttpClient::new());
        let mut registry = Self::new();
        for format in wire::builtin() {
            let api = format.api();
            let provider = HttpProvider::with_ambient(format, Arc::clone(&client), cloud::ambient(api));
            registry.register(api, Arc::new(provider));
        }
        #[cfg(feature = "codex-ws")]
        registry.register(ApiId::CODEX_RESPONSES, Arc::new(socket::SocketProvider::new(client)));
        registry
    }

    /// Releases resources that providers keep for a conversation.
    pub fn close_session(&self, session_id: &str) {
        let stacks = self.entries.iter().flat_map(|(_, stack)| stack);
        stacks.for_each(|registered| registered.provider.close_session(session_id));
    }

    /// Registers a provider for a wire format, replacing an earlier one that was registered without a source.
    pub fn register(&mut self, api: impl Into<ApiId>, provider: Arc<dyn Provider>) {
        self.put(api.into(), None, provider);
    }

    /// Registers a provider for a wire format on behalf of a source. It serves until the source is removed or another registers the format.
    pub fn register_from(&mut self, source: &str, api: impl Into<ApiId>, provider: Arc<dyn Provider>) {
        self.put(api.into(), Some(source.to_owned()), provider);
    }

    fn put(&mut self, api: ApiId, source: Option<String>, provider: Arc<dyn Provider>) {
        let at = self.entries.iter().position(|(known, _)| *known == api).unwrap_or_else(|| {
            self.entries.push((api, Vec::new()));
            self.entries.len() - 1
        });
        let stack = &mut self.entries[at].1;
        stack.retain(|earlier| earlier.source != source);
        stack.push(RegisteredProvider { source, provider });
    }

    /// Removes everything that a source registered; earlier registrations become active again.
    pub fn unregister(&mut self, source: &str) {
        for (_, stack) in &mut self.entries {
            stack.retain(|registered| registered.source.as_deref() != Some(source));
        }
        self.entries.retain(|(_, stack)| !stack.is_empty());
    }

    /// Returns the provider of a wire format.
    ///
    /// # Errors
    /// Returns an error if none is registered.
    pub fn get(&self, api: &ApiId) -> Result<Arc<dyn Provider>, UnknownApi> {
        let stack = self.entries.iter().find(|(known, _)| known == api).map(|(_, stack)| stack);
        let last = stack.and_then(|stack| stack.last());
        last.map(|registered| Arc::clone(&registered.provider)).ok_or_else(|| UnknownApi::of(api))
    }

    /// Returns the registered wire formats, ordered by first registration.
    pub fn apis(&self) -> Vec<&ApiId> {
        self.entries.iter().map(|(api, _)| api).collect()
    }
}

impl fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.apis()).finish()
    }
}

/// No provider is registered for a wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownApi {
    /// No provider is registered for it.
    #[error("No API provider registered for api: {api}")]
    Unknown {
        /// The wire format.
        api: ApiId,
    },
    /// The wire format needs a feature of this crate that is not enabled.
    #[error("API {api} is not built in (enable feature {feature})")]
    NotBuiltIn {
        /// The wire format.
        api: ApiId,
        /// The feature.
        feature: &'static str,
    },
}

/// Wire formats and the features that enable them, if this build lacks them.
const GATED: &[(&str, &str)] = &[
    #[cfg(not(feature = "vertex"))]
    (ApiId::GOOGLE_VERTEX, "vertex"),
    #[cfg(not(feature = "cloud-code-assist"))]
    (ApiId::CLOUD_CODE_ASSIST, "cloud-code-assist"),
    #[cfg(not(feature = "bedrock"))]
    (ApiId::BEDROCK_CONVERSE_STREAM, "bedrock"),
];

/// Returns the feature that enables a wire format, if this build lacks it.
pub fn missing_feature(api: &ApiId) -> Option<&'static str> {
    GATED.iter().find(|(gated, _)| *api == **gated).map(|(_, feature)| *feature)
}

impl UnknownApi {
    fn of(api: &ApiId) -> Self {
        let api = api.clone();
        match missing_feature(&api) {
            Some(feature) => Self::NotBuiltIn { api, feature },
            None => Self::Unknown { api },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoProvider;

    impl Provider for NoProvider {
        fn stream(&self, request: Request, _: Cancel) -> EventStream {
            let error = crate::error::LlmError::new("p".into(), crate::error::LlmErrorKind::Protocol, "nobody");
            EventStream::failed(&request.model, 0, error)
        }
    }

    #[test]
    fn removing_a_source_restores_the_previous_provider() {
        let mut registry = ProviderRegistry::builtin();
        let api = ApiId::from(ApiId::OPENAI_COMPLETIONS);
        let ours = registry.get(&api).unwrap();
        let n = registry.apis().len();
        let theirs: Arc<dyn Provider> = Arc::new(NoProvider);
        registry.register_from("ext", api.clone(), Arc::clone(&theirs));
        registry.register_from("ext", "their-api", Arc::clone(&theirs));
        assert!(Arc::ptr_eq(&registry.get(&api).unwrap(), &theirs));
        assert_eq!(registry.apis().len(), n + 1);
        registry.unregister("ext");
        assert!(Arc::ptr_eq(&registry.get(&api).unwrap(), &ours));
        let Err(unknown) = registry.get(&ApiId::from("their-api")) else { panic!("it is still there") };
        assert_eq!(unknown.to_string(), "No API provider registered for api: their-api");
    }

    #[test]
    fn the_error_names_the_missing_feature() {
        for (api, feature) in GATED {
            let found = ProviderRegistry::new().get(&ApiId::from(*api)).err();
            let text = format!("API {api} is not built in (enable feature {feature})");
            assert_eq!(found.map(|error| error.to_string()), Some(text));
        }
    }
}
