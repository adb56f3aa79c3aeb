//! Parses JSON5 and YAML, and reports duplicate keys.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;

use pinch_coding_agent::document::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses a document: YAML if the file name ends in `.yml` or `.yaml`, otherwise JSON5. The result is `None` unless the text is an object.
///
/// # Errors
/// Why the document is unusable.
pub(super) fn parse(text: &str, file: &Path) -> Result<(Map<String, Value>, Vec<Problem>), Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok((Map::new(), Vec::new()));
    }
    let twice = RefCell::new(Vec::new());
    let seed = Seed { path: String::new(), depth: 0, twice: &twice };
    let is_yaml = file.extension().is_some_and(|ending| ending == "yml" || ending == "yaml");
    let parsed = if is_yaml { parse_yaml(text, seed) } else { parse_json5(text, seed) };
    let problems = (twice.into_inner().into_iter())
        .map(|at| {
            Problem::new(file, "the key appears twice; the last value is used").at(at).remedy("Remove one of them")
        })
        .collect();
    let language = if is_yaml { "YAML" } else { "JSON5" };
    match parsed {
        Ok(Value::Object(document)) => Ok((document, problems)),
        Ok(Value::Null) => Ok((Map::new(), problems)),
        Ok(_) if is_yaml => Err(Problem::new(file, "must be a map of keys to values")),
        Ok(_) => Err(Problem::new(file, "must be an object").remedy("Put everything between { and }")),
        Err((what, at)) => {
            let problem = Problem::new(file, format!("is not valid {language}: {what}"))
                .remedy("Correct it there; until then the file is unusable");
            Err(match at {
                Some((line, column)) => problem.at(format!("{line}:{column}")),
                None => problem,
            })
        }
    }
}

/// A message and its location: line and column, starting at 1.
type SyntaxError = (String, Option<(u64, u64)>);

fn parse_json5(text: &str, seed: Seed<'_>) -> Result<Value, SyntaxError> {
    seed.deserialize(&mut json5::Deserializer::from_str(text)).map_err(|error| {
        let what = error.to_string();
        let what = what.split_once(" at line ").map_or(what.as_str(), |(what, _)| what).to_owned();
        (what, error.position().map(|at| (at.line as u64 + 1, at.column as u64 + 1)))
    })
}

fn parse_yaml(text: &str, seed: Seed<'_>) -> Result<Value, SyntaxError> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
        // `on` and `off` are keywords in this configuration, not booleans.
        strict_booleans: true,
        // Ids of people and groups may start with a zero.
        leading_zero_numbers_as_strings: true,
    };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        seed.deserialize(deserializer)
    });
    parsed.map_err(|error| {
        let what = error.to_string();
        let what = what.lines().next().unwrap_or_default();
        // Problems already start with the location.
        let what = what.split_once(" at line ").map_or(what, |(what, _)| what).to_owned();
        (what, error.location().map(|at| (at.line(), at.column())))
    })
}

/// Reads a value and collects the paths of duplicate keys.
struct Seed<'a> {
    path: String,
    /// Number of lists and objects around it.
    depth: usize,
    twice: &'a RefCell<Vec<String>>,
}

/// Maximum depth of a document; deeper ones could overflow the stack. It is the limit of JSON files as well.
const MAX_DEPTH: usize = 128;

impl Seed<'_> {
    fn inner(&self, path: String) -> Self {
        Self { path, depth: self.depth + 1, twice: self.twice }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(format!("more than {MAX_DEPTH} lists and objects are nested")));
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner(format!("{}[{}]", self.path, list.len())))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if object.contains_key(&key) {
                self.twice.borrow_mut().push(path.clone());
            }
            let value = members.next_value_seed(self.inner(path))?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
