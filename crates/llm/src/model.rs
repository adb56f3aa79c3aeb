//! Models: address, capabilities, prices, and peculiarities.

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

/// A model of a provider.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The provider's name of the model.
    pub id: ModelId,
    /// The name shown to people.
    pub name: String,
    /// The wire format it speaks.
    pub api: ApiId,
    /// Provider that serves it.
    pub provider: ProviderId,
    /// URL under which the wire format's paths lie; may hold `{NAME}` placeholders.
    pub base_url: String,
    /// Whether it supports thinking.
    pub reasoning: bool,
    /// How thinking levels are spelled on the wire, and which ones exist.
    pub thinking: ThinkingMap,
    /// Whether it accepts images.
    pub images: bool,
    /// Prices.
    pub rates: Rates,
    /// Tokens of request and answer together; 0 = unknown.
    pub context_window: u64,
    /// Tokens of the answer; 0 = unknown.
    pub max_tokens: u64,
    /// Headers sent with each request.
    pub headers: Vec<(String, Option<String>)>,
    /// Seconds a provider keeps a cached prefix: of the short and of the long kind, where known.
    pub prompt_cache: PromptCache,
    /// Members merged into the request's body last (OpenAI-shaped formats only).
    pub sampling_params: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
    /// Its peculiarities.
    pub dialect: Dialect,
    /// The `compat` object its record had, for those who write records.
    pub compat: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
    /// Members of its record that have no field here, as written.
    pub extra: Arc<serde_json::Map<String, serde_json::Value>>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and what users write may be credentials: names only. URLs may hold passwords.
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

/// Prices in US dollars per million tokens. Negative prices of catalogs mean unknown and count as 0.
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

/// Prices that hold for a whole request whose input is longer than a threshold.
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
    /// Of the short kind.
    pub short: Option<u64>,
    /// Of the long kind.
    pub long: Option<u64>,
}
