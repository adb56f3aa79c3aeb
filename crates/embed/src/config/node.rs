//! A member of a document with its path: reads values and reports those of the wrong type.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use pinch_coding_agent::document::Problem;
use serde_json::{Map, Value};

/// A member, present or not.
#[derive(Clone)]
pub(super) struct Node<'a> {
    value: Option<&'a Value>,
    path: String,
    file: &'a Path,
    used: &'a UsedKeys,
}

/// The members of a document that have been read.
#[derive(Debug, Default)]
pub(super) struct UsedKeys(RefCell<BTreeSet<String>>);

impl UsedKeys {
    fn add(&self, path: &str) {
        self.0.borrow_mut().insert(path.to_owned());
    }

    /// Returns the members of a document that nothing has read, at the highest level: `gateway`, not `gateway.port`.
    pub(super) fn ignored(&self, document: &Map<String, Value>) -> Vec<String> {
        let used = self.0.borrow();
        let mut ignored = Vec::new();
        for (name, value) in document {
            unused_below(name, value, &used, &mut ignored);
        }
        ignored
    }
}

fn unused_below(path: &str, value: &Value, used: &BTreeSet<String>, ignored: &mut Vec<String>) {
    if used.contains(path) {
        return;
    }
    let is_within = |start: String| used.range(start.clone()..).next().is_some_and(|next| next.starts_with(&start));
    if !is_within(format!("{path}.")) && !is_within(format!("{path}[")) {
        ignored.push(path.to_owned());
        return;
    }
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| unused_below(&format!("{path}.{name}"), value, used, ignored));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, value)| unused_below(&format!("{path}[{at}]"), value, used, ignored));
        }
        _ => {}
    }
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value, file: &'a Path, used: &'a UsedKeys) -> Self {
        Self { value: Some(value), path: String::new(), file, used }
    }

    /// Returns the member with this name.
    pub(super) fn get(&self, name: &str) -> Self {
        let value = self.value.and_then(|value| value.get(name)).filter(|value| !value.is_null());
        Self { value, path: self.join(name), file: self.file, used: self.used }
    }

    fn join(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns its path in the document.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_there(&self) -> bool {
        self.value.is_some()
    }

    /// Returns its value and marks all of it as read.
    pub(super) fn value(&self) -> Option<&'a Value> {
        self.used.add(&self.path);
        self.value
    }

    pub(super) fn is_object(&self) -> bool {
        self.value.is_some_and(Value::is_object)
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_some_and(Value::is_string)
    }

    pub(super) fn is_flag(&self) -> bool {
        self.value.is_some_and(Value::is_boolean)
    }

    pub(super) fn text(&self, problems: &mut Vec<Problem>) -> Option<String> {
        self.read_whole(problems, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn flag(&self, problems: &mut Vec<Problem>) -> Option<bool> {
        self.read_whole(problems, "true or false", Value::as_bool)
    }

    pub(super) fn number(&self, problems: &mut Vec<Problem>) -> Option<f64> {
        self.read_whole(problems, "a number", Value::as_f64)
    }

    /// Reads a length of time in seconds.
    pub(super) fn seconds(&self, problems: &mut Vec<Problem>) -> Option<f64> {
        let seconds = |value: &Value| value.as_f64().filter(|seconds| *seconds >= 0.0);
        self.read_whole(problems, "a non-negative number of seconds", seconds)
    }

    /// Reads a non-negative integer.
    pub(super) fn count(&self, problems: &mut Vec<Problem>) -> Option<u64> {
        let whole = |value: &Value| value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64));
        self.read_whole(problems, "a non-negative number", whole)
    }

    pub(super) fn object(&self, problems: &mut Vec<Problem>) -> Option<&'a Map<String, Value>> {
        self.read(problems, "an object", Value::as_object)
    }

    /// Reads the members of an object.
    pub(super) fn members(&self, problems: &mut Vec<Problem>) -> Vec<(&'a str, Self)> {
        let Some(object) = self.object(problems) else { return Vec::new() };
        if object.is_empty() {
            self.used.add(&self.path);
        }
        let member = |(name, value): (&'a String, &'a Value)| {
            (name.as_str(), Self { value: Some(value), path: self.join(name), file: self.file, used: self.used })
        };
        object.iter().map(member).collect()
    }

    /// Reads the items of an array.
    pub(super) fn items(&self, problems: &mut Vec<Problem>) -> Vec<Self> {
        let Some(list) = self.read(problems, "a list", Value::as_array) else { return Vec::new() };
        if list.is_empty() {
            self.used.add(&self.path);
        }
        let item = |(at, value)| Self {
            value: Some(value),
            path: format!("{}[{at}]", self.path),
            file: self.file,
            used: self.used,
        };
        list.iter().enumerate().map(item).collect()
    }

    /// Reads the strings of an array and reports other items.
    pub(super) fn texts(&self, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
        self.is_there().then(|| self.items(problems).iter().filter_map(|item| item.text(problems)).collect())
    }

    /// Reads one of a set of keywords.
    pub(super) fn word<T>(
        &self,
        problems: &mut Vec<Problem>,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let word = self.text(problems)?;
        let parsed = parse(&word);
        if parsed.is_none() {
            problems.push(
                self.problem(format!("{word:?} is not one of {}", words.join(", ")))
                    .remedy("Correct it; until then it is ignored"),
            );
        }
        parsed
    }

    /// Returns a problem with this member.
    pub(super) fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::new(self.file, what).at(self.path.clone())
    }

    /// Returns a problem with the member at a path from the root of the document.
    pub(super) fn problem_at(&self, path: &str, what: impl Into<String>) -> Problem {
        Problem::new(self.file, what).at(path)
    }

    fn read_whole<T>(
        &self,
        problems: &mut Vec<Problem>,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        self.used.add(&self.path);
        self.read(problems, kind, read)
    }

    fn read<T>(&self, problems: &mut Vec<Problem>, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.value?;
        let found = read(value);
        if found.is_none() {
            let is = match value {
                Value::Null => "nothing",
                Value::Bool(_) => "true or false",
                Value::Number(_) => "a number",
                Value::String(_) => "a text",
                Value::Array(_) => "a list",
                Value::Object(_) => "an object",
            };
            problems
                .push(self.problem(format!("must be {kind}, not {is}")).remedy("Correct it; until then it is ignored"));
        }
        found
    }
}
