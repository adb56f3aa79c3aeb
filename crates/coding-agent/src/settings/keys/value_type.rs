//! The types of settings: their values, validation, and descriptions for people.

use pinch_llm::thinking::ThinkingLevel;
use serde_json::Value;

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// `true` or `false`.
    Flag,
    /// `true`, `false`, or one of these words.
    FlagOr(&'static [&'static str]),
    /// A non-negative whole number.
    Count,
    /// A whole number, clamped to these bounds when it is set.
    Within(u64, u64),
    /// A number that is rounded down, at least 1.
    AtLeastOne,
    /// Milliseconds, or "disabled".
    Limit,
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// Names of tools. A restriction: invalid items are ignored, and the rest applies.
    Tools,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words. A restriction: anything else counts as the first of them.
    StrictWord(&'static [&'static str]),
    /// A boolean. A restriction: anything else counts as true.
    StrictFlag,
    /// A thinking level.
    Level,
    /// A boolean, number or string, not interpreted here.
    Scalar,
    /// Package sources: strings, or objects with a string "source".
    Packages,
    /// Thinking levels by `provider/id`.
    Levels,
    /// Objects with two counts by `provider/id`.
    Compactions,
}

impl ValueType {
    /// Returns a description of the accepted values.
    pub fn description(self) -> String {
        let whole = "a whole number from 0 up";
        match self {
            Self::Flag | Self::StrictFlag => "true or false".to_owned(),
            Self::FlagOr(words) => format!("true, false or {}", words.join(", ")),
            Self::Count | Self::Within(..) => whole.to_owned(),
            Self::AtLeastOne => "a number".to_owned(),
            Self::Limit => format!("{whole}, or \"disabled\""),
            Self::Text => "a string".to_owned(),
            Self::Texts | Self::Tools => "a list of strings".to_owned(),
            Self::Word(words) | Self::StrictWord(words) => words.join(", "),
            Self::Level => level_words(),
            Self::Scalar => "a string, a number, true or false".to_owned(),
            Self::Packages => "a list of strings, or objects with a \"source\"".to_owned(),
            Self::Levels => "an object of thinking levels by provider/id".to_owned(),
            Self::Compactions => "an object by provider/id".to_owned(),
        }
    }

    /// Normalizes a value, or returns a description of the accepted values.
    pub(in crate::settings) fn read(self, value: &Value) -> Result<Value, String> {
        let keep = |is_good: bool| is_good.then(|| value.clone());
        let is_word = |words: &[&str]| value.as_str().is_some_and(|word| words.contains(&word));
        let read = match self {
            Self::Flag | Self::StrictFlag => keep(value.is_boolean()),
            Self::FlagOr(words) => keep(value.is_boolean() || is_word(words)),
            Self::Count | Self::Within(..) => count(value).map(Value::from),
            Self::AtLeastOne => value.as_f64().map(|n| Value::from(n.floor().clamp(1.0, f64::from(u32::MAX)) as u64)),
            Self::Limit if value == "disabled" => Some(Value::from(0)),
            Self::Limit => count(value).map(Value::from),
            Self::Text => keep(value.is_string()),
            Self::Texts | Self::Tools => keep(is_list(value, Value::is_string)),
            Self::Word(words) | Self::StrictWord(words) => keep(is_word(words)),
            Self::Level => keep(is_level(value)),
            Self::Scalar => keep(!value.is_object() && !value.is_array()),
            Self::Packages => keep(is_list(value, |one| one.is_string() || one["source"].is_string())),
            Self::Levels => keep(value.as_object().is_some_and(|all| all.values().all(is_level))),
            Self::Compactions => keep(value.as_object().is_some_and(|all| all.values().all(Value::is_object))),
        };
        read.ok_or_else(|| self.description())
    }

    /// Returns what applies instead of an invalid value; `null` for nothing.
    pub(in crate::settings) fn rest_of(self, value: &Value) -> Value {
        match (self, value) {
            (Self::Tools, Value::Array(list)) => list.iter().filter(|one| one.is_string()).cloned().collect(),
            (Self::Tools, Value::String(_)) => Value::Array(vec![value.clone()]),
            // An invalid list of tools was still meant to replace the defaults.
            (Self::Tools, _) => Value::Array(Vec::new()),
            (Self::StrictFlag, _) => Value::Bool(true),
            (Self::StrictWord(words), _) => words.first().map_or(Value::Null, |word| Value::from(*word)),
            _ => Value::Null,
        }
    }

    /// Normalizes a value for storing, or returns a description of the accepted values.
    pub(in crate::settings) fn write(self, value: &Value) -> Result<Value, String> {
        match (self, value.as_f64()) {
            (Self::Within(low, high), Some(number)) => {
                let number = number.floor().clamp(low as f64, high as f64);
                Ok(Value::from(number as u64))
            }
            _ => self.read(value).map(|read| if self == Self::Limit { value.clone() } else { read }),
        }
    }
}

/// Returns the names of the thinking levels as a list.
fn level_words() -> String {
    ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ")
}

fn is_level(value: &Value) -> bool {
    value.as_str().and_then(ThinkingLevel::parse).is_some()
}

fn is_list(value: &Value, is_good: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(is_good))
}

/// Returns a whole number that JavaScript can represent exactly.
pub(in crate::settings) fn count(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n <= LARGEST)?;
    Some(number as u64)
}
