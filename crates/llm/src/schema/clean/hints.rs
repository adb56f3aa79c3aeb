//! Removed limits, told in descriptions instead.

use serde_json::{Map, Value};

use super::at_schemas;

/// Adds the limits that are about to be removed to the descriptions of their schemas.
pub(super) fn described(schema: &Value, refused: &[&str]) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let described = |(name, value): (&String, &Value)| {
        (name.clone(), at_schemas(name, value, &mut |inner| described(inner, refused)))
    };
    let mut out: Map<String, Value> = members.iter().map(described).collect();
    let hints: Vec<String> = members
        .iter()
        .filter(|(name, _)| refused.contains(&name.as_str()))
        .filter_map(|(name, value)| hint(name, value))
        .collect();
    if hints.is_empty() {
        return Value::Object(out);
    }
    let hints = format!("({})", hints.join(", "));
    let text = match members.get("description").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        Some(text) => format!("{text} {hints}"),
        None => hints,
    };
    out.insert("description".into(), text.into());
    Value::Object(out)
}

/// Returns a limit in words, or `None` if the keyword is no limit that a model can meet.
fn hint(keyword: &str, value: &Value) -> Option<String> {
    let count = |unit: &str| {
        let n = value.as_u64()?;
        Some(if n == 1 { format!("1 {unit}") } else { format!("{n} {unit}s") })
    };
    let number = || value.is_number().then_some(value);
    Some(match keyword {
        "minimum" => format!("at least {}", number()?),
        "maximum" => format!("at most {}", number()?),
        "multipleOf" => format!("a multiple of {}", number()?),
        "minLength" => format!("at least {}", count("character")?),
        "maxLength" => format!("at most {}", count("character")?),
        "minItems" => format!("at least {}", count("item")?),
        "maxItems" => format!("at most {}", count("item")?),
        "minContains" => format!("at least {}", count("matching item")?),
        "maxContains" => format!("at most {}", count("matching item")?),
        "minProperties" => format!("at least {}", count("member")?),
        "maxProperties" => format!("at most {}", count("member")?),
        "uniqueItems" if *value == true => "no item twice".to_owned(),
        "pattern" => format!("matches the regular expression {}", value.as_str()?),
        "format" => format!("format {}", value.as_str()?),
        _ => return None,
    })
}
