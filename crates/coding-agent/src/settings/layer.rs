//! A settings document: its content, and its valid values.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::keys::{self, ValueType};
use super::moves;
use crate::document::{self, Problem};

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsScope {
    /// The user's own, for all projects.
    Global,
    /// The project's.
    Project,
}

impl fmt::Display for SettingsScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Project => "project",
        })
    }
}

/// A problem with a settings document, or with writing it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
#[non_exhaustive]
pub struct SettingsProblem {
    /// Whose settings.
    pub scope: SettingsScope,
    /// What is wrong.
    pub problem: Problem,
    /// Whether the whole document is ignored or could not be written, rather than a single value ignored.
    pub is_fatal: bool,
}

/// One document.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// Path of the document; `None` in memory.
    pub(super) path: Option<PathBuf>,
    /// All of its content, in the current format.
    pub(super) raw: Map<String, Value>,
    /// Whether it could not be read, so that it must not be written.
    pub(super) is_broken: bool,
    /// Whether it could not be read and mentions a setting that restricts sessions.
    pub(super) may_restrict: bool,
}

impl Layer {
    /// Reads a document. An unreadable one counts as empty.
    pub(super) fn read(path: &Path) -> (Self, Option<Problem>) {
        let (raw, problem) = match document::read_object(path) {
            Ok(mut raw) => {
                moves::update(&mut raw);
                (raw, None)
            }
            Err(problem) => (Map::new(), Some(problem)),
        };
        let may_restrict = problem.is_some() && names_restriction(path);
        (Self { path: Some(path.to_owned()), raw, is_broken: problem.is_some(), may_restrict }, problem)
    }

    /// Creates a document in memory.
    pub(super) fn in_memory(mut raw: Map<String, Value>) -> Self {
        moves::update(&mut raw);
        Self { path: None, raw, is_broken: false, may_restrict: false }
    }

    /// Returns its valid values, and the problems.
    pub(super) fn checked(&self, scope: SettingsScope) -> (Map<String, Value>, Vec<SettingsProblem>) {
        let file = self.path.as_deref().unwrap_or_else(|| Path::new("settings.json"));
        let mut problems = Vec::new();
        let mut wrong = |at: &str, what: String, remedy: &str| {
            let problem = Problem::new(file, what).at(at).remedy(remedy);
            problems.push(SettingsProblem { scope, problem, is_fatal: false });
        };
        let mut good = self.raw.clone();
        let mut wrong_sections: Vec<&str> = Vec::new();
        for key in keys::all() {
            if let Some(section) = section_in_the_way(&self.raw, key.path) {
                let rest = match key.value_type {
                    ValueType::StrictWord(_) if !(key.user_only && scope == SettingsScope::Project) => {
                        key.value_type.rest_of(&Value::Null)
                    }
                    _ => Value::Null,
                };
                if !wrong_sections.contains(&section) {
                    wrong_sections.push(section);
                    wrong(section, "must be an object".into(), remedy(&rest));
                    keys::put(&mut good, section, Value::Null);
                }
                if !rest.is_null() {
                    keys::put(&mut good, key.path, rest);
                }
                continue;
            }
            match keys::get(&self.raw, key.path) {
                None => {}
                Some(Value::Null) => keys::put(&mut good, key.path, Value::Null),
                Some(_) if key.user_only && scope == SettingsScope::Project => {
                    wrong(key.path, "cannot be set by a project".into(), "Put it into your own settings.json");
                    keys::put(&mut good, key.path, Value::Null);
                }
                Some(value) => match key.value_type.read(value) {
                    Ok(value) => keys::put(&mut good, key.path, value),
                    Err(wanted) => {
                        let rest = key.value_type.rest_of(value);
                        wrong(key.path, format!("must be {wanted}"), remedy(&rest));
                        keys::put(&mut good, key.path, rest);
                    }
                },
            }
        }
        (good, problems)
    }
}

/// Returns the remedy for an invalid value.
fn remedy(rest: &Value) -> &'static str {
    match rest {
        Value::Null => "It is ignored",
        Value::String(_) => "The strictest value is used",
        _ => "The invalid parts are ignored",
    }
}

/// Settings that restrict a session's tools, variables or files.
const RESTRICTIONS: [&str; 3] = ["\"defaultTools\"", "\"shellEnvironment\"", "\"sandbox\""];

/// Returns whether a document that is not valid JSON mentions a restriction.
fn names_restriction(path: &Path) -> bool {
    let text = document::read_text(path).ok().flatten();
    text.is_some_and(|text| RESTRICTIONS.iter().any(|name| text.contains(name)))
}

/// Returns the first value on a path that is not an object.
fn section_in_the_way<'a>(root: &Map<String, Value>, path: &'a str) -> Option<&'a str> {
    path.match_indices('.')
        .map(|(at, _)| &path[..at])
        .find(|section| keys::get(root, section).is_some_and(|value| !value.is_object() && !value.is_null()))
}

/// Merges a document over another one: objects member by member, other values as a whole.
pub(super) fn lay_over(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    // A list of tools may modify the one below it.
    let is_change = |list: &Value| {
        let signed = |one: &Value| one.as_str().is_some_and(|name| name.trim().starts_with(['+', '-']));
        list.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(signed))
    };
    for (name, value) in over {
        match (under.get_mut(name), value) {
            (Some(Value::Object(under)), Value::Object(over)) => lay_over(under, over),
            (Some(Value::Array(under)), Value::Array(over)) if name == "defaultTools" && is_change(value) => {
                under.extend(over.iter().cloned());
            }
            _ => drop(under.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn check(raw: Value, good: Value, places: &[&str]) {
        let (found, problems) = Layer::in_memory(object(raw)).checked(SettingsScope::Project);
        assert_eq!(Value::Object(found), good);
        assert_eq!(problems.iter().filter_map(|p| p.problem.at.as_deref()).collect::<Vec<_>>(), places);
    }

    #[test]
    fn invalid_values_are_ignored() {
        check(
            json!({"theme": 5, "unknown": [1], "retry": 7, "quietStartup": "header", "httpProxy": "x", "skills": [1],
                   "terminal": {"imageWidthCells": 7.9, "other": 1, "showImages": null}, "httpIdleTimeoutMs": "disabled"}),
            json!({"unknown": [1], "quietStartup": "header", "terminal": {"imageWidthCells": 7, "other": 1},
                   "httpIdleTimeoutMs": 0}),
            &["theme", "retry", "httpProxy", "skills"],
        );
    }

    #[test]
    fn neither_a_mistake_nor_a_project_disables_a_sandbox() {
        let strictest = json!({"sandbox": {"backend": "auto", "workspaceAccess": "ro", "network": "off"}});
        for (raw, expect) in [
            (json!({"sandbox": {"backend": "dokcer", "workspaceAccess": 1, "network": "maybe"}}), strictest.clone()),
            (json!({"sandbox": true}), strictest),
            (json!({"sandbox": {"backend": "none"}}), json!({"sandbox": {"backend": "none"}})),
        ] {
            let (found, _) = Layer::in_memory(object(raw.clone())).checked(SettingsScope::Global);
            assert_eq!(Value::Object(found), expect, "{raw}");
        }
        for raw in [json!({"sandbox": {"backend": "none", "extraRoots": ["/"]}}), json!({"sandbox": false})] {
            let (found, problems) = Layer::in_memory(object(raw.clone())).checked(SettingsScope::Project);
            let left = found.get("sandbox").and_then(Value::as_object).is_none_or(Map::is_empty);
            assert!(left && !problems.is_empty(), "{raw}: {found:?}");
        }
    }

    #[test]
    fn documents_are_merged_by_scope() {
        let mut root = object(json!({"a": {"b": 1, "c": [1]}, "defaultTools": ["read"], "d": {"x": 1}}));
        lay_over(&mut root, &object(json!({"a": {"c": [2]}, "defaultTools": ["+ls"], "d": 5})));
        assert_eq!(
            Value::Object(root.clone()),
            json!({"a": {"b": 1, "c": [2]}, "defaultTools": ["read", "+ls"], "d": 5})
        );
        lay_over(&mut root, &object(json!({"defaultTools": ["bash"]})));
        assert_eq!(root["defaultTools"], json!(["bash"]));
    }
}
