//! Models: address, capabilities, prices and quirks.

use std::fmt;
use std::sync::Arc;

pub mod thinking;

pub mod transcript;

pub mod dialect;

pub mod detect;

pub mod cost;

pub mod compat;

pub mod record;

pub mod limits;

pub use dialect::Dialect;
pub use limits::{ImageCounts, ImageLimits};
use pinch_http::url_parts;
use thinking::ThinkingMap;

use crate::ids::{ApiId, ModelId, ProviderId};

/// A provider's model.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The provider's id for the model.
    pub id: ModelId,
    /// The name shown to people.
    pub name: String,
    /// Its wire format.
    pub api: ApiId,
    /// Provider that serves it.
    pub provider: ProviderId,
    /// Base URL of the wire format's paths; may contain `{NAME}` placeholders.
    pub base_url: String,
    /// Whether it supports thinking.
    pub reasoning: bool,
    /// Available thinking levels and their spelling on the wire.
    pub thinking: ThinkingMap,
    /// Whether it accepts images.
    pub images: bool,
    /// Prices.
    pub rates: Rates,
    /// Limit of tokens in request and answer together; 0 means unknown.
    pub context_window: u64,
    /// Limit of tokens in the answer; 0 means unknown.
    pub max_tokens: u64,
    /// Headers sent with each request.
    pub headers: Vec<(String, Option<String>)>,
    /// How long the provider keeps cached prefixes, if known.
    pub prompt_cache: PromptCache,
    /// Members merged into the request body last (only in OpenAI-like formats).
    pub sampling_params: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
    /// Its quirks.
    pub dialect: Dialect,
    /// The `compat` object of its record, for writing records.
    pub compat: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
    /// Members of its record without a field here, unchanged.
    pub extra: Arc<serde_json::Map<String, serde_json::Value>>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and members written by users may be credentials, so show only their names. URLs may contain passwords.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Model")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("api", &self.api)
            .field("provider", &self.provider)
            .field("base_url", &url_parts::without_secrets(&self.base_url))
            .field("reasoning", &self.reasoning)
            .field("thinking", &self.thinking)
            .field("images", &self.images)
            .field("rates", &self.rates)
            .field("context_window", &self.context_window)
            .field("max_tokens", &self.max_tokens)
            .field("headers", &headers)
            .field("prompt_cache", &self.prompt_cache)
            .field("dialect", &self.dialect)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Prices in US dollars per million tokens. Negative catalog prices mean unknown and count as 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// Other prices for long requests.
    pub tiers: Vec<RateTier>,
}

/// Prices for a whole request whose input exceeds a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateTier {
    /// The threshold: input, cache reads and cache writes together must exceed it.
    pub input_tokens_above: u64,
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
}

/// Seconds for which a provider keeps a cached prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PromptCache {
    /// With short retention.
    pub short: Option<u64>,
    /// With long retention.
    pub long: Option<u64>,
}
