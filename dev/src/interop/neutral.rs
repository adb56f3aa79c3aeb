//! What two programs say, without what is different each time, and in what the two differ.

use std::collections::HashMap;

use anyhow::Context;
use pinch_testing::cases::program::places::Places;
use pinch_testing::cases::shape;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

/// Differences of one comparison that are looked at.
const MAX_DIFFERENCES: usize = 200;
/// Characters that are shown of a value.
const MAX_SHOWN: usize = 160;

/// Takes out of a program's words what is different each time. Ids become the numbers of their first appearance.
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

    /// From the directories' names: all of them lie beside one another.
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

    /// A text without places, times and ids.
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

    /// Begins to number ids anew.
    pub(super) fn forget_ids(&mut self) {
        self.ids.clear();
    }

    fn id(&mut self, id: &str) -> String {
        let next = self.ids.len() + 1;
        format!("$id{}", self.ids.entry(id.to_owned()).or_insert(next))
    }

    /// A value without any of it. The order of members does not matter: ids are numbered by the members' names.
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
        // An entry's own id comes before those it names, and lists after the members next to them.
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

/// The sections of a system message by name: their wording is each program's own.
fn section_names(sections: &Value) -> Value {
    let name =
        |(name, text): (&String, &Value)| (name.clone(), if text.is_string() { json!("$text") } else { text.clone() });
    sections.as_object().map_or_else(|| sections.clone(), |sections| sections.iter().map(name).collect())
}

/// A place where two values differ, and how.
pub(super) struct ValueDifference {
    /// Names and positions with slashes before them.
    pub(super) at: String,
    pub(super) how: String,
}

/// Where pinch differs. Members that only later versions of pi have do not count where pi lacks them.
pub(super) fn differences(theirs: &Value, ours: &Value) -> Vec<ValueDifference> {
    let (theirs, ours) = shape::compared(&named_tools(theirs), ours.clone());
    let mut found = Vec::new();
    differ("", &theirs, &ours, &mut found);
    found
}

/// pi's own tools by their names, as the other side has them.
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
                    // Both say how long it took.
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

/// The beginning of a value as JSON.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A difference that is known.
pub(super) struct KnownDifference {
    /// Where it shows: the name of a step or scenario, or `*`.
    pub(super) step: &'static str,
    /// The place: names with slashes before them, `*` for any one. What lies below belongs to it.
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

/// What is known to differ, and what of it has shown.
pub(super) struct KnownList {
    list: Vec<&'static KnownDifference>,
    shown: Vec<bool>,
}

impl KnownList {
    /// Differences that are in several lists.
    pub(super) fn new(lists: &[&'static [KnownDifference]]) -> Self {
        let list: Vec<&'static KnownDifference> = lists.iter().copied().flatten().collect();
        Self { shown: vec![false; list.len()], list }
    }

    /// The difference that is new, and else the reasons of those that are known.
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

    /// What was known and has not shown.
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
