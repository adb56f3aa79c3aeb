//! Splitting a long models.json in one pass: lists of models stay text until they are used.

use std::fmt;

use bytes::Bytes;
use pinch_stdx::json::lossy;
use pinch_stdx::json::walk::{Walk, resolve};
use pinch_stdx::text::bom_len;
use serde_json::{Map, Value};

/// Members of a provider that may be very long.
const LONG: [&str; 2] = ["models", "modelOverrides"];

/// A document, split by provider.
pub(super) struct ModelsOutline {
    pub(super) providers: Vec<(String, Sketch)>,
}

/// The outline of one provider.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// The short members.
    pub(super) head: Map<String, Value>,
    /// The long members, by name.
    pub(super) parts: Vec<(&'static str, UnreadValue)>,
}

/// A value not parsed yet.
#[derive(Clone)]
pub(super) struct UnreadValue(Bytes);

impl fmt::Debug for UnreadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

/// Returns the text of a document or a part of it, which is valid UTF-8.
pub(super) fn as_str(text: &Bytes) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

impl UnreadValue {
    fn text(&self) -> &str {
        as_str(&self.0)
    }

    /// Returns whether the value starts with the expected bracket.
    fn begins_with(&self, bracket: u8) -> bool {
        self.0.first() == Some(&bracket)
    }
}

impl Sketch {
    /// Reads the provider at the current position of a walk over the text.
    fn of(text: &Bytes, walk: &mut Walk<'_>) -> Option<Self> {
        let mut sketch = Self { head: Map::new(), parts: Vec::new() };
        walk.object(2, |walk, name| {
            let name = resolve(name)?;
            let part = UnreadValue(text.slice(walk.place_of_value(2)?));
            match LONG.into_iter().find(|long| *long == name) {
                Some(long) => {
                    sketch.parts.retain(|(known, _)| *known != long);
                    sketch.parts.push((long, part));
                }
                None => drop(sketch.head.insert(name.into_owned(), lossy::from_str(part.text()).ok()?)),
            }
            Some(())
        })?;
        Some(sketch)
    }

    /// Returns whether the long members have the expected types: a list of models, and an object of overrides.
    pub(super) fn has_good_parts(&self) -> bool {
        self.parts.iter().all(|(name, part)| part.begins_with(if *name == LONG[0] { b'[' } else { b'{' }))
    }

    /// Parses the provider completely.
    ///
    /// # Errors
    /// The parse error.
    pub(super) fn read(&self) -> Result<Value, serde_json::Error> {
        let mut config = self.head.clone();
        for (name, part) in &self.parts {
            config.insert((*name).to_owned(), lossy::from_str(part.text())?);
        }
        Ok(Value::Object(config))
    }
}

impl ModelsOutline {
    /// Splits a document. Returns `None` if its shape is unexpected, so that it must be parsed as a whole to find out why.
    pub(super) fn of(text: &Bytes) -> Option<Self> {
        let text = &text.slice(bom_len(text)..);
        let mut walk = Walk::new(text);
        let mut providers = None;
        walk.object(0, |walk, name| {
            if resolve(name)? != "providers" {
                return walk.value(0);
            }
            let mut sketches: Vec<(String, Sketch)> = Vec::new();
            walk.object(1, |walk, name| {
                let name = resolve(name)?.into_owned();
                let sketch = Sketch::of(text, walk)?;
                // As usual in JSON, the later of two equal names wins, at the position of the first.
                match sketches.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = sketch,
                    None => sketches.push((name, sketch)),
                }
                Some(())
            })?;
            providers = Some(sketches);
            Some(())
        })?;
        let providers = providers.filter(|_| walk.is_at_end())?;
        Some(Self { providers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Option<Value>) {
        let outline = ModelsOutline::of(&Bytes::from(text.to_owned()));
        let all = outline.map(|outline| {
            let read = |(name, sketch): &(String, Sketch)| json!([name, sketch.read().unwrap()]);
            Value::Array(outline.providers.iter().map(read).collect())
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn split_documents_are_reassembled_unchanged() {
        let models = json!([{"id": "m", "deep": [[{"models": 1}]]}]);
        let provider = json!({"baseUrl": "u", "models": models, "modelOverrides": {"x": {}}});
        let text = json!({"$schema": 1, "providers": {"a": provider, "b": {}}}).to_string();
        let expected = json!([["a", {"baseUrl": "u", "models": models, "modelOverrides": {"x": {}}}], ["b", {}]]);
        check(&text, Some(expected.clone()));
        check(&format!("\u{feff} {text}"), Some(expected));
        // A lone surrogate is detected when its part is parsed.
        check(r#"{"providers":{"a":{"models":["\ud83d"]}}}"#, Some(json!([["a", {"models": ["\u{fffd}"]}]])));
        check(r#"{"providers":{"a":{"x":1,"models":[1],"models":[2]},"a":{"y":1}}}"#, Some(json!([["a", {"y": 1}]])));
        for wrong in ["[]", "{}", r#"{"providers":[]}"#, r#"{"providers":{"a":7}}"#, r#"{"providers":{}"#, "{} // c"] {
            check(wrong, None);
        }
    }
}
