//! `agents.defaults.models["provider/model"].params`: request parameters of a model.

use pinch_coding_agent::document::Problem;
use pinch_llm::request::{BETAS, CacheRetention, ONE_MILLION_BETA};
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
    /// Options of one wire format; see [`pinch_llm::request::CallOptions::native`].
    pub native: Map<String, Value>,
}

/// Parameters that are members of request bodies under the same name.
const BODY_MEMBERS: [&str; 11] = [
    "frequency_penalty",
    "logit_bias",
    "min_p",
    "parallel_tool_calls",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "tool_stream",
    "top_k",
    "top_p",
];

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
        let (mut extra, mut native) = (below.extra, below.native);
        extra.extend(self.extra);
        native.extend(self.native);
        Self {
            extra,
            native,
            temperature: self.temperature.or(below.temperature),
            max_tokens: self.max_tokens.or(below.max_tokens),
            cache_retention: self.cache_retention.or(below.cache_retention),
        }
    }

    /// Reads the parameters of one model. Unknown ones are reported and ignored: most servers refuse a request with a member they do not know.
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
                "serviceTier" | "service_tier" => params.set_native("serviceTier", member.text(problems)),
                // An explicit tier takes precedence.
                "fastMode" => {
                    let is_fast = member.flag(problems) == Some(true);
                    if is_fast && !params.native.contains_key("serviceTier") {
                        params.set_native("serviceTier", Some("priority".to_owned()));
                    }
                }
                "transport" => {
                    let modes = ["auto", "sse", "websocket", "websocket-cached"];
                    let mode = member.word(problems, &modes, |word| modes.contains(&word).then(|| word.to_owned()));
                    params.set_native("transport", mode);
                }
                "anthropicBeta" => {
                    let betas = match member.value() {
                        Some(Value::String(list)) => list.split(',').map(|beta| beta.trim().to_owned()).collect(),
                        _ => member.texts(problems).unwrap_or_default(),
                    };
                    params.add_betas(betas);
                }
                "context1m" if member.flag(problems) == Some(true) => {
                    params.add_betas(vec![ONE_MILLION_BETA.to_owned()])
                }
                "context1m" => {}
                "extraBody" | "extra_body" => {
                    let members = member.value().and_then(|_| member.object(problems));
                    params.extra.extend(members.cloned().unwrap_or_default());
                }
                name if BODY_MEMBERS.contains(&name) => {
                    drop(member.value().map(|value| params.extra.insert(name.to_owned(), value.clone())));
                }
                _ => {
                    let problem = member.problem("unknown model parameter").remedy(format!(
                        "Remove it, or put it into extraBody to send it as the member {name:?} of each request body"
                    ));
                    member.value();
                    problems.push(problem);
                }
            }
        }
        params
    }

    fn set_native(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.native.insert(name.to_owned(), value.into());
        }
    }

    fn add_betas(&mut self, betas: Vec<String>) {
        let list = self.native.entry(BETAS).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.extend(betas.into_iter().filter(|beta| !beta.is_empty()).map(Value::from));
        }
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
