//! Reading members of sections, with the agent's taking precedence over those of all agents.

use serde_json::{Map, Value};

/// An invalid part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxProblem {
    /// Path in the configuration, e.g. `agents.defaults.sandbox.mode`.
    pub path: String,
    /// What is wrong, and what is used instead.
    pub text: String,
}

/// A section, present or not.
#[derive(Debug)]
pub(super) struct SectionMembers<'a> {
    members: Option<&'a Map<String, Value>>,
    path: String,
    is_broken: bool,
}

impl SectionMembers<'_> {
    pub(super) fn none() -> Self {
        SectionMembers { members: None, path: String::new(), is_broken: false }
    }

    /// Returns whether the value is something other than a section.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns a non-null member and its path.
    pub(super) fn get(&self, key: &str) -> Option<(&Value, String)> {
        let value = self.members?.get(key).filter(|value| !value.is_null())?;
        Some((value, format!("{}.{key}", self.path)))
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Reads sections and collects problems. The first of two levels that has a member takes precedence.
#[derive(Debug, Default)]
pub(super) struct SectionReader {
    pub(super) problems: Vec<SandboxProblem>,
}

impl SectionReader {
    pub(super) fn problem(&mut self, path: &str, text: &str) {
        self.problems.push(SandboxProblem { path: path.to_owned(), text: text.to_owned() });
    }

    /// Reads a section.
    pub(super) fn section<'a>(&mut self, value: &'a Value, path: &str) -> SectionMembers<'a> {
        let members = value.as_object();
        let is_broken = members.is_none() && !value.is_null();
        if is_broken {
            self.problem(path, "expected an object");
        }
        SectionMembers { members, path: path.to_owned(), is_broken }
    }

    /// Reads a section within a section.
    pub(super) fn member<'a>(&mut self, section: &SectionMembers<'a>, key: &str) -> SectionMembers<'a> {
        let value = section.members.and_then(|members| members.get(key)).unwrap_or(&Value::Null);
        let path = format!("{}.{key}", section.path);
        self.section(value, &path)
    }

    /// Reads one of several words. Returns `Err` if the value is something else.
    pub(super) fn word<T>(
        &mut self,
        levels: [&SectionMembers<'_>; 2],
        key: &str,
        parse: fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, ()> {
        let Some((value, path)) = levels.iter().find_map(|level| level.get(key)) else { return Ok(None) };
        match value.as_str().and_then(parse) {
            Some(word) => Ok(Some(word)),
            None => {
                self.problem(&path, &format!("expected {expected}"));
                Err(())
            }
        }
    }

    /// Reads a member, reporting invalid values.
    fn read<T>(
        &mut self,
        levels: [&SectionMembers<'_>; 2],
        key: &str,
        read: impl Fn(&Value) -> Option<T>,
        expected: &str,
    ) -> Option<T> {
        let (value, path) = levels.iter().find_map(|level| level.get(key))?;
        let found = read(value);
        if found.is_none() {
            self.problem(&path, &format!("expected {expected}; the default is used"));
        }
        found
    }

    /// Reads a non-blank string.
    pub(super) fn text(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> Option<String> {
        let text = self.read(levels, key, |value| Some(value.as_str()?.trim().to_owned()), "a string")?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// Reads a boolean.
    pub(super) fn flag(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> Option<bool> {
        self.read(levels, key, Value::as_bool, "true or false")
    }

    /// Reads a non-negative number.
    pub(super) fn number(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> Option<f64> {
        self.read(levels, key, |value| value.as_f64().filter(|number| *number >= 0.0), "a number")
    }

    /// Reads a list of strings.
    pub(super) fn texts(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> Option<Vec<String>> {
        self.read(levels, key, strings, "a list of strings")
    }

    /// Reads a boolean that restricts something. An invalid value restricts it.
    pub(super) fn strict_flag(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> bool {
        let Some((value, path)) = levels.iter().find_map(|level| level.get(key)) else { return false };
        let flag = value.as_bool();
        if flag.is_none() {
            self.problem(&path, "expected true or false; true is used");
        }
        flag.unwrap_or(true)
    }

    /// Reads a list of strings that allows something. An invalid value allows nothing.
    pub(super) fn strict_texts(&mut self, levels: [&SectionMembers<'_>; 2], key: &str) -> Option<Vec<String>> {
        let (value, path) = levels.iter().find_map(|level| level.get(key))?;
        let found = strings(value);
        if found.is_none() {
            self.problem(&path, "expected a list of strings; an empty one is used");
        }
        Some(found.unwrap_or_default())
    }
}
