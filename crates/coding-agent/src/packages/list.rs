//! The `packages` list of settings.json.

use std::path::Path;

use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::Value;

use crate::document::{ChangeError, Problem, change_object};

/// A package listed in the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageEntry {
    /// Its source, as written in the settings.
    pub source: String,
    /// Which of its resources are loaded; `None` loads all.
    pub filter: Option<PackageFilter>,
}

/// Which resources of a package are loaded, by type: `None` loads all, an empty list none, otherwise those that match the patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageFilter {
    /// `autoload: false`: loads only what the patterns name. In a project, this modifies the user's entry for the same package, which
    /// otherwise stays in effect.
    pub is_delta: bool,
    /// Extensions.
    pub extensions: Option<Vec<String>>,
    /// Skills.
    pub skills: Option<Vec<String>>,
    /// Prompt templates.
    pub prompts: Option<Vec<String>>,
    /// Themes.
    pub themes: Option<Vec<String>>,
}

impl PackageEntry {
    /// Creates an entry that loads the whole package.
    pub fn whole(source: impl Into<String>) -> Self {
        Self { source: source.into(), filter: None }
    }

    /// Parses the value of `packages`. Invalid items are reported and ignored.
    pub fn list(value: &Value, file: &Path) -> (Vec<Self>, Vec<Problem>) {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        if !value.is_array() && !value.is_null() {
            problems.push(Problem::new(file, "must be a list").at("packages").remedy("It is ignored"));
        }
        for (idx, one) in value.as_array().into_iter().flatten().enumerate() {
            match Self::of(one) {
                Some(entry) => entries.push(entry),
                None => {
                    let text = "must be a source or an object with a source";
                    problems.push(Problem::new(file, text).at(format!("packages[{idx}]")).remedy("It is ignored"));
                }
            }
        }
        (entries, problems)
    }

    /// Parses one item of the list: a source, or an object with one.
    pub fn of(value: &Value) -> Option<Self> {
        let source = source_of(value)?;
        let patterns = |name: &str| {
            let list = value.get(name)?.as_array()?;
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        let filter = value.is_object().then(|| PackageFilter {
            is_delta: value.get("autoload") == Some(&Value::Bool(false)),
            extensions: patterns("extensions"),
            skills: patterns("skills"),
            prompts: patterns("prompts"),
            themes: patterns("themes"),
        });
        Some(Self { source: source.to_owned(), filter })
    }
}

/// Returns the source in an item of the list.
pub(super) fn source_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("source")?.as_str()).filter(|source| !source.trim().is_empty())
}

/// Changes the list in a settings file like [`change_object`], keeping everything else. `change` returns whether there is anything to
/// write; `access` sets the permissions of a new file.
///
/// # Errors
/// [`ChangeError`]; the file is unchanged.
pub fn change_list(
    file: &Path,
    access: Access,
    host: &Host,
    change: impl FnOnce(&mut Vec<Value>) -> bool,
) -> Result<bool, ChangeError> {
    change_object(file, access, host, |object| {
        let mut list = match object.get_mut("packages").map(Value::take) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(Problem::new(file, "must be a list").at("packages")),
        };
        let has_changed = change(&mut list);
        object.insert("packages".into(), list.into());
        Ok(has_changed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_and_filters_are_parsed() {
        let value = json!(["a", {"source": "b", "skills": [], "prompts": ["x*", 1]}, {"skills": []}, 3, " "]);
        let (entries, problems) = PackageEntry::list(&value, Path::new("s.json"));
        let filter =
            PackageFilter { skills: Some(vec![]), prompts: Some(vec!["x*".into()]), ..PackageFilter::default() };
        assert_eq!(entries, [PackageEntry::whole("a"), PackageEntry { source: "b".into(), filter: Some(filter) }]);
        assert_eq!(problems.len(), 3);
        assert_eq!(PackageEntry::list(&json!({}), Path::new("s")).1.len(), 1);
        assert_eq!(PackageEntry::list(&Value::Null, Path::new("s")), (vec![], vec![]));
    }

    #[test]
    fn other_settings_are_kept_and_a_damaged_file_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/settings.json");
        let host = Host::builder().build();
        let push = |list: &mut Vec<Value>| {
            list.push("p".into());
            true
        };
        assert!(change_list(&file, Access::NewPrivate, &host, push).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  \"packages\": [\n    \"p\"\n  ]\n}");
        std::fs::write(&file, r#"{"z": 1e21, "packages": null, "a": {"b": 1}}"#).unwrap();
        assert!(change_list(&file, Access::NewPrivate, &host, push).unwrap());
        let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept, json!({"z": 1e21, "packages": ["p"], "a": {"b": 1}}));
        std::fs::write(&file, "{oops").unwrap();
        assert!(matches!(change_list(&file, Access::NewPrivate, &host, push), Err(ChangeError::Damaged(_))));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{oops");
        assert!(!dir.path().join("new/settings.json.lock").exists());
    }
}
