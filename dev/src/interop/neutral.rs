//! Output of two programs without what differs each time, and the differences between them.

use std::collections::HashMap;

use anyhow::Context;
use pinch_testing::cases::program::places::Places;
use pinch_testing::cases::shape;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

/// Maximum number of differences examined per comparison.
const MAX_DIFFERENCES: usize = 200;
/// Maximum number of characters shown of a value.
const MAX_SHOWN: usize = 160;

/// Removes what differs each time from a program's output. IDs become the numbers of their first appearance.
pub(super) struct Neutral {
    places: Vec<(String, &'static str)>,
    times: Regex,
    uuids: Regex,
    logs: Regex,
    ids: HashMap<String, usize>,
}

impl Neutral {
    pub(super) fn new(places: &Places) -> anyhow::Result<Self> {
        Self::of(&places.cwd.to_string_lossy(), &places.agent.to_string_lossy(), places.port)
    }

    /// Created from the names of the directories, which are all siblings.
    pub(super) fn of(cwd: &str, agent: &str, port: u16) -> anyhow::Result<Self> {
        let folder = cwd.strip_suffix("/work").context("an unusual folder")?;
        let encoded = |path: &str| format!("--{}--", path.trim_start_matches('/').replace('/', "-"));
        let places = vec![
            (encoded(cwd), "$CWD_DIR"),
            (cwd.to_owned(), "$CWD"),
            (agent.to_owned(), "$AGENT_DIR"),
            (folder.to_owned(), "$FOLDER"),
            (format!("127.0.0.1:{port}"), "$SERVER"),
        ];
        Ok(Self {
            places,
            times: Regex::new(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}Z")?,
            uuids: Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")?,
            logs: Regex::new(r"/tmp/(?:pi|pinch)-bash-[0-9a-zA-Z]+\.log")?,
            ids: HashMap::new(),
        })
    }

    /// A text without paths, times and IDs.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, name) in &self.places {
            text = text.replace(place.as_str(), name);
        }
        let text = self.times.replace_all(&text, "$$TIME").into_owned();
        let text = self.logs.replace_all(&text, "$$LOG").into_owned();
        if text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return self.id(&text);
        }
        let uuids = self.uuids.clone();
        uuids.replace_all(&text, |found: &Captures<'_>| self.id(&found[0])).into_owned()
    }

    /// Restarts the numbering of IDs.
    pub(super) fn forget_ids(&mut self) {
        self.ids.clear();
    }

    fn id(&mut self, id: &str) -> String {
        let next = self.ids.len() + 1;
        format!("$id{}", self.ids.entry(id.to_owned()).or_insert(next))
    }

    /// A value without paths, times and IDs. The order of fields does not matter: IDs are numbered in order of field names.
    pub(super) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(list) => list.iter().map(|value| self.value(value)).collect(),
            Value::Object(members) => self.members(members),
            other => other.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>) -> Value {
        let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
        // An entry's own ID comes before the IDs it refers to, and lists come after the other fields.
        sorted.sort_by_key(|(name, value)| (name.as_str() != "id", value.is_array() || value.is_object(), *name));
        let is_system = members.get("role").is_some_and(|role| role == "system");
        let member = |(name, value): (&String, &Value)| {
            let value = match name.as_str() {
                "timestamp" | "labelTimestamp" if value.is_number() || value.is_string() => json!("$TIME"),
                "sections" if is_system => section_names(value),
                _ => self.value(value),
            };
            (name.clone(), value)
        };
        Value::Object(sorted.into_iter().map(member).collect())
    }
}

/// The sections of a system message by name: their wording is specific to each program.
fn section_names(sections: &Value) -> Value {
    let name =
        |(name, text): (&String, &Value)| (name.clone(), if text.is_string() { json!("$text") } else { text.clone() });
    sections.as_object().map_or_else(|| sections.clone(), |sections| sections.iter().map(name).collect())
}

/// A difference between two values, and its place.
pub(super) struct ValueDifference {
    /// Names and indexes, each preceded by a slash.
    pub(super) at: String,
    pub(super) how: String,
}

/// The differences of pinch's value. Fields that only later versions of pi have are ignored if pi lacks them.
pub(super) fn differences(theirs: &Value, ours: &Value) -> Vec<ValueDifference> {
    let (theirs, ours) = shape::compared(&named_tools(theirs), ours.clone());
    let mut found = Vec::new();
    differ("", &theirs, &ours, &mut found);
    found
}

/// pi's built-in tools by name, as the other side lists them.
fn named_tools(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(named_tools).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let value = match (name.as_str(), value.as_array()) {
                    ("toolsAdded", Some(tools)) => {
                        let name = |tool: &Value| format!("$tool {}", tool["name"].as_str().unwrap_or_default());
                        tools.iter().map(|tool| Value::from(name(tool))).collect()
                    }
                    _ => named_tools(value),
                };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

fn differ(at: &str, theirs: &Value, ours: &Value, found: &mut Vec<ValueDifference>) {
    if found.len() >= MAX_DIFFERENCES {
        return;
    }
    let mut note = |at: String, theirs: &dyn Fn() -> String, ours: &dyn Fn() -> String| {
        found.push(ValueDifference { at, how: format!("pi {}, pinch {}", theirs(), ours()) });
    };
    match (theirs, ours) {
        (Value::Object(t), Value::Object(o)) => {
            for (name, value) in t {
                let at = format!("{at}/{name}");
                match o.get(name) {
                    // Both report a duration.
                    Some(other) if name == "durationMs" && value.is_number() && other.is_number() => {}
                    Some(other) => differ(&at, value, other, found),
                    None => found.push(ValueDifference { at, how: format!("pi {}, pinch nothing", shown(value)) }),
                }
            }
            for (name, value) in o.iter().filter(|(name, _)| !t.contains_key(*name)) {
                found.push(ValueDifference {
                    at: format!("{at}/{name}"),
                    how: format!("pi nothing, pinch {}", shown(value)),
                });
            }
        }
        (Value::Array(t), Value::Array(o)) => {
            for (n, (theirs, ours)) in t.iter().zip(o).enumerate() {
                differ(&format!("{at}/{n}"), theirs, ours, found);
            }
            if t.len() != o.len() {
                found.push(ValueDifference {
                    at: at.to_owned(),
                    how: format!("pi has {} elements, pinch {}", t.len(), o.len()),
                });
            }
        }
        _ if same_number(theirs, ours) || theirs == ours => {}
        _ => note(at.to_owned(), &|| shown(theirs), &|| shown(ours)),
    }
}

fn same_number(a: &Value, b: &Value) -> bool {
    matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
}

/// The start of a value as JSON.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A known difference.
pub(super) struct KnownDifference {
    /// Where it occurs: the name of a step or scenario, or `*`.
    pub(super) step: &'static str,
    /// The place: names, each preceded by a slash, with `*` for any name. It includes everything below.
    pub(super) at: &'static str,
    pub(super) reason: &'static str,
}

impl KnownDifference {
    fn covers(&self, step: &str, at: &str) -> bool {
        let mut parts = at.split('/');
        (self.step == "*" || self.step == step)
            && self.at.split('/').all(|known| parts.next().is_some_and(|part| known == "*" || known == part))
    }
}

/// The known differences, and which of them occurred.
pub(super) struct KnownList {
    list: Vec<&'static KnownDifference>,
    shown: Vec<bool>,
}

impl KnownList {
    /// Combines several lists of differences.
    pub(super) fn new(lists: &[&'static [KnownDifference]]) -> Self {
        let list: Vec<&'static KnownDifference> = lists.iter().copied().flatten().collect();
        Self { shown: vec![false; list.len()], list }
    }

    /// The first new difference, otherwise the reasons of the known ones.
    pub(super) fn judge(
        &mut self,
        step: &str,
        found: Vec<ValueDifference>,
    ) -> Result<Vec<&'static str>, ValueDifference> {
        let mut reasons = Vec::new();
        for difference in found {
            let Some(n) = self.list.iter().position(|known| known.covers(step, &difference.at)) else {
                return Err(difference);
            };
            self.shown[n] = true;
            if !reasons.contains(&self.list[n].reason) {
                reasons.push(self.list[n].reason);
            }
        }
        Ok(reasons)
    }

    /// Known differences that did not occur.
    pub(super) fn gone(&self) -> Vec<&'static KnownDifference> {
        self.list.iter().zip(&self.shown).filter(|(_, shown)| !**shown).map(|(known, _)| *known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_different_each_time_is_taken_out() {
        let mut neutral = Neutral::of("/tmp/x/work", "/tmp/x/agent", 7).unwrap();
        let said = json!({"parentId": "0000abcd", "id": "0000abce", "timestamp": 5, "path": "/tmp/x/work/a /tmp/x/agent",
            "file": "2026-01-01T00-00-00-000Z_01900000-0000-7000-8000-0000000000aa.jsonl"});
        let expected = json!({"id": "$id1", "file": "$TIME_$id2.jsonl", "parentId": "$id3", "path": "$CWD/a $AGENT_DIR",
            "timestamp": "$TIME"});
        assert_eq!(neutral.value(&said), expected);
    }

    #[test]
    fn all_differences_are_found_and_known_ones_are_told_apart() {
        const KNOWN: &[KnownDifference] = &[
            KnownDifference { step: "s", at: "/list/*/x", reason: "known" },
            KnownDifference { step: "*", at: "/never", reason: "gone" },
        ];
        let theirs = json!({"list": [{"x": 1, "y": 1.0}, {"x": 2}], "only": 1});
        let ours = json!({"list": [{"x": 2, "y": 1}, {"x": {"deep": 1}}], "own": 1});
        let found = differences(&theirs, &ours);
        let places: Vec<&str> = found.iter().map(|difference| difference.at.as_str()).collect();
        assert_eq!(places, ["/list/0/x", "/list/1/x", "/only", "/own"]);
        let mut known = KnownList::new(&[KNOWN]);
        assert_eq!(known.judge("s", found).err().map(|new| new.at).as_deref(), Some("/only"));
        let known_only = differences(&json!({"list": [{"x": 1}]}), &json!({"list": [{"x": 2}]}));
        assert_eq!(known.judge("s", known_only).ok(), Some(vec!["known"]));
        assert_eq!(known.gone().iter().map(|known| known.at).collect::<Vec<_>>(), ["/never"]);
        let elsewhere = differences(&json!({"list": [{"x": 1}]}), &json!({"list": [{"x": 2}]}));
        assert!(known.judge("another step", elsewhere).is_err());
    }
}
