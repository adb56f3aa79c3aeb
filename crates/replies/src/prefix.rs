//! The text before each reply, such as the name of the agent or of the model that answers.
//!
//! A template may contain `{model}`, `{modelFull}`, `{provider}`, `{thinkingLevel}` or `{think}`, and `{identity.name}`, in any case. A
//! placeholder without a value stays as it is.

use std::borrow::Cow;

use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::unit::TextUnit;

/// The text before each reply.
#[derive(Clone, Debug)]
pub struct ResponsePrefix {
    template: String,
    identity: Option<String>,
    /// The template with its values filled in.
    text: String,
}

/// Length reserved for the value of a placeholder, in characters.
const VALUE_ROOM: usize = 40;

impl ResponsePrefix {
    /// Creates a prefix from a template. `auto` stands for the name of the agent (`identity`) in brackets. `None` if there is nothing to add.
    pub fn new(template: &str, identity: Option<&str>) -> Option<Self> {
        let identity = identity.map(str::trim).filter(|name| !name.is_empty());
        let template = match template {
            "auto" => format!("[{}]", identity?),
            other => other.to_owned(),
        };
        let text = filled(&template, |name| value_of(name, identity, None));
        (!template.is_empty()).then(|| Self { text, template, identity: identity.map(str::to_owned) })
    }

    /// Sets the model that answers from now on.
    pub(crate) fn set_model(&mut self, model: &Model, thinking: ThinkingLevel) {
        self.text = filled(&self.template, |name| value_of(name, self.identity.as_deref(), Some((model, thinking))));
    }

    /// Puts the prefix before a text that is not empty and does not begin with it.
    pub(crate) fn put_before(&self, text: &mut String) {
        if !text.is_empty() && !text.starts_with(&self.text) {
            text.insert(0, ' ');
            text.insert_str(0, &self.text);
        }
    }

    /// Returns the length to reserve for the prefix.
    pub fn room(&self, unit: TextUnit) -> usize {
        unit.len(&self.template) + 1 + VALUE_ROOM * self.template.matches('{').count()
    }
}

/// Returns the value of a placeholder; `None` if it has none.
fn value_of<'a>(
    name: &str,
    identity: Option<&'a str>,
    answers: Option<(&'a Model, ThinkingLevel)>,
) -> Option<Cow<'a, str>> {
    let model = answers.map(|(model, _)| model);
    match name.to_ascii_lowercase().as_str() {
        "model" => model.map(|model| short_name(model.id.as_str()).into()),
        "modelfull" => model.map(|model| format!("{}/{}", model.provider, model.id).into()),
        "provider" => model.map(|model| model.provider.as_str().into()),
        "thinkinglevel" | "think" => answers.map(|(_, thinking)| thinking.as_str().into()),
        "identity.name" | "identityname" => identity.map(Into::into),
        _ => None,
    }
}

/// Returns the name of a model without the path before it, and without a date or `latest` at its end.
fn short_name(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or(id);
    let is_date = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.rsplit_once('-').filter(|(_, end)| is_date(end)).map_or(name, |(name, _)| name);
    name.strip_suffix("-latest").unwrap_or(name)
}

/// Replaces the placeholders that have a value.
fn filled<'a>(template: &str, value: impl Fn(&str) -> Option<Cow<'a, str>>) -> String {
    let (mut text, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(start) = rest.find('{') {
        let name = &rest[start + 1..];
        let n_name = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(name.len());
        let found = value(&name[..n_name]).filter(|_| name[n_name..].starts_with('}'));
        let end = if found.is_some() { start + n_name + 2 } else { start + 1 };
        text.push_str(&rest[..start]);
        text.push_str(&found.unwrap_or(Cow::Borrowed("{")));
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pinch_llm::catalog::Catalog;

    use super::*;

    #[test]
    fn placeholders_are_filled_in_and_unknown_ones_stay() {
        let model = Arc::clone(Catalog::built_in().find("anthropic", "claude-sonnet-4-5-20250929").unwrap());
        for (template, expect) in [
            ("[{model}]", "[claude-sonnet-4-5]"),
            ("{PROVIDER} {modelFull} {think}:", "anthropic anthropic/claude-sonnet-4-5-20250929 low:"),
            ("{identity.name} {IdentityName}", "Ada Ada"),
            ("{{model} {nope} {", "{claude-sonnet-4-5 {nope} {"),
            ("auto", "[Ada]"),
        ] {
            let mut prefix = ResponsePrefix::new(template, Some(" Ada ")).unwrap();
            prefix.set_model(&model, ThinkingLevel::Low);
            let mut text = "Hi".to_owned();
            prefix.put_before(&mut text);
            assert_eq!(text, format!("{expect} Hi"));
            prefix.put_before(&mut text);
            assert_eq!(text, format!("{expect} Hi"), "the prefix is not repeated");
            assert!(TextUnit::Chars.len(expect) < prefix.room(TextUnit::Chars), "{template}");
        }
        assert_eq!(ResponsePrefix::new("{model}", None).unwrap().text, "{model}");
        assert!(ResponsePrefix::new("", Some("Ada")).is_none() && ResponsePrefix::new("auto", None).is_none());
    }
}
