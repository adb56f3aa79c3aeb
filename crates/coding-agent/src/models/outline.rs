//! A long models.json, taken apart in one pass: lists of models stay text until somebody asks for them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use pinch_stdx::json::lossy;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Members of a provider that may be very long.
const LONG: [&str; 2] = ["models", "modelOverrides"];

/// A document, provider by provider.
pub(super) struct Outline {
    pub(super) providers: Vec<(String, Sketch)>,
}

/// What is said of one provider.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// The members that are short.
    pub(super) head: Map<String, Value>,
    /// The long ones, by name.
    pub(super) parts: Vec<(&'static str, Part)>,
}

/// A value that was not read yet.
#[derive(Clone)]
pub(super) struct Part {
    text: Arc<String>,
    range: Range<usize>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Part {
    fn text(&self) -> &str {
        self.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Whether the value is of the kind that its member is to be.
    fn begins_with(&self, bracket: char) -> bool {
        self.text().starts_with(bracket)
    }
}

impl Sketch {
    /// Whether the long members are what they are to be: a list of models, and an object of overrides.
    pub(super) fn has_good_parts(&self) -> bool {
        self.parts.iter().all(|(name, part)| part.begins_with(if *name == LONG[0] { '[' } else { '{' }))
    }

    /// Everything that is said of the provider.
    ///
    /// # Errors
    /// The reader's error.
    pub(super) fn read(&self) -> Result<Value, serde_json::Error> {
        let mut config = self.head.clone();
        for (name, part) in &self.parts {
            config.insert((*name).to_owned(), lossy::from_str(part.text())?);
        }
        Ok(Value::Object(config))
    }
}

impl Outline {
    /// Takes a document apart; `None` when it has not the shape that it is to have, so that it is to be read as a whole to say why.
    pub(super) fn of(text: &Arc<String>) -> Option<Self> {
        let found: Found<'_> = serde_json::from_str(lossy::without_bom(text)).ok()?;
        let part = |raw: &RawValue| {
            let start = (raw.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
            Some(Part { text: Arc::clone(text), range: start..start + raw.get().len() })
        };
        let mut providers: Vec<(String, Sketch)> = Vec::new();
        for (name, Members { head, parts }) in found.0 {
            let parts = parts.into_iter().map(|(name, raw)| Some((name, part(raw)?))).collect::<Option<_>>()?;
            let sketch = Sketch { head, parts };
            // As everywhere in JSON: of two with one name the later counts, in the place of the first.
            match providers.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = sketch,
                None => providers.push((name, sketch)),
            }
        }
        Some(Self { providers })
    }
}

/// The providers of a document.
struct Found<'a>(Vec<(String, Members<'a>)>);

/// The members of a provider.
struct Members<'a> {
    head: Map<String, Value>,
    parts: Vec<(&'static str, &'a RawValue)>,
}

impl<'de> Deserialize<'de> for Found<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfRoot)
    }
}

struct OfRoot;

impl<'de> Visitor<'de> for OfRoot {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with providers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "providers" {
                found = Some(map.next_value_seed(OfProviders)?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        found.map(Found).ok_or_else(|| de::Error::missing_field("providers"))
    }
}

struct OfProviders;

impl<'de> DeserializeSeed<'de> for OfProviders {
    type Value = Vec<(String, Members<'de>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfProviders {
    type Value = Vec<(String, Members<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of providers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            all.push((name, map.next_value_seed(OfProvider)?));
        }
        Ok(all)
    }
}

struct OfProvider;

impl<'de> DeserializeSeed<'de> for OfProvider {
    type Value = Members<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfProvider {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { head: Map::new(), parts: Vec::new() };
        while let Some(name) = map.next_key::<String>()? {
            match LONG.into_iter().find(|long| *long == name) {
                Some(long) => {
                    let raw = map.next_value()?;
                    members.parts.retain(|(known, _)| *known != long);
                    members.parts.push((long, raw));
                }
                None => drop(members.head.insert(name, map.next_value()?)),
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Option<Value>) {
        let outline = Outline::of(&Arc::new(text.to_owned()));
        let all = outline.map(|outline| {
            let read = |(name, sketch): &(String, Sketch)| json!([name, sketch.read().unwrap()]);
            Value::Array(outline.providers.iter().map(read).collect())
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_put_together_is_what_was_taken_apart() {
        let models = json!([{"id": "m", "deep": [[{"models": 1}]]}]);
        let provider = json!({"baseUrl": "u", "models": models, "modelOverrides": {"x": {}}});
        let text = json!({"$schema": 1, "providers": {"a": provider, "b": {}}}).to_string();
        let expected = json!([["a", {"baseUrl": "u", "models": models, "modelOverrides": {"x": {}}}], ["b", {}]]);
        check(&text, Some(expected.clone()));
        check(&format!("\u{feff} {text}"), Some(expected));
        // Half of a pair of surrogates is found when the part is read.
        check(r#"{"providers":{"a":{"models":["\ud83d"]}}}"#, Some(json!([["a", {"models": ["\u{fffd}"]}]])));
        check(r#"{"providers":{"a":{"x":1,"models":[1],"models":[2]},"a":{"y":1}}}"#, Some(json!([["a", {"y": 1}]])));
        for wrong in ["[]", "{}", r#"{"providers":[]}"#, r#"{"providers":{"a":7}}"#, r#"{"providers":{}"#, "{} // c"] {
            check(wrong, None);
        }
    }
}
