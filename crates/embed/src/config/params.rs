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
    /// Whether answers are requested at the provider's fast tier (`fastMode`), unless a service tier is set.
    pub fast_mode: Option<bool>,
    /// Beta features of Anthropic (`anthropicBeta`).
    pub anthropic_beta: Option<Vec<String>>,
    /// Whether Anthropic's window of a million tokens is requested (`context1m`).
    pub context_1m: Option<bool>,
    /// Options of one wire format; see [`pinch_llm::request::CallOptions::native`].
    pub native: Map<String, Value>,
}

/// The option of wire formats for the service tier.
const SERVICE_TIER: &str = "serviceTier";

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
        if self.fast_mode == Some(true) {
            native.remove(SERVICE_TIER);
        }
        native.extend(self.native);
        Self {
            extra,
            native,
            temperature: self.temperature.or(below.temperature),
            max_tokens: self.max_tokens.or(below.max_tokens),
            cache_retention: self.cache_retention.or(below.cache_retention),
            fast_mode: self.fast_mode.or(below.fast_mode),
            anthropic_beta: self.anthropic_beta.or(below.anthropic_beta),
            context_1m: self.context_1m.or(below.context_1m),
        }
    }

    /// Returns the options of wire formats: those that are set, and those that follow from other parameters.
    pub(crate) fn native_options(&self, model: &str) -> Map<String, Value> {
        let mut native = self.native.clone();
        if self.fast_mode == Some(true) && !native.contains_key(SERVICE_TIER) {
            native.insert(SERVICE_TIER.to_owned(), "priority".into());
        }
        let has_one_million = ["opus-4", "sonnet-4"].iter().any(|name| model.to_lowercase().contains(name));
        let one_million = (self.context_1m == Some(true) && has_one_million).then_some(ONE_MILLION_BETA);
        let betas = self.anthropic_beta.iter().flatten().map(String::as_str).chain(one_million);
        let betas: Vec<Value> = betas.map(Value::from).collect();
        if !betas.is_empty()
            && let Value::Array(list) = native.entry(BETAS).or_insert_with(|| Value::Array(Vec::new()))
        {
            list.extend(betas);
        }
        native
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
                "serviceTier" | "service_tier" => params.set_native(SERVICE_TIER, member.text(problems)),
                "fastMode" => params.fast_mode = member.flag(problems),
                "transport" => {
                    let modes = ["auto", "sse", "websocket", "websocket-cached"];
                    let mode = member.word(problems, &modes, |word| modes.contains(&word).then(|| word.to_owned()));
                    params.set_native("transport", mode);
                }
                "anthropicBeta" => {
                    let betas: Option<Vec<String>> = match member.value() {
                        Some(Value::String(list)) => Some(list.split(',').map(|beta| beta.trim().to_owned()).collect()),
                        _ => member.texts(problems),
                    };
                    params.anthropic_beta =
                        betas.map(|betas| betas.into_iter().filter(|beta| !beta.is_empty()).collect());
                }
                "context1m" => params.context_1m = member.flag(problems),
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
