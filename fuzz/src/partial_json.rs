//! JSON that is still arriving: values do not depend on how the text arrives, and nothing shown early is contradicted later.
//!
//! Options: the cuts.

use std::fmt;

use pinch_stdx::json::partial::PartialJson;
use pinch_stdx::json::repair::{parse_object, parse_streaming, parse_with_repair, repair};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::input::{Cuts, options, text};

/// The longest text that is examined at every prefix.
const MAX_PREFIXES: usize = 256;

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([cuts], content) = options(data);
    let content = text(content);
    let whole = parse_streaming(&content);
    for cuts in [Cuts::Single, Cuts::Random(cuts)] {
        let mut json = PartialJson::new();
        cuts.text(&content).into_iter().for_each(|chunk| json.push(chunk));
        assert_eq!(json.object(), whole, "{cuts:?} gives another object");
    }
    if let Ok(Value::Object(strict)) = serde_json::from_str(&content) {
        assert_eq!(whole, strict, "a complete text has another value");
    }
    // Of members with the same name, the last one counts.
    let is_unique = |text: &str| serde_json::from_str(text).is_ok_and(|Unique(is_unique)| is_unique);
    if is_unique(&repair(&content))
        && let Ok(object) = parse_object(&content)
    {
        // More mistakes are repaired in complete arguments.
        assert!(members_grow(&whole, &object), "complete arguments {object:?} contradict {whole:?}");
    }
    let repaired = repair(&content);
    assert_eq!(repair(&repaired), repaired, "repairing a repaired text changes it");
    if let Ok(strict) = serde_json::from_str::<Value>(&content) {
        assert_eq!(parse_with_repair(&content).ok(), Some(strict), "a valid text has another value");
    }
    if content.len() <= MAX_PREFIXES && is_unique(&content) {
        let mut json = PartialJson::new();
        for chunk in Cuts::Single.text(&content) {
            json.push(chunk);
            let early = json.object();
            assert!(members_grow(&early, &whole), "{early:?} is contradicted by {whole:?}");
        }
    }
}

/// Returns whether a value can be the beginning of another one.
fn grows(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => members_grow(before, now),
        (Value::Array(before), Value::Array(now)) => {
            before.len() <= now.len() && before.iter().zip(now).all(|(before, now)| grows(before, now))
        }
        (Value::String(before), Value::String(now)) => now.starts_with(before.as_str()),
        // `1` may become `12` or `1e9`.
        (Value::Number(_), Value::Number(_)) => true,
        (before, now) => before == now,
    }
}

fn members_grow(before: &Map<String, Value>, now: &Map<String, Value>) -> bool {
    before.len() <= now.len()
        && before.iter().zip(now).all(|((name, before), (other, now))| name == other && grows(before, now))
}

/// Whether all names of each object of a JSON text are different.
struct Unique(bool);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let (mut seen, mut is_unique) = (std::collections::BTreeSet::new(), true);
        while let Some((name, value)) = map.next_entry::<String, Unique>()? {
            is_unique &= value.0 && seen.insert(name);
        }
        Ok(Unique(is_unique))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unique, A::Error> {
        let mut is_unique = true;
        while let Some(value) = seq.next_element::<Unique>()? {
            is_unique &= value.0;
        }
        Ok(Unique(is_unique))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(true))
    }
}
