//! OpenClaw and pinch take turns on one state directory, and each must continue from the state that the other left.

mod program;
mod shared;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::table::ResultTable;
use program::{PeerProgram, Programs};
use shared::{AnsweredTurn, MAIN, SharedState};

/// Name and function of a check; the function receives the program that begins.
type Check = (&'static str, fn(&Programs, PeerProgram) -> anyhow::Result<String>);

const CHECKS: [Check; 7] = [
    ("a conversation in turns", in_turns),
    ("tools of the other's turns", tools),
    ("totals and unknown members", index),
    ("a session of another key, by id", by_id),
    ("a key in cooldown", cooldown_key),
    ("a key that is refused", refused_key),
    ("two messages at the same time", together),
];

/// Runs the checks.
pub(super) fn run() -> anyhow::Result<bool> {
    let programs = Programs::get()?;
    let mut table = ResultTable::default();
    for (name, check) in CHECKS {
        for first in PeerProgram::BOTH {
            let result = check(&programs, first).map_err(|why| format!("{why:#}"));
            table.row(&format!("{} begins", first.name()), name, result);
        }
    }
    Ok(table.finish())
}

/// Four turns: each request contains the whole conversation, and there is one session in one file.
fn in_turns(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    let mut expected: Vec<String> = Vec::new();
    let mut sessions = Vec::new();
    for (n, program) in [first, first.other(), first, first.other()].into_iter().enumerate() {
        let message = format!("message {n}");
        let turn = state.turn(program, &MAIN, &message)?;
        expected.push(message);
        let request = turn.requests.first().context("no request")?;
        ensure!(shared::texts(request) == expected, "{program:?} sent {:?}", shared::texts(request));
        expected.push(turn.text.clone());
        sessions.push(turn.session_id);
    }
    sessions.dedup();
    ensure!(sessions.len() == 1, "sessions {sessions:?}");
    let files = state.transcripts()?;
    ensure!(files.len() == 1, "files {files:?}");
    state.check_chain(&files[0])?;
    Ok("4 turns in one file".to_owned())
}

/// The other program continues a turn with a tool call; its request contains the call and the result.
fn tools(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    state.turn(first, &MAIN, "read the file")?;
    let turn = state.turn(first.other(), &MAIN, "and now?")?;
    let request = turn.requests.first().context("no request")?;
    let blocks = |kind: &str| -> Vec<Value> {
        let messages = request["messages"].as_array().into_iter().flatten();
        let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
        blocks.filter(|block| block["type"] == kind).cloned().collect()
    };
    let (calls, results) = (blocks("tool_use"), blocks("tool_result"));
    ensure!(calls.len() == 1 && results.len() == 1, "calls {calls:?}, results {results:?}");
    ensure!(calls[0]["id"] == results[0]["tool_use_id"], "{} is answered for {}", results[0], calls[0]);
    ensure!(results[0].to_string().contains("seven apples"), "the result is {}", results[0]);
    Ok("the call and its result go along".to_owned())
}

/// Both record token counts, and keep unknown members of an index entry.
fn index(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    state.turn(first, &MAIN, "one")?;
    state.change_index(|entry| entry["noteOfAnother"] = json!({"kept": [1, 2]}))?;
    for program in [first.other(), first] {
        let turn = state.turn(program, &MAIN, "two")?;
        let entry = state.entry("agent:main:main")?;
        ensure!(entry["noteOfAnother"] == json!({"kept": [1, 2]}), "{program:?} lost a member: {entry}");
        ensure!(entry["sessionId"] == turn.session_id.as_str(), "{program:?} noted session {}", entry["sessionId"]);
        for (member, tokens) in [("inputTokens", 10), ("outputTokens", 5), ("contextTokens", 200_000)] {
            ensure!(entry[member] == tokens, "{program:?} noted {member} {}", entry[member]);
        }
        ensure!(entry["model"] == "m1" && entry["modelProvider"] == "bench", "{program:?} noted {}", entry["model"]);
    }
    Ok("the same members from both".to_owned())
}

/// The other program finds the session by its id, and OpenClaw lists the sessions that pinch created.
fn by_id(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    let session: &[&str] = match first {
        PeerProgram::Pinch => &["--session-key", "agent:main:telegram:direct:42"],
        PeerProgram::OpenClaw => &MAIN,
    };
    let begun = state.turn(first, session, "one")?;
    let turn = state.turn(first.other(), &["--session-id", &begun.session_id], "two")?;
    let request = turn.requests.first().context("no request")?;
    ensure!(shared::texts(request) == ["one", begun.text.as_str(), "two"], "sent {:?}", shared::texts(request));
    let mut list = programs.command(PeerProgram::OpenClaw, state.folder());
    let listed = program::run(PeerProgram::OpenClaw, list.args(["sessions", "--json"]))?;
    let key = if first == PeerProgram::Pinch { session[1] } else { "agent:main:main" };
    let sessions = listed["sessions"].as_array().context("no list of sessions")?;
    let found =
        sessions.iter().find(|session| session["key"] == key).with_context(|| format!("{listed} has no {key}"))?;
    ensure!(found["sessionId"] == begun.session_id.as_str(), "listed as {found}");
    Ok(format!("{key} is continued and listed"))
}

/// The first program hits a rate limit and uses the next key; the other one does not try the key in cooldown.
fn cooldown_key(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    other_avoids(programs, first, shared::LIMITED_KEY)
}

/// Like [`cooldown_key`], with a key that the server does not accept.
fn refused_key(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    other_avoids(programs, first, shared::REFUSED_KEY)
}

fn other_avoids(programs: &Programs, first: PeerProgram, bad: &str) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    state.use_profiles(&[("bench:first", bad), ("bench:second", "good")])?;
    let keys = |turn: &AnsweredTurn| turn.keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let turn = state.turn(first, &MAIN, "one")?;
    ensure!(keys(&turn).starts_with(bad) && keys(&turn).ends_with("good"), "{first:?} used {}", keys(&turn));
    // In another session no pinned key interferes: only the stored marks decide.
    let turn = state.turn(first.other(), &["--session-id", "another"], "two")?;
    ensure!(keys(&turn) == "good", "{:?} used {}", first.other(), keys(&turn));
    Ok("the other program asks with the next one".to_owned())
}

/// Both answer at the same time: nothing is lost, and the parent of each entry exists.
fn together(programs: &Programs, first: PeerProgram) -> anyhow::Result<String> {
    let state = SharedState::new(programs)?;
    state.turn(first, &MAIN, "begin")?;
    let mut running = Vec::new();
    for (program, message) in [(first, "slow one"), (first.other(), "slow two")] {
        let mut command = programs.agent(program, state.folder(), &MAIN, message);
        running.push((program, command.spawn().with_context(|| format!("cannot start {}", program.name()))?));
    }
    for (program, process) in running {
        program::printed(program, &process.wait_with_output()?)?;
    }
    let files = state.transcripts()?;
    ensure!(files.len() == 1, "files {files:?}");
    let texts = state.check_chain(&files[0])?;
    for message in ["slow one", "slow two", "Answer to slow one.", "Answer to slow two."] {
        if !texts.iter().any(|text| text == message) {
            bail!("{message:?} is not on the current branch: {texts:?}");
        }
    }
    Ok("both are on the branch".to_owned())
}
