//! What a program did in a scenario, without what differs each time and without program-specific wording.

use anyhow::Context;
use pinch_testing::cases::program::{ProgramOutput, RunOutput};
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::interop::events;
use crate::interop::neutral::Neutral;

/// The compared aspects, one per column.
pub(super) const ASPECTS: [&str; 7] = ["requests", "events", "session", "stdout", "stderr", "exit", "files"];

/// Request headers that are meaningful to a model server.
const HEADERS: [&str; 12] = [
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "content-type",
    "session-id",
    "session_id",
    "x-api-key",
    "x-app",
    "x-client-request-id",
    "x-session-affinity",
    "x-session-id",
];

/// Sections of the system prompt whose wording is specific to each program.
const OWN_WORDS: [&str; 3] = ["tools", "rules", "docs"];

/// Everything a program did.
pub(super) fn of(ran: &ProgramOutput) -> anyhow::Result<Value> {
    let mut neutral = Neutral::of(&ran.cwd, &ran.agent_dir, ran.port)?;
    let words = OwnWords::new()?;
    let mut requests = Vec::new();
    for request in &ran.requests {
        let headers = HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), request.header(name)?.into())));
        let mut body = request.json();
        words.take_out_of_request(&mut body);
        requests.push(json!({"path": request.path, "headers": headers.collect::<Map<_, _>>(), "body": body}));
    }
    let mut sessions = Vec::new();
    for (file, text) in &ran.sessions {
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        sessions.push(json!({"file": file, "entries": lines.with_context(|| format!("{file} is no session"))?}));
    }
    let spoken: Vec<Spoken> = ran.runs.iter().map(spoken).collect();
    let all: [Value; 7] = [
        requests.into(),
        spoken.iter().flat_map(|run| events::compared(&run.events)).collect(),
        sessions.into(),
        spoken.iter().map(|run| run.text.as_str()).collect(),
        ran.runs.iter().map(|run| run.stderr.as_str()).collect(),
        ran.runs.iter().map(|run| run.exit_code).collect(),
        files(&ran.files_after),
    ];
    let mut view = Map::new();
    for (name, mut value) in ASPECTS.into_iter().zip(all) {
        listed_sections(&mut value);
        // Aspects are independent: something missing in one must not change numbers in another.
        neutral.forget_ids();
        view.insert(name.to_owned(), neutral.value(&value));
    }
    Ok(view.into())
}

/// The files that a scenario checks; session files as lines.
fn files(after: &Value) -> Value {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
    let file = |(name, text): (&String, &Value)| {
        let session = text.as_str().filter(|_| name.ends_with(".jsonl"));
        (name.clone(), session.map_or_else(|| text.clone(), |session| session.lines().map(line).collect()))
    };
    after.as_object().into_iter().flatten().map(file).collect()
}

/// What a run wrote to standard output.
struct Spoken {
    /// Lines of JSON mode.
    events: Vec<Value>,
    /// Everything else.
    text: String,
}

fn spoken(run: &RunOutput) -> Spoken {
    let is_event = |line: &Value| line["type"].is_string();
    let events: Vec<Value> =
        run.stdout.lines().map_while(|line| serde_json::from_str(line).ok().filter(is_event)).collect();
    let text = run.stdout.split_inclusive('\n').skip(events.len()).collect();
    Spoken { events, text }
}

/// Sections as lists: their order matters, and most of their texts are compared.
fn listed_sections(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(sections) = members.get("sections").and_then(Value::as_object) {
                let is_usual = OWN_WORDS.iter().any(|name| sections.contains_key(*name));
                let text = |(name, text): (&String, &Value)| {
                    let is_own = OWN_WORDS.contains(&name.as_str()) || (is_usual && name == "preamble");
                    match text.as_str() {
                        Some(_) if is_own => json!([name, "$text"]),
                        Some(text) => json!([name, without_introduction(text)]),
                        None => json!([name, text]),
                    }
                };
                let listed: Value = sections.iter().map(text).collect();
                members.remove("sections");
                members.insert("sectionList".to_owned(), listed);
            }
            members.values_mut().for_each(listed_sections);
        }
        Value::Array(list) => list.iter_mut().for_each(listed_sections),
        _ => {}
    }
}

/// The list of skills without its introduction.
fn without_introduction(text: &str) -> String {
    match (text.find("<skills>\n"), text.find("<available_skills>")) {
        (Some(from), Some(to)) if from < to => format!("{}<skills>$text {}", &text[..from], &text[to..]),
        _ => text.to_owned(),
    }
}

/// Finds program-specific wording.
struct OwnWords {
    sections: Vec<Regex>,
    preamble: Regex,
}

impl OwnWords {
    fn new() -> Result<Self, regex::Error> {
        let section = |name: &&str| Regex::new(&format!(r"(?s)<({name})>\n.*?\n</{name}>"));
        Ok(Self {
            sections: OWN_WORDS.iter().map(section).collect::<Result<_, _>>()?,
            preamble: Regex::new(r"(?s)^.*?<(tools|rules|docs)/>")?,
        })
    }

    /// The text of a system prompt; a user-defined one is left unchanged.
    fn text(&self, text: &str) -> String {
        let text = self.sections.iter().fold(text.to_owned(), |text, section| {
            section.replace_all(&text, |found: &Captures<'_>| format!("<{}/>", &found[1])).into_owned()
        });
        let text = self.preamble.replace(&text, |found: &Captures<'_>| format!("$preamble <{}/>", &found[1]));
        without_introduction(&text)
    }

    fn take_out_of_request(&self, body: &mut Value) {
        let is_summary = take_out_instructions(body);
        let prompts = body["messages"].as_array_mut().into_iter().flatten();
        let prompts = prompts.filter(|message| message["role"] == "system" || message["role"] == "developer");
        for prompt in prompts.filter_map(|message| message.get_mut("content")) {
            if is_summary {
                *prompt = "$summary".into();
            }
            self.take_out_of_content(prompt);
        }
        if let Some(prompt) = body.get_mut("system") {
            self.take_out_of_content(prompt);
        }
        for tool in body["tools"].as_array_mut().into_iter().flatten() {
            undescribed(tool);
        }
        // There is no value if nothing was sent.
        if let Some(members) = body.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
    }

    fn take_out_of_content(&self, content: &mut Value) {
        match content {
            Value::String(text) => *text = self.text(text),
            Value::Array(blocks) => {
                for text in blocks.iter_mut().filter_map(|block| block.get_mut("text")) {
                    self.take_out_of_content(text);
                }
            }
            _ => {}
        }
    }
}

/// Removes program-specific wording from a summary request, keeping what is to be summarised. Returns false for other requests.
fn take_out_instructions(body: &mut Value) -> bool {
    let mut texts = Vec::new();
    for message in body["messages"].as_array_mut().into_iter().flatten().filter(|message| message["role"] == "user") {
        match &mut message["content"] {
            Value::String(text) => texts.push(text),
            Value::Array(blocks) => texts.extend(blocks.iter_mut().filter_map(|block| match block.get_mut("text") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            })),
            _ => {}
        }
    }
    let [text] = texts.as_mut_slice() else { return false };
    let behind = |tag: &str| text.rfind(tag).map(|at| at + tag.len());
    let end = match text.starts_with("# Conversation\n") {
        true => text.find("# Instructions\n"),
        false => behind("</conversation>").max(behind("</previous-summary>")),
    };
    if let Some(end) = end {
        text.replace_range(end.., "$instructions");
    }
    end.is_some()
}

/// Removes a tool's descriptions.
fn undescribed(tool: &mut Value) {
    match tool {
        Value::Object(members) => {
            members.retain(|name, value| name != "description" || !value.is_string());
            members.values_mut().for_each(undescribed);
        }
        Value::Array(list) => list.iter_mut().for_each(undescribed),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wording_of_its_own_is_taken_out_of_a_prompt() {
        let words = OwnWords::new().unwrap();
        let usual = "You are.\n\n<tools>\n- read\n</tools>\n\n<rules>\n- short\n</rules>\n\n<docs>\nx\n</docs>\n\n<skills>\nRead.\n<available_skills>\n</available_skills>\n</skills>\n\n<cwd>\n/w\n</cwd>";
        assert_eq!(
            words.text(usual),
            "$preamble <tools/>\n\n<rules/>\n\n<docs/>\n\n<skills>$text <available_skills>\n</available_skills>\n</skills>\n\n<cwd>\n/w\n</cwd>"
        );
        let own = "Be brief.\n\n<cwd>\n/w\n</cwd>";
        assert_eq!(words.text(own), own);
    }

    #[test]
    fn of_a_request_for_a_summary_the_conversation_stays() {
        let words = OwnWords::new().unwrap();
        let check = |text: &str, expected: &str| {
            let mut body = json!({"messages": [{"role": "system", "content": "Sum up."}, {"role": "user", "content": [{"type": "text", "text": text}]}]});
            words.take_out_of_request(&mut body);
            assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": expected}]));
            body["messages"][0]["content"] == "$summary"
        };
        assert!(check(
            "<conversation>\nx\n</conversation>\n\nSum up",
            "<conversation>\nx\n</conversation>$instructions"
        ));
        assert!(check("# Conversation\nx\n\n# Instructions\nSum up", "# Conversation\nx\n\n$instructions"));
        assert!(!check("hello", "hello"));
    }

    #[test]
    fn sections_are_compared_in_their_order() {
        let mut message = json!([{"sections": {"preamble": "You", "tools": "t", "cwd": "/w"}}, {"sections": {"preamble": "Own", "skills": null}}]);
        listed_sections(&mut message);
        let expected = json!([
            {"sectionList": [["preamble", "$text"], ["tools", "$text"], ["cwd", "/w"]]},
            {"sectionList": [["preamble", "Own"], ["skills", null]]},
        ]);
        assert_eq!(message, expected);
    }

    #[test]
    fn lines_of_events_are_told_from_text() {
        let run = |stdout: &str| RunOutput { stdout: stdout.into(), stderr: String::new(), exit_code: Some(0) };
        let both = spoken(&run("{\"type\":\"session\"}\n{\"type\":\"a\"}\nrest\n"));
        assert_eq!((both.events.len(), both.text.as_str()), (2, "rest\n"));
        assert_eq!(spoken(&run("{\"a\": 1}\n")).text, "{\"a\": 1}\n");
    }
}
