//! Reads `keybindings.json`, in which users assign keys to actions.

use std::path::Path;

use pinch_coding_agent::document::{Problem, value_of};
use pinch_coding_agent::startup_moves::keybindings::migrate;
use serde_json::Value;

use super::action::KeyAction;
use super::chord::KeyChord;

/// Returns the assigned keys of actions, and the problems in the file.
pub(super) fn read(file: &Path, text: &str) -> (Vec<(KeyAction, Vec<KeyChord>)>, Vec<Problem>) {
    if text.trim().is_empty() {
        return (Vec::new(), Vec::new());
    }
    let object = match value_of(file, text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => {
            let problem = Problem::new(file, "must be a JSON object");
            return (Vec::new(), vec![problem.remedy("Write {\"tui.input.submit\": \"ctrl+s\"}, for example")]);
        }
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    let mut bindings = Vec::new();
    let mut problems = Vec::new();
    for (id, value) in migrate(&object).0 {
        if id == "$schema" {
            continue;
        }
        let problem = |what: String| Problem::new(file, what).at(&*id);
        match KeyAction::ALL.iter().find(|action| action.id() == id) {
            None => problems.push(problem("is not an action".to_owned()).remedy(near(&id))),
            Some(action) => bindings.extend(chords(&value, problem, &mut problems).map(|chords| (*action, chords))),
        }
    }
    (bindings, problems)
}

/// Returns the keys of one entry; `None` if none of them can be used, so that the defaults stay.
fn chords(value: &Value, problem: impl Fn(String) -> Problem, problems: &mut Vec<Problem>) -> Option<Vec<KeyChord>> {
    let texts = match value {
        Value::String(_) => std::slice::from_ref(value),
        Value::Array(texts) => texts,
        _ => {
            problems.push(problem(format!("{value} is neither a key nor a list of keys")).remedy(EXAMPLE));
            return None;
        }
    };
    let mut chords = Vec::new();
    for text in texts {
        match text.as_str().map(str::parse::<KeyChord>) {
            Some(Ok(chord)) if chords.contains(&chord) => {}
            Some(Ok(chord)) => chords.push(chord),
            _ => problems.push(problem(format!("{text} is not a key")).remedy(EXAMPLE)),
        }
    }
    (texts.is_empty() || !chords.is_empty()).then_some(chords)
}

const EXAMPLE: &str = "Write a key such as \"ctrl+x\", a list such as [\"up\", \"ctrl+p\"], or [] for no key";

/// Suggests an id with the same last component.
fn near(id: &str) -> String {
    let last = |id: &str| id.rsplit('.').next().unwrap_or_default().to_lowercase();
    let meant = KeyAction::ALL.iter().find(|action| last(action.id()) == last(id));
    match meant {
        Some(action) => format!("Did you mean {}?", action.id()),
        None => "Remove it, or correct its name; /hotkeys lists all actions".to_owned(),
    }
}
