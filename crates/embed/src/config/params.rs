//! `agents.defaults.models["provider/model"].params`: request parameters of a model.

use pinch_coding_agent::document::Problem;
use pinch_llm::request::CacheRetention;
use serde_json::{Map, Value};

use super::node::Node;

/// Request parameters of a model, from the configuration or from a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StreamParams {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum number of output tokens.
    pub max_tokens: Option<u64>,
    /// How long the provider caches the prompt. Only sent to servers that are known to accept it.
    pub cache_retention: Option<CacheRetention>,
    /// Further members of the request body, named as the provider names them. Only sent in the Anthropic and OpenAI formats.
    pub extra: Map<String, Value>,
}

impl StreamParams {
    /// Sets the sampling temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the maximum number of output tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets how long the provider caches the prompt.
    #[must_use]
    pub fn cache_retention(mut self, retention: CacheRetention) -> Self {
        self.cache_retention = Some(retention);
        self
    }

    /// Returns these parameters, with `below` filling the gaps.
    pub(crate) fn over(self, below: Self) -> Self {
        let mut extra = below.extra;
        extra.extend(self.extra);
        Self {
            extra,
            temperature: self.temperature.or(below.temperature),
            max_tokens: self.max_tokens.or(below.max_tokens),
            cache_retention: self.cache_retention.or(below.cache_retention),
        }
    }

    /// Reads the parameters of one model. Unknown ones are passed to the provider.
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut params = Self::default();
        for (name, member) in node.members(problems) {
            match name {
                "temperature" => params.temperature = member.number(problems),
                "maxTokens" => params.max_tokens = member.count(problems).filter(|n| *n > 0),
                "cacheRetention" => {
                    params.cache_retention = member.word(problems, &["none", "short", "long"], retention);
                }
                // The former name; the current one takes precedence.
                "cacheControlTtl" if !node.get("cacheRetention").is_there() => {
                    params.cache_retention = member.word(problems, &["5m", "1h"], |word| match word {
                        "5m" => Some(CacheRetention::Short),
                        "1h" => Some(CacheRetention::Long),
                        _ => None,
                    });
                }
                "cacheControlTtl" => {}
                _ => drop(member.value().map(|value| params.extra.insert(name.to_owned(), value.clone()))),
            }
        }
        params
    }
}

/// Configured request parameters of an agent's models, from the general to the specific.
#[derive(Clone, Debug, Default)]
pub struct ModelParams(Vec<(Option<String>, StreamParams)>);

impl ModelParams {
    /// Returns the parameters of a model, named `provider/model`: where several levels set one, the most specific.
    pub(crate) fn of(&self, model: &str) -> StreamParams {
        let fitting = self.0.iter().filter(|(of, _)| of.as_deref().is_none_or(|of| of == model));
        fitting.fold(StreamParams::default(), |below, (_, params)| params.clone().over(below))
    }
}

/// Levels in order: the model that each is for, or `None` for all, and its parameters.
impl FromIterator<(Option<String>, StreamParams)> for ModelParams {
    fn from_iter<I: IntoIterator<Item = (Option<String>, StreamParams)>>(levels: I) -> Self {
        Self(levels.into_iter().collect())
    }
}

fn retention(word: &str) -> Option<CacheRetention> {
    Some(match word {
        "none" => CacheRetention::None,
        "short" => CacheRetention::Short,
        "long" => CacheRetention::Long,
        _ => return None,
    })
}
