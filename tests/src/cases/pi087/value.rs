//! Values that cases of every kind describe in words: requests and their fields, usage, sections, command answers, counts.

use pinch_testing::cases::program::{ProgramOutput, lines};
use regex::Regex;
use serde_json::{Map, Value, json};

/// The value that the words describe; `None` for unknown words.
pub(super) fn of(what: &str, expected: &Value, ran: &ProgramOutput) -> Option<Value> {
    let has = |word: &str| what.contains(word);
    if let Some(counts) = counts(what, expected, ran) {
        return Some(counts);
    }
    if has("request") && !has("extension_ui_request") {
        return of_request(what, expected, ran);
    }
    if has("section") {
        return sections(what, expected, ran);
    }
    if has("usage") {
        return usage(what, ran);
    }
    if let Some(data) = of_response(what, expected, ran) {
        return Some(data);
    }
    if has("events") || has("lines") {
        return events(what, ran);
    }
    if has("exit code") || has("exitCode") {
        return Some(ran.exit_code.into());
    }
    if has("stderr") || has("standard error") {
        return Some(ran.stderr.trim().into());
    }
    None
}

/// The index that a word such as `second` or `2nd` stands for.
fn place(what: &str) -> Option<usize> {
    const WORDS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    let by_word = WORDS.iter().position(|word| what.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word));
    let by_number = || {
        let found = Regex::new(r"(?:request (?:number )?#?(\d+)|(\d+)(?:st|nd|rd|th) )").ok()?.captures(what)?;
        found.get(1).or(found.get(2))?.as_str().parse::<usize>().ok()?.checked_sub(1)
    };
    by_word.or_else(by_number)
}

/// One count, or several separated by commas: `number of requests, number of compaction_start events`.
fn counts(what: &str, expected: &Value, ran: &ProgramOutput) -> Option<Value> {
    let parts: Vec<&str> = what.split([',', ';']).map(str::trim).map(|part| part.trim_start_matches("and ")).collect();
    let counted = parts.iter().map(|part| count(part, ran)).collect::<Option<Vec<_>>>()?;
    match (expected, counted.as_slice()) {
        (Value::Array(_), _) => Some(json!(counted)),
        (Value::Object(members), _) if members.len() == counted.len() => {
            Some(members.keys().cloned().zip(counted.iter().map(|n| json!(n))).collect())
        }
        (_, [one]) => Some(json!(one)),
        _ => None,
    }
}

fn count(part: &str, ran: &ProgramOutput) -> Option<usize> {
    let of = part.strip_prefix("number of ").or_else(|| part.strip_prefix("count of "))?;
    let word = of.split(' ').next()?;
    Some(match word {
        "requests" | "provider" => ran.requests.len(),
        "session" | "sessions" => ran.sessions.len(),
        "output" | "lines" => ran.lines.len(),
        "responses" => ran.lines.iter().filter(|line| line["type"] == "response").count(),
        kind => {
            let kind = kind.trim_end_matches('s');
            ran.lines.iter().filter(|line| line["type"].as_str().is_some_and(|t| t == word || t == kind)).count()
        }
    })
}

fn of_request(what: &str, expected: &Value, ran: &ProgramOutput) -> Option<Value> {
    let has = |word: &str| what.contains(word);
    let request = match place(what) {
        _ if has("last request") => ran.requests.last(),
        Some(at) => ran.requests.get(at),
        None => ran.requests.last(),
    };
    let Some(request) = request else { return Some(absent(expected)) };
    if has("header") {
        return Some(match expected {
            Value::Object(names) => {
                names.keys().map(|name| (name.clone(), Value::from(request.header(name)))).collect()
            }
            _ => request.header(what.split("header ").nth(1)?.split([' ', ',', ';']).next()?).into(),
        });
    }
    if has("path") || has("url") {
        return Some(request.path.as_str().into());
    }
    let body = request.json();
    if has("messages") || has("roles") {
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        let messages = body["messages"].as_array()?.iter();
        let shown: Vec<Value> = messages
            .filter(|m| !((has("without the system") || has("after the system")) && is_system(m)))
            .cloned()
            .collect();
        return Some(match has("roles") {
            true => shown.iter().map(|message| message["role"].clone()).collect(),
            false => shown.into(),
        });
    }
    let names = fields(what);
    let member = |name: &str| {
        let found = name.split('.').try_fold(&body, |value, step| match step.parse::<usize>() {
            Ok(at) => value.get(at),
            Err(_) => value.get(step),
        });
        found.cloned().unwrap_or_else(|| absent(expected.get(name).unwrap_or(expected)))
    };
    match (expected, names.as_slice()) {
        (Value::Object(wanted), _)
            if wanted
                .keys()
                .all(|name| names.contains(&name.as_str()) || body.get(name).is_some() || wanted[name] == "absent") =>
        {
            Some(wanted.keys().map(|name| (name.clone(), member(name))).collect())
        }
        (_, [name]) => Some(member(name)),
        (Value::Array(_), [_, ..]) => Some(names.iter().map(|name| member(name)).collect()),
        (Value::Object(_), []) if has("body") => Some(body),
        _ => None,
    }
}

/// How a missing field is written: null, or the word.
fn absent(expected: &Value) -> Value {
    if expected == "absent" { "absent".into() } else { Value::Null }
}

/// The field names in a description: words with an underscore, a dot or an inner capital, and those before `of the … request`.
fn fields(what: &str) -> Vec<&str> {
    let Some(head) = what.split(" of the ").next() else { return Vec::new() };
    let head = head
        .trim_start_matches("field ")
        .trim_start_matches("fields ")
        .trim_start_matches("members ")
        .trim_start_matches("member ");
    let head = head.split('(').next().unwrap_or(head);
    let is_name = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let words =
        head.split([',', ' ']).map(str::trim).filter(|word| !matches!(*word, "and" | "the" | "field" | "fields"));
    words.filter(is_name).collect()
}

/// Sections of the first system message: names and texts, or only names.
fn sections(what: &str, expected: &Value, ran: &ProgramOutput) -> Option<Value> {
    let in_files = || {
        let lines = ran.sessions.iter().flat_map(|(_, text)| text.lines());
        lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    let is_system = |line: &&Value| line["message"]["role"] == "system";
    let message = ran.lines.iter().find(is_system).cloned().or_else(|| in_files().iter().find(is_system).cloned())?;
    let sections = message["message"]["sections"].as_object()?.clone();
    if what.contains("names") {
        return Some(sections.keys().cloned().map(Value::from).collect());
    }
    let named = || {
        sections.keys().find(|name| what.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == **name))
    };
    match expected {
        // Only the sections that are requested.
        Value::Object(wanted) => {
            Some(wanted.keys().map(|name| (name.clone(), sections.get(name).cloned().unwrap_or_default())).collect())
        }
        Value::Array(_) => Some(sections.iter().map(|(name, text)| json!([name, text])).collect()),
        _ => named().map(|name| sections[name].clone()),
    }
}

/// The usage of one of the assistant's messages: the last one unless another is named.
fn usage(what: &str, ran: &ProgramOutput) -> Option<Value> {
    let ended = |line: &&Value| line["type"] == "message_end" && line["message"]["role"] == "assistant";
    let all: Vec<&Value> = ran.lines.iter().filter(ended).map(|line| &line["message"]["usage"]).collect();
    let one = match place(what) {
        Some(at) if !what.contains("last") => all.get(at).copied(),
        _ => all.last().copied(),
    }?;
    let named = ["input", "output", "cacheRead", "cacheWrite", "totalTokens", "reasoning", "cost"];
    let asked: Vec<&str> =
        named.into_iter().filter(|name| what.split(|c: char| !c.is_alphanumeric()).any(|word| word == *name)).collect();
    Some(match asked.as_slice() {
        [] => one.clone(),
        [name] => one[*name].clone(),
        names => names.iter().map(|name| ((*name).to_owned(), one[*name].clone())).collect(),
    })
}

/// The data of a command's answers: all of it, or one field: `data of get_state only sessionName`.
fn of_response(what: &str, expected: &Value, ran: &ProgramOutput) -> Option<Value> {
    let asked =
        Regex::new(r"(?:data|response|responses|answer|answers) (?:of|to) (?:the )?(\w+)").ok()?.captures(what)?;
    let command = asked.get(1)?.as_str();
    let mut answers =
        ran.lines.iter().filter(|line| line["type"] == "response" && line["command"] == command).peekable();
    answers.peek()?;
    let only = Regex::new(r"only ([\w., ]+)").ok()?.captures(what).and_then(|found| Some(found.get(1)?.as_str()));
    let shown = |line: &Value| -> Value {
        let part = if what.contains("data") { &line["data"] } else { line };
        match only
            .map(|names| names.split([',', ' ']).filter(|name| !name.is_empty() && *name != "and").collect::<Vec<_>>())
            .as_deref()
        {
            None | Some([]) => part.clone(),
            Some([name]) => part.get(*name).cloned().unwrap_or_else(|| absent(expected)),
            Some(names) => names.iter().map(|name| ((*name).to_owned(), part[*name].clone())).collect(),
        }
    };
    match (expected, place(what)) {
        (_, Some(at)) => answers.nth(at).map(shown),
        (Value::Array(_), None)
            if answers.clone().count() > 1 || !answers.clone().all(|line| line["data"].is_array()) =>
        {
            Some(answers.map(shown).collect())
        }
        _ => answers.next_back().map(shown),
    }
}

/// Lines of the named event families, such as `compaction` or `tool_execution`; answers that occur between them in a short form.
fn events(what: &str, ran: &ProgramOutput) -> Option<Value> {
    let words: Vec<&str> =
        what.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 3).collect();
    let is_asked = |kind: &str| words.iter().any(|word| kind == *word || kind.starts_with(&format!("{word}_")));
    let with_responses = what.contains("response");
    let shown: Vec<Value> = lines::shortened(&ran.lines)
        .into_iter()
        .filter_map(|line| match line["type"].as_str()? {
            "response" if with_responses => {
                let mut short = Map::from_iter([("response".to_owned(), line["command"].clone())]);
                short.insert("success".to_owned(), line["success"].clone());
                Some(short.into())
            }
            kind if is_asked(kind) => Some(line),
            _ => None,
        })
        .collect();
    (!shown.is_empty()).then(|| shown.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_fields_are_read_from_words() {
        for (words, expected) in [
            ("max_tokens of the second request", Some(1)),
            ("messages of request 3", Some(2)),
            ("the 2nd request", Some(1)),
            ("messages of the request", None),
        ] {
            assert_eq!(place(words), expected, "{words}");
        }
        assert_eq!(fields("fields max_tokens, thinking.type of the first request"), ["max_tokens", "thinking.type"]);
    }
}
