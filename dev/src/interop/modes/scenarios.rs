//! The scenarios that both programs run.

mod calls;
mod extensions;
mod failures;
mod prompts;
mod resources;
mod sessions;

use serde_json::{Map, Value, json};

/// A scenario: command lines, files and model answers, in the notation of the case files.
pub(super) struct ModeScenario {
    pub(super) name: &'static str,
    pub(super) input: Value,
}

/// All scenarios.
pub(super) fn all() -> Vec<ModeScenario> {
    let groups = [prompts::all(), resources::all(), calls::all(), sessions::all(), failures::all(), extensions::all()];
    groups.into_iter().flatten().collect()
}

/// Models and settings, in the format of case files.
pub(super) fn configuration() -> Value {
    let cost = json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75});
    json!({"fixtures": {
        "modelsJson": {"providers": {
            "fake": {"baseUrl": "http://127.0.0.1:<port>/v1", "api": "openai-completions", "apiKey": "k", "models": [
                {"id": "m1"},
                {"id": "m2", "reasoning": true},
                {"id": "small", "contextWindow": 20000, "maxTokens": 2000},
                {"id": "vis", "input": ["text", "image"]},
                {"id": "dear", "cost": cost},
            ]},
            "claude": {"baseUrl": "http://127.0.0.1:<port>", "api": "anthropic-messages", "apiKey": "k", "models": [
                {"id": "c1", "contextWindow": 200000, "maxTokens": 8000, "cost": cost},
                {"id": "c2", "reasoning": true, "contextWindow": 200000, "maxTokens": 8000, "input": ["text", "image"]},
                {"id": "mid", "reasoning": true, "contextWindow": 200000, "maxTokens": 8000,
                    "compat": {"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}},
                {"id": "strict", "contextWindow": 200000, "maxTokens": 8000, "compat": {"supportsStrictTools": true}},
            ]},
            "other": {"baseUrl": "http://127.0.0.1:<port>/v1", "api": "openai-completions", "apiKey": "o", "models": [{"id": "m1"}]},
        }},
        "settings": {"defaultProvider": "fake", "defaultModel": "m1", "retry": {"enabled": false}},
    }})
}

/// A single command line, split into words. The default model answer is `ok`.
fn scenario(name: &'static str, args: &str, more: Value) -> ModeScenario {
    let mut input = json!({"args": words(args), "serverScript": [{"text": "ok"}]});
    put_in(&mut input, more);
    ModeScenario { name, input }
}

/// Several command lines in the same directories, one after another.
fn runs(name: &'static str, runs: &[&str], more: Value) -> ModeScenario {
    let run = |args: &&str| json!({"args": words(args)});
    let answers: Vec<Value> = (1..=runs.len()).map(|n| json!({"text": format!("answer {n}")})).collect();
    let mut input = json!({"args": [], "runs": runs.iter().map(run).collect::<Vec<_>>(), "serverScript": answers});
    put_in(&mut input, more);
    ModeScenario { name, input }
}

/// One run in JSON mode in which the model calls tools and then answers `done`.
fn calls(name: &'static str, tools: &[(&str, Value)], more: Value) -> ModeScenario {
    let steps = tools.iter().map(|(name, args)| json!({"tools": [{"name": name, "args": args}]}));
    let script: Vec<Value> = steps.chain([json!({"text": "done"})]).collect();
    let mut input = json!({"args": words("--mode json -p go"), "serverScript": script});
    put_in(&mut input, more);
    ModeScenario { name, input }
}

/// Splits a command line into words. Quotes group words; a word may be empty.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn put_in(input: &mut Value, more: Value) {
    if let (Some(input), Value::Object(more)) = (input.as_object_mut(), more) {
        input.extend(more);
    }
}

/// A session file from its lines.
fn session(cwd: &str, lines: &[Value]) -> String {
    let header = json!({"type": "session", "version": 3, "id": "01900000-0000-7000-8000-0000000000aa", "timestamp": "2025-06-01T10:00:00.000Z", "cwd": cwd});
    std::iter::once(&header).chain(lines).map(|line| format!("{line}\n")).collect()
}

/// A line with a message that follows the previous line.
fn message(n: u32, message: Value) -> Value {
    let parent = (n > 1).then(|| format!("a{:07}", n - 1));
    let mut line = Map::from_iter([
        ("type".to_owned(), json!("message")),
        ("id".to_owned(), json!(format!("a{n:07}"))),
        ("parentId".to_owned(), json!(parent)),
        ("timestamp".to_owned(), json!(format!("2025-06-01T10:00:{n:02}.000Z"))),
    ]);
    line.insert("message".to_owned(), message);
    line.into()
}

/// A user message.
fn asked(n: u32, text: &str) -> Value {
    message(n, json!({"role": "user", "content": text, "timestamp": 1_748_772_000_000_u64 + u64::from(n) * 1000}))
}

/// An answer by the model `m1`.
fn answered(n: u32, text: &str) -> Value {
    let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
    let usage = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": cost});
    message(
        n,
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai-completions", "provider": "fake",
            "model": "m1", "usage": usage, "stopReason": "stop", "timestamp": 1_748_772_000_000_u64 + u64::from(n) * 1000}),
    )
}
