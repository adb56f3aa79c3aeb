//! Coerces arguments to a schema where the model's intention is unambiguous.

use std::cell::Cell;

use pinch_stdx::json::number;
use regex::Regex;
use serde_json::{Map, Number, Value};

use super::Schema;
use super::compiled::resolve;

/// Maximum nesting of references and unions; more is a cyclic schema.
const MAX_DEPTH: usize = 64;

/// Maximum number of visited subschemas, because unions of references to unions multiply.
const MAX_STEPS: usize = 100_000;

/// Largest integer that JavaScript represents exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Coerces `value` towards the schema. Anything that cannot be coerced is left to the validator.
pub(super) fn coerce(schema: &Schema, value: &mut Value) {
    let n_left = Cell::new(MAX_STEPS);
    let place = Position { root: schema.raw(), schema, depth: 0, n_left: &n_left };
    place.coerce(schema.raw(), "", value);
}

#[derive(Clone, Copy)]
struct Position<'a> {
    root: &'a Value,
    schema: &'a Schema,
    depth: usize,
    /// Remaining steps.
    n_left: &'a Cell<usize>,
}

impl Position<'_> {
    /// Coerces by the subschema `rules` at `pointer`.
    fn coerce(self, rules: &Value, pointer: &str, value: &mut Value) {
        let (Value::Object(rules), true) = (rules, self.may_go_on()) else { return };
        let inner = Position { depth: self.depth + 1, ..self };
        if let Some(target) = rules.get("$ref").and_then(Value::as_str)
            && let Some(found) = resolve(self.root, target)
        {
            inner.coerce(found, target.trim_start_matches('#'), value);
        }
        for (i, member) in list(rules, "allOf").enumerate() {
            inner.coerce(member, &format!("{pointer}/allOf/{i}"), value);
        }
        for union in ["anyOf", "oneOf"] {
            inner.coerce_union(rules, union, pointer, value);
        }
        self.coerce_type(rules, pointer, value);
        match value {
            Value::Object(members) => inner.coerce_members(rules, pointer, members),
            Value::Array(items) => inner.coerce_items(rules, pointer, items),
            _ => {}
        }
    }

    fn may_go_on(self) -> bool {
        self.n_left.set(self.n_left.get().saturating_sub(1));
        self.depth < MAX_DEPTH && self.n_left.get() > 0
    }

    /// Keeps a value that already fits a member; otherwise the first member that the coerced value fits is used.
    fn coerce_union(self, rules: &Map<String, Value>, union: &str, pointer: &str, value: &mut Value) {
        let at = |i: usize| format!("{pointer}/{union}/{i}");
        let n_members = list(rules, union).count();
        if (0..n_members).any(|i| self.schema.part_fits(&at(i), value)) {
            return;
        }
        for (i, member) in list(rules, union).enumerate() {
            let mut changed = value.clone();
            self.coerce(member, &at(i), &mut changed);
            if self.schema.part_fits(&at(i), &changed) {
                *value = changed;
                return;
            }
        }
    }

    fn coerce_type(self, rules: &Map<String, Value>, pointer: &str, value: &mut Value) {
        let types: Vec<&str> = match rules.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        if types.iter().any(|wanted| is_of(value, wanted)) {
            return;
        }
        let strict = types.iter().find_map(|wanted| convert(value, wanted));
        let lenient = || types.iter().find_map(|wanted| self.convert_leniently(value, wanted, rules, pointer));
        if let Some(changed) = strict.or_else(lenient) {
            *value = changed;
        }
    }

    /// Converts lists and objects in JSON text, and single values where a list is expected.
    fn convert_leniently(
        self,
        value: &Value,
        wanted: &str,
        rules: &Map<String, Value>,
        pointer: &str,
    ) -> Option<Value> {
        if !self.schema.is_lenient() || !matches!(wanted, "array" | "object") {
            return None;
        }
        let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(parsed) = parsed.filter(|parsed| is_of(parsed, wanted)) {
            return Some(parsed);
        }
        if wanted != "array" || value.is_null() {
            return None;
        }
        let mut items = vec![value.clone()];
        self.coerce_items(rules, pointer, &mut items);
        let list = Value::Array(items);
        self.schema.part_fits(pointer, &list).then_some(list)
    }

    fn coerce_members(self, rules: &Map<String, Value>, pointer: &str, members: &mut Map<String, Value>) {
        let properties = rules.get("properties").and_then(Value::as_object);
        let patterns = rules.get("patternProperties").and_then(Value::as_object);
        let is_required = |name: &str| list(rules, "required").any(|required| required == name);
        // The strict modes of some providers make models write null for omitted members.
        members.retain(|name, value| {
            let rule = properties.and_then(|properties| properties.get(name));
            !(value.is_null() && !is_required(name) && rule.is_some_and(|rule| !self.allows_null(rule, 0)))
        });
        for (name, value) in members.iter_mut() {
            let mut is_known = false;
            if let Some(rule) = properties.and_then(|properties| properties.get(name)) {
                is_known = true;
                self.coerce(rule, &format!("{pointer}/properties/{}", escape(name)), value);
            }
            for (pattern, rule) in patterns.into_iter().flatten() {
                if Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name)) {
                    is_known = true;
                    self.coerce(rule, &format!("{pointer}/patternProperties/{}", escape(pattern)), value);
                }
            }
            if let (false, Some(rule)) = (is_known, rules.get("additionalProperties")) {
                self.coerce(rule, &format!("{pointer}/additionalProperties"), value);
            }
        }
    }

    fn coerce_items(self, rules: &Map<String, Value>, pointer: &str, items: &mut [Value]) {
        let tuple = ["prefixItems", "items"].into_iter().find(|name| rules.get(*name).is_some_and(Value::is_array));
        let n_tuple = tuple.map_or(0, |name| list(rules, name).count());
        for (i, item) in items.iter_mut().enumerate() {
            let (at, rule) = match tuple.filter(|_| i < n_tuple) {
                Some(name) => (format!("{pointer}/{name}/{i}"), list(rules, name).nth(i)),
                None if tuple == Some("items") => (format!("{pointer}/additionalItems"), rules.get("additionalItems")),
                None => (format!("{pointer}/items"), rules.get("items")),
            };
            if let Some(rule) = rule {
                self.coerce(rule, &at, item);
            }
        }
    }

    /// Returns whether these rules allow null.
    fn allows_null(self, rules: &Value, depth: usize) -> bool {
        let Value::Object(members) = rules else { return rules != &Value::Bool(false) };
        let place = Position { depth, ..self };
        if !place.may_go_on() {
            return true;
        }
        let allows = |rules: &Value| self.allows_null(rules, depth + 1);
        let by_ref = members.get("$ref").and_then(Value::as_str).and_then(|target| resolve(self.root, target));
        let by_type = match members.get("type") {
            Some(Value::String(one)) => one == "null",
            Some(Value::Array(many)) => many.iter().any(|one| one == "null"),
            _ => true,
        };
        by_type
            && by_ref.is_none_or(allows)
            && members.get("const").is_none_or(Value::is_null)
            && members.get("enum").and_then(Value::as_array).is_none_or(|options| options.contains(&Value::Null))
            && list(members, "allOf").all(allows)
            && ["anyOf", "oneOf"]
                .into_iter()
                .all(|union| !members.contains_key(union) || list(members, union).any(allows))
    }
}

fn list<'a>(rules: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    rules.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Escapes a name as a step of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn is_of(value: &Value, wanted: &str) -> bool {
    match wanted {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Converts the value to the wanted type; returns `None` if that would be a guess.
fn convert(value: &Value, wanted: &str) -> Option<Value> {
    match wanted {
        "number" => to_number(value).map(number_value),
        "integer" => to_number(value).filter(|number| number.fract() == 0.0).map(number_value),
        "boolean" => to_boolean(value).map(Value::Bool),
        "string" => to_text(value).map(Value::String),
        "null" => {
            let is_nothing = value == "" || value == false || value.as_f64() == Some(0.0);
            is_nothing.then_some(Value::Null)
        }
        _ => None,
    }
}

fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(0.0),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => read_number(text.trim()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Parses a decimal number, with or without an exponent, or `0x` and hexadecimal digits.
fn read_number(text: &str) -> Option<f64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let is_hex = !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
        return is_hex
            .then(|| hex.bytes().fold(0.0, |sum, b| sum * 16.0 + f64::from(char::from(b).to_digit(16).unwrap_or(0))));
    }
    // Rust also accepts "inf", "nan" and the like.
    let is_plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())
}

fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within range: checked above")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn to_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => Some(false),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        _ => None,
    }
}

fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(whole) if whole.is_i64() || whole.is_u64() => Some(whole.to_string()),
        Value::Number(other) => other.as_f64().map(number::format),
        Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
