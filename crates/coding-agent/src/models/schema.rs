//! The schema of models.json.

use serde_json::{Map, Value};

/// An invalid value: its dotted path, and the expected value.
pub(super) type Misfit = (String, String);

/// String members of a provider; none may be empty.
const TEXTS: [&str; 4] = ["name", "baseUrl", "apiKey", "api"];
/// The members of a price; a model's own price has all of them.
const PRICES: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];
/// The names of thinking levels.
const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Limits for resizing images, and their maximum values.
const IMAGE_LIMITS: [(&str, f64); 4] =
    [("maxWidth", f64::MAX), ("maxHeight", f64::MAX), ("maxBytes", f64::MAX), ("jpegQuality", 100.0)];

/// A path formatted only if a value is invalid, because documents may contain very many models.
pub(super) type ValuePath<'a> = &'a dyn Fn() -> String;

/// Collects misfits below a path.
struct SchemaCheck<'a> {
    misfits: &'a mut Vec<Misfit>,
    at: ValuePath<'a>,
}

/// Checks the members of a provider, except its models.
pub(super) fn provider(at: &str, config: &Map<String, Value>, misfits: &mut Vec<Misfit>) {
    let at = || at.to_owned();
    let mut check = SchemaCheck { misfits, at: &at };
    TEXTS.iter().for_each(|name| check.text(config, name));
    check.flag(config, "authHeader");
    check.headers(config);
    check.kind(config, "compat", Value::is_object, "must be object");
    check.kind(config, "models", Value::is_array, "must be array");
    check.kind(config, "modelOverrides", Value::is_object, "must be object");
}

/// Checks a model.
pub(super) fn model(at: ValuePath<'_>, model: &Value, misfits: &mut Vec<Misfit>) {
    let Some(model) = object(at, model, misfits) else { return };
    let mut check = SchemaCheck { misfits, at };
    if model.contains_key("id") {
        check.text(model, "id");
    } else {
        check.misfit("id", "must have required properties id");
    }
    check.text(model, "api");
    check.text(model, "baseUrl");
    check.common(model);
    if let Some(cost) = model.get("cost").and_then(Value::as_object) {
        let missing: Vec<&str> = PRICES.into_iter().filter(|price| !cost.contains_key(*price)).collect();
        if let Some(first) = missing.first() {
            check.misfit(&format!("cost.{first}"), &format!("must have required properties {}", missing.join(", ")));
        }
    }
}

/// Checks an entry of `modelOverrides`.
pub(super) fn model_override(at: ValuePath<'_>, over: &Value, misfits: &mut Vec<Misfit>) {
    let Some(over) = object(at, over, misfits) else { return };
    SchemaCheck { misfits, at }.common(over);
}

/// Returns the object at a path, or reports a misfit.
fn object<'a>(at: ValuePath<'_>, value: &'a Value, misfits: &mut Vec<Misfit>) -> Option<&'a Map<String, Value>> {
    let object = value.as_object();
    if object.is_none() {
        misfits.push((at(), "must be object".to_owned()));
    }
    object
}

impl SchemaCheck<'_> {
    fn misfit(&mut self, name: &str, what: &str) {
        self.misfits.push((format!("{}.{name}", (self.at)()), what.to_owned()));
    }

    fn kind(&mut self, map: &Map<String, Value>, name: &str, is_good: impl Fn(&Value) -> bool, what: &str) {
        if map.get(name).is_some_and(|value| !is_good(value)) {
            self.misfit(name, what);
        }
    }

    fn text(&mut self, map: &Map<String, Value>, name: &str) {
        match map.get(name) {
            Some(Value::String(text)) if text.is_empty() => {
                self.misfit(name, "must not have fewer than 1 characters");
            }
            Some(Value::String(_)) | None => {}
            Some(_) => self.misfit(name, "must be string"),
        }
    }

    fn flag(&mut self, map: &Map<String, Value>, name: &str) {
        self.kind(map, name, Value::is_boolean, "must be boolean");
    }

    fn headers(&mut self, map: &Map<String, Value>) {
        self.kind(map, "headers", Value::is_object, "must be object");
        for (name, value) in members(map, "headers") {
            // Null removes a header.
            if !value.is_string() && !value.is_null() {
                self.misfit(&format!("headers.{name}"), "must be string");
            }
        }
    }

    /// Checks the limits for resizing images: `inputLimits.images.resize`.
    fn image_limits(&mut self, map: &Map<String, Value>) {
        const PATH: [(&str, &str); 3] =
            [("inputLimits", "inputLimits"), ("images", "inputLimits.images"), ("resize", "inputLimits.images.resize")];
        let mut limits = map;
        for (name, place) in PATH {
            match limits.get(name) {
                None => return,
                Some(Value::Object(inner)) => limits = inner,
                Some(_) => return self.misfit(place, "must be object"),
            }
        }
        for (name, most) in IMAGE_LIMITS {
            let Some(value) = limits.get(name) else { continue };
            let what = match value.as_f64() {
                None => "must be number".to_owned(),
                Some(n) if n < 1.0 => "must be >= 1".to_owned(),
                Some(n) if n > most => format!("must be <= {most}"),
                Some(_) => continue,
            };
            self.misfit(&format!("inputLimits.images.resize.{name}"), &what);
        }
    }

    /// Checks the maximum numbers of images: `maxPerMessage` and `maxPerRequest` of `inputLimits.images`.
    fn image_counts(&mut self, map: &Map<String, Value>) {
        let images = map.get("inputLimits").and_then(|limits| limits.get("images"));
        for name in ["maxPerMessage", "maxPerRequest"] {
            let Some(value) = images.and_then(|images| images.get(name)) else { continue };
            let what = match value.as_f64() {
                None => "must be number",
                Some(n) if n.fract() != 0.0 => "must be integer",
                Some(n) if n < 1.0 => "must be >= 1",
                Some(_) => continue,
            };
            self.misfit(&format!("inputLimits.images.{name}"), what);
        }
    }

    /// Checks the members common to models and overrides.
    fn common(&mut self, map: &Map<String, Value>) {
        self.text(map, "name");
        self.flag(map, "reasoning");
        self.headers(map);
        for name in ["contextWindow", "maxTokens"] {
            self.kind(map, name, Value::is_number, "must be number");
        }
        self.kind(map, "compat", Value::is_object, "must be object");
        self.kind(map, "cost", Value::is_object, "must be object");
        for price in PRICES {
            if members(map, "cost").any(|(name, value)| name == price && !value.is_number()) {
                self.misfit(&format!("cost.{price}"), "must be number");
            }
        }
        self.kind(map, "thinkingLevelMap", Value::is_object, "must be object");
        for (level, value) in members(map, "thinkingLevelMap") {
            if LEVELS.contains(&level.as_str()) && !value.is_string() && !value.is_null() {
                self.misfit(&format!("thinkingLevelMap.{level}"), "must match a schema in anyOf");
            }
        }
        self.image_limits(map);
        self.image_counts(map);
        self.kind(map, "input", Value::is_array, "must be array");
        for (at, kind) in map.get("input").and_then(Value::as_array).into_iter().flatten().enumerate() {
            if kind != "text" && kind != "image" {
                self.misfit(&format!("input.{at}"), "must match a schema in anyOf");
            }
        }
    }
}

fn members<'a>(map: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    map.get(name).and_then(Value::as_object).into_iter().flatten()
}
