//! Validates the arguments of a tool call, with errors that a model can learn from.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use pinch_stdx::json::{self, number};
use serde_json::{Map, Value};

use super::Schema;
use super::coerce::coerce;

/// Invalid arguments. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct ArgumentsError {
    /// The violations and their locations, and the received arguments.
    pub text: String,
}

/// Validates arguments against a schema and returns them, coerced where the schema is unambiguous. Defaults are not filled in, and unknown
/// members stay unless the schema forbids them.
///
/// # Errors
/// Returns [`ArgumentsError`] if they are invalid.
pub fn validate_tool_arguments(
    tool: &str,
    schema: &Schema,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, ArgumentsError> {
    let received = Value::Object(arguments.clone());
    let Some(validator) = schema.whole() else { return Ok(arguments.clone()) };
    if validator.is_valid(&received) {
        return Ok(arguments.clone());
    }
    let mut changed = received.clone();
    coerce(schema, &mut changed);
    let mut lines = Violations::default();
    for error in validator.iter_errors(&changed) {
        lines.add(&error);
    }
    match changed {
        Value::Object(object) if lines.0.is_empty() => Ok(object),
        _ => {
            let dump = json::to_pretty(&received).unwrap_or_default();
            let lines = lines.render();
            Err(ArgumentsError {
                text: format!("Validation failed for tool \"{tool}\":\n{lines}\n\nReceived arguments:\n{dump}"),
            })
        }
    }
}

/// A violation at one location.
#[derive(PartialEq)]
enum Violation {
    Text(String),
    /// Missing members; all of one object are reported in one line.
    Missing(Vec<String>),
}

/// Locations and their violations, in order, each once.
#[derive(Default)]
struct Violations(Vec<(Vec<String>, Violation)>);

impl Violations {
    fn add(&mut self, error: &ValidationError<'_>) {
        let at = steps(error.instance_path().as_str());
        match error.kind() {
            ValidationErrorKind::Required { property } if !error.schema_path().as_str().contains("dependent") => {
                let name = property.as_str().unwrap_or_default().to_owned();
                let known = self
                    .0
                    .iter_mut()
                    .find(|(place, complaint)| *place == at && matches!(complaint, Violation::Missing(_)));
                match known {
                    Some((_, Violation::Missing(names))) if !names.contains(&name) => names.push(name),
                    Some(_) => {}
                    None => self.0.push((at, Violation::Missing(vec![name]))),
                }
                return;
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                context.iter().flatten().for_each(|inner| self.add(inner));
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    let place = at.iter().cloned().chain([name.clone()]).collect();
                    self.push(place, "schema is false".into());
                }
            }
            _ => {}
        }
        let holder = holder_of_additional(&at, error.schema_path().as_str());
        self.push(at, message(error));
        if let Some(holder) = holder {
            self.push(holder, "must not have additional properties".into());
        }
    }

    fn push(&mut self, at: Vec<String>, text: String) {
        let line = (at, Violation::Text(text));
        if !self.0.contains(&line) {
            self.0.push(line);
        }
    }

    fn render(&self) -> String {
        let line = |(at, complaint): &(Vec<String>, Violation)| {
            let mut at = at.clone();
            let text = match complaint {
                Violation::Text(text) => text.clone(),
                Violation::Missing(names) => {
                    at.extend(names.first().cloned());
                    format!("must have required properties {}", names.join(", "))
                }
            };
            // In pi's notation, a slash inside a name becomes a dot too.
            let at = at.join(".").replace('/', ".");
            format!("  - {}: {text}", if at.is_empty() { "root" } else { &at })
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Splits a JSON pointer into steps.
fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// If a value failed the schema for additional members, returns the object that contains it, which counts as wrong too.
fn holder_of_additional(at: &[String], schema_path: &str) -> Option<Vec<String>> {
    let path = steps(schema_path);
    let mut n_down = 0;
    let mut is_inside = false;
    let mut steps = path.iter().peekable();
    while let Some(step) = steps.next() {
        match step.as_str() {
            "properties" | "patternProperties" | "prefixItems" => {
                steps.next();
                n_down += usize::from(is_inside);
            }
            "items" => {
                // A list of schemas: the next step is the index.
                steps.next_if(|next| next.parse::<usize>().is_ok());
                n_down += usize::from(is_inside);
            }
            "additionalProperties" if steps.peek().is_some() => {
                is_inside = true;
                n_down += 1;
            }
            _ => {}
        }
    }
    let n_up = at.len().checked_sub(n_down)?;
    is_inside.then(|| at[..n_up].to_vec())
}

fn message(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let count = |less: &str, limit: u64, what: &str| format!("must not have {less} than {limit} {what}");
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(wanted) } => format!("must be {wanted}"),
        Kind::Type { kind: TypeKind::Multiple(many) } => {
            let names: Vec<String> = many.iter().map(|one| one.to_string()).collect();
            format!("must be either {}", names.join(" or "))
        }
        Kind::Enum { .. } => "must be equal to one of the allowed values".into(),
        Kind::Constant { .. } => "must be equal to constant".into(),
        Kind::Minimum { limit } => format!("must be >= {}", json::to_string(limit).unwrap_or_default()),
        Kind::Maximum { limit } => format!("must be <= {}", json::to_string(limit).unwrap_or_default()),
        Kind::ExclusiveMinimum { limit } => format!("must be > {}", json::to_string(limit).unwrap_or_default()),
        Kind::ExclusiveMaximum { limit } => format!("must be < {}", json::to_string(limit).unwrap_or_default()),
        Kind::MultipleOf { multiple_of } => format!("must be multiple of {}", number::format(*multiple_of)),
        Kind::MinLength { limit } => count("fewer", *limit, "characters"),
        Kind::MaxLength { limit } => count("more", *limit, "characters"),
        Kind::MinItems { limit } => count("fewer", *limit, "items"),
        Kind::MaxItems { limit } => count("more", *limit, "items"),
        Kind::MinProperties { limit } => count("fewer", *limit, "properties"),
        Kind::MaxProperties { limit } => count("more", *limit, "properties"),
        Kind::UniqueItems => "must not have duplicate items".into(),
        Kind::Pattern { pattern } => format!("must match pattern \"{pattern}\""),
        Kind::Format { format } => format!("must match format \"{format}\""),
        Kind::AdditionalProperties { .. } => "must not have additional properties".into(),
        Kind::UnevaluatedProperties { .. } => "must not have unevaluated properties".into(),
        Kind::FalseSchema => "schema is false".into(),
        Kind::AnyOf { .. } => "must match a schema in anyOf".into(),
        Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => "must match exactly one schema in oneOf".into(),
        Kind::Not { .. } => "must not be valid".into(),
        Kind::Contains => "must contain at least 1 valid item".into(),
        Kind::PropertyNames { error } => format!("property names {} are invalid", error.instance()),
        Kind::Required { property } => format!("must have properties {}", property.as_str().unwrap_or_default()),
        // The library's own message for the rest, which is fine as prose for the model.
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
