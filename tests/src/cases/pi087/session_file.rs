//! Cases of kind `session_file`: the session files after a run, and the requests that resulted from them.

use pinch_testing::cases::notation;
use pinch_testing::cases::program::{self, ProgramOutput};
use pinch_testing::cases::shape;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let wanted = if case.case["ours"].is_object() { &case.case["ours"] } else { &case.case["expect"] };
    let what = case.case["valueIs"].as_str();
    let Some(wanted) = wanted.as_object() else { return CaseOutcome::NotImplemented };
    let ran = match program::run(case.file, &case.case["input"]) {
        Ok(ran) => ran,
        Err(why) => return CaseOutcome::Failed(why),
    };
    for (name, expected) in wanted {
        let mut expected = expected.clone();
        ran.put_in(&mut expected);
        let actual = match (name.as_str(), what) {
            ("sessions", _) => Some(sessions(&ran)),
            ("requestCount", _) => Some(ran.requests.len().into()),
            ("filesAfter", _) => Some(ran.files_after.clone()),
            ("output", _) => Some(ran.stdout.as_str().into()),
            ("stderr", _) => Some(ran.stderr.trim().into()),
            ("exitCode", _) => Some(ran.exit_code.into()),
            ("value", Some(what)) => value(what, &expected, &ValueSource { ran: &ran, input: &case.case["input"] }),
            _ => None,
        };
        let Some(actual) = actual else { return CaseOutcome::NotImplemented };
        let (expected, actual) = shape::compared(&expected, actual);
        if let Err(why) = notation::matches(&expected, &actual, "") {
            let stderr = ran.stderr.trim();
            let hint = if stderr.is_empty() { String::new() } else { format!("\n  stderr: {stderr}") };
            return CaseOutcome::Failed(format!("{name}{why}{hint}"));
        }
    }
    CaseOutcome::Passed
}

/// All session files, in the form that cases use.
pub(super) fn sessions(ran: &ProgramOutput) -> Value {
    ran.sessions.iter().map(|(file, text)| session(file, text)).collect()
}

/// The lines of every session file, in columns.
pub(super) fn value_of(what: &str, expected: &Value, ran: &ProgramOutput, input: &Value) -> Option<Value> {
    if what.contains("for each session file") {
        let columns = columns(what);
        let row = |line: Value| columns.iter().map(|column| parent_or(&line, column)).collect::<Value>();
        let rows = |(_, text): &(String, String)| lines(text).into_iter().map(row).collect::<Value>();
        return Some(ran.sessions.iter().map(rows).collect());
    }
    one(what, expected, &ValueSource { ran, input })
}

/// A field of a line; a session that continues another one has its parent where messages have their role.
fn parent_or(line: &Value, column: &str) -> Value {
    match column {
        "role" if line["parentSession"].is_string() => "has parentSession".into(),
        _ => member_of_line(line, column),
    }
}

/// The sources of a value.
struct ValueSource<'a> {
    ran: &'a ProgramOutput,
    input: &'a Value,
}

/// A session file in the form that cases use.
fn session(file: &str, text: &str) -> Value {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    json!({"file": format!("<cwd-dir>/{name}"), "entries": lines(text)})
}

/// The lines of a session; lines that are not JSON become texts that say so.
fn lines(text: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| format!("torn: {line}").into());
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

/// The value that a case describes in words. Several descriptions are separated by semicolons, each with its name or in the order of the
/// expected fields. `None` for unknown words.
fn value(what: &str, expected: &Value, seen: &ValueSource<'_>) -> Option<Value> {
    let general = || super::value::of(what, expected, seen.ran);
    let Some(members) = expected.as_object() else { return one(what, expected, seen).or_else(general) };
    if !what.contains([';', ':'])
        && let Some(found) = general()
    {
        return Some(found);
    }
    let parts: Vec<&str> = what.split(';').map(str::trim).collect();
    let member = |(at, (name, expected)): (usize, (&String, &Value))| {
        let named = parts.iter().find_map(|part| part.strip_prefix(name.as_str())?.strip_prefix(':'));
        let words = named.or(parts.get(at).copied())?;
        Some((name.clone(), one(words, expected, seen).or_else(|| super::value::of(words, expected, seen.ran))?))
    };
    members.iter().enumerate().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn one(what: &str, expected: &Value, seen: &ValueSource<'_>) -> Option<Value> {
    let ValueSource { ran, input } = *seen;
    let has = |word: &str| what.contains(word);
    if has("number of session files") {
        return Some(ran.sessions.len().into());
    }
    if has("number of requests") {
        return Some(ran.requests.len().into());
    }
    if has("stderr") {
        let all = || ran.runs.iter().map(|run| run.stderr.trim()).collect();
        return Some(if expected.is_array() { all() } else { ran.stderr.trim().into() });
    }
    if has("exit code") {
        return Some(ran.exit_code.into());
    }
    let columns = columns(what);
    if has("line") {
        let lines = lines(&file(what, ran)?).into_iter();
        if has("role or type") {
            return Some(lines.map(|line| role_or_type(&line)).collect());
        }
        let columns = if columns.is_empty() { vec!["type", "id", "parentId", "role"] } else { columns };
        let row = |line: Value| match line.is_string() {
            true => line,
            false => columns.iter().map(|column| member_of_line(&line, column)).collect(),
        };
        return Some(lines.map(row).collect());
    }
    if has("unchanged") || has("untouched") {
        let before = |name: &String| input["files"][name].as_str().map(|text| text.replace("$CWD", &ran.cwd));
        let mut files = ran.files_after.as_object()?.iter();
        return Some(files.all(|(name, after)| before(name).as_deref() == after.as_str()).into());
    }
    if has("content of the file") || has("file afterwards") {
        return file(what, ran).map(Value::from);
    }
    if has("message") || has("roles of the request") {
        let request = if has("first request") { ran.requests.first() } else { ran.requests.last() };
        let body = request?.json();
        let messages = body["messages"].as_array()?.iter();
        let is_system = |message: &Value| message["role"] == "system" || message["role"] == "developer";
        let shown = messages.filter(|m| !((has("without the system") || has("after the system")) && is_system(m)));
        return Some(match (has("roles of"), columns.is_empty()) {
            (true, _) => shown.map(|message| message["role"].clone()).collect(),
            (false, true) => shown.cloned().collect(),
            (false, false) => shown
                .map(|message| columns.iter().map(|column| cell(message, column, input)).collect::<Value>())
                .collect(),
        });
    }
    None
}

/// The names between brackets.
fn columns(what: &str) -> Vec<&str> {
    let inside = Regex::new(r"\[([^\]]+)\]").ok().and_then(|list| Some(list.captures(what)?.get(1)?.as_str()));
    inside.map(|inside| inside.split(',').map(str::trim).collect()).unwrap_or_default()
}

/// The file that the words refer to: a named one, else the one to compare, else the first session.
fn file(what: &str, ran: &ProgramOutput) -> Option<String> {
    let files = ran.files_after.as_object()?;
    let named = files.iter().find(|(name, _)| what.contains(name.as_str())).or_else(|| files.iter().next());
    let text = named.and_then(|(_, text)| text.as_str()).map(str::to_owned);
    text.or_else(|| ran.sessions.first().map(|(_, text)| text.clone()))
}

fn role_or_type(line: &Value) -> Value {
    let role = &line["message"]["role"];
    if role.is_null() { line["type"].clone() } else { role.clone() }
}

fn member_of_line(line: &Value, name: &str) -> Value {
    let own = &line[name];
    if own.is_null() { line["message"][name].clone() } else { own.clone() }
}

/// A field of a message, or whether the field contains a text.
fn cell(message: &Value, column: &str, input: &Value) -> Value {
    let Some(text) = column.strip_prefix("contains ") else { return message[column].clone() };
    let text = text.trim_start_matches("the ");
    let summaries = || {
        let files = input["files"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
        let told = files.flat_map(lines).filter_map(|line| line["summary"].as_str().map(str::to_owned));
        told.collect::<Vec<String>>()
    };
    let message = message.to_string();
    let is_there = match text {
        "summary" => summaries().iter().any(|summary| message.contains(summary.as_str())),
        text => message.contains(text),
    };
    is_there.into()
}
