//! Drives pinch and pi with pi's own RPC client.
//!
//! A script calls every method of the client and records its result and what the program printed in the meantime. The results must be
//! equal, except for IDs, times and directories, additions in later versions of pi, and known differences.

mod known;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};
use pinch_testing::cases::program;
use pinch_testing::cases::program::places::Places;
use pinch_testing::cases::program::server::{Calls, reply};
use pinch_testing::server::{Recorded, Server};
use regex::Regex;
use serde_json::{Value, json};

use super::events;
use super::neutral::{self, KnownList, Neutral};
use super::pi::peer::{Installed, PiVersion};

/// Client methods that are called by its other methods.
const INTERNAL: [&str; 6] =
    ["constructor", "handleLine", "createProcessExitError", "rejectPendingRequests", "send", "getData"];
/// Upper limit for a whole dialogue.
const MAX_TIME: Duration = Duration::from_secs(300);

/// Arguments of `cargo xtask interop rpc`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The version of pi, whose client drives both programs: 1.5.2, the target, or 0.87.1.
    #[arg(long, value_name = "VERSION", default_value = "0.87.1")]
    pi: String,
}

/// Runs the check.
pub(super) fn run(args: &Args) -> anyhow::Result<bool> {
    let version = PiVersion::find(&args.pi)?;
    let installed = Installed::get(&[version])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pinch = program::pinch().map_err(anyhow::Error::msg)?;
    let pi_program = installed.program(version);
    let launcher = installed.folder().join("pinch.cjs");
    std::fs::write(&launcher, include_str!("rpc/pinch.cjs")).context("cannot write the launcher")?;
    let theirs = runtime.block_on(talk(&installed, version, &pi_program, pinch)).context("pi")?;
    let ours = runtime.block_on(talk(&installed, version, &launcher, pinch)).context("pinch")?;
    print(version, &theirs, &ours)
}

/// The result of a dialogue: one line per step, without what differs each time.
struct RpcDialogue {
    rows: Vec<Value>,
    /// Client methods that were never called.
    forgotten: Vec<String>,
    /// Why the dialogue ended early.
    broken: Option<String>,
}

/// Runs the script against a program.
async fn talk(installed: &Installed, version: PiVersion, cli: &Path, pinch: &Path) -> anyhow::Result<RpcDialogue> {
    let server = start_server().await?;
    let folder = tempfile::Builder::new().prefix("rpc").rand_bytes(6).tempdir()?;
    let places = Places::new(folder.path(), server.port()).map_err(anyhow::Error::msg)?;
    places.write_configuration(&configuration(), &json!({})).map_err(anyhow::Error::msg)?;
    let script = installed.folder().join("rpc.mjs");
    std::fs::write(&script, include_str!("rpc.mjs")).context("cannot write the script")?;
    let node = installed.node_of(version);
    // The client starts `node` by name.
    let mut path = node.parent().map(PathBuf::from).unwrap_or_default().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = tokio::process::Command::new(&node);
    command
        .arg(&script)
        .arg(installed.package(version))
        .arg(cli)
        .current_dir(&places.cwd)
        .env_clear()
        .envs(places.variables())
        .env("PATH", path)
        .env("PINCH", pinch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::time::timeout(MAX_TIME, command.output()).await.context("the talk has no end")??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("the client failed after {}:\n{}", said.lines().count(), String::from_utf8_lossy(&output.stderr));
    }
    let mut rows: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let end = rows.pop().context("the client says nothing")?;
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    let called = names(&end["called"]);
    let is_forgotten = |name: &String| !called.contains(name) && !INTERNAL.contains(&name.as_str());
    let forgotten = names(&end["methods"]).into_iter().filter(is_forgotten).collect();
    let mut neutral = Neutral::new(&places)?;
    for row in &mut rows {
        // Steps are independent: something missing in an earlier step must not change numbers in a later one.
        neutral.forget_ids();
        let lines = row["lines"].as_array().map_or(&[][..], Vec::as_slice);
        row["lines"] = events::compared(lines).into();
        *row = neutral.value(row);
    }
    Ok(RpcDialogue { rows, forgotten, broken: end["broken"].as_str().map(str::to_owned) })
}

/// Models, settings and resources for both programs.
fn configuration() -> Value {
    let model = |id: &str, more: Value| {
        let mut model = json!({"id": id});
        if let (Some(model), Value::Object(more)) = (model.as_object_mut(), more) {
            model.extend(more);
        }
        model
    };
    json!({"fixtures": {
        "modelsJson": {"providers": {"fake": {"baseUrl": "http://127.0.0.1:<port>/v1", "api": "openai-completions", "apiKey": "k", "models": [
            model("m1", json!({})),
            model("m2", json!({"reasoning": true})),
            model("vis", json!({"input": ["text", "image"], "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}})),
        ]}}},
        "settings": {"defaultProvider": "fake", "defaultModel": "m1", "retry": {"enabled": false, "maxRetries": 2, "baseDelayMs": 300},
            "compaction": {"keepRecentTokens": 40}},
        "rpcAgentDirFiles": {
            "prompts/greet.md": "---\ndescription: Says hello\n---\ndo plain: greet $1",
            "skills/spell/SKILL.md": "---\nname: spell\ndescription: Spells words\n---\nSpell it.\n",
        },
    }})
}

/// Starts the server. The last user message selects the answer: `do NAME`. Multi-step answers are given in order.
async fn start_server() -> anyhow::Result<Server> {
    let script = json!({
        "plain": [{"text": "Hello, here I am."}],
        "tool": [{"text": "I look.", "tool": {"name": "bash", "args": {"command": "echo hi"}}}, {"text": "It says hi."}],
        "tools": [
            {"tools": [{"name": "write", "args": {"path": "a.txt", "content": "one\ntwo\n"}}]},
            {"tools": [{"name": "read", "args": {"path": "a.txt"}}]}, {"tools": [{"name": "edit", "args": {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]}}]},
            {"tools": [{"name": "read", "args": {"path": "missing.txt"}}]}, {"tools": [{"name": "bash", "args": {"command": "exit 3"}}]},
            {"text": "All done."},
        ],
        "broken": [
            {"tools": [{"name": "read", "args": {}}, {"name": "nothing", "args": {}}, {"name": "bash", "rawArgs": "{\"command\": \"ec"}]},
            {"text": "So it goes."},
        ],
        "sleep": [{"tool": {"name": "bash", "args": {"command": "sleep 20"}}}, {"text": "Slept."}],
        "slow": [{"text": "Slowly.", "headDelay": 500}],
        "steered": [{"text": "Steered."}],
        "followed": [{"text": "Followed."}],
        "hang": [{"text": "This has no end at all.", "hang": true}],
        "think": [{"blocks": [{"thinking": "Well, well."}, {"text": "Thought."}]}],
        "failing": [{"status": 503, "message": "overloaded"}],
        "refused": [{"status": 400, "message": "bad request"}],
        "fails": [{"status": 503, "message": "overloaded"}, {"text": "Here again.", "usage": {"input": 100, "output": 20}}],
        "summary": [{"text": "## Goal\nA summary."}],
        "nothing": [{"text": "What?"}],
    });
    let server = Server::start().await?;
    let name = Regex::new(r"do (\w+)")?;
    let asked: Mutex<HashMap<String, usize>> = Mutex::default();
    server.answer_with(move |request| {
        let said = said_last(request);
        let key = if said.contains("fail now") {
            "refused"
        } else if said.contains("<conversation>") {
            "summary"
        } else {
            name.captures_iter(&said)
                .last()
                .and_then(|found| script.as_object()?.get_key_value(&found[1]).map(|(key, _)| key.as_str()))
                .unwrap_or("nothing")
        };
        let steps = script[key].as_array()?;
        let mut asked = asked.lock().ok()?;
        let times = asked.entry(key.to_owned()).or_default();
        // IDs that do not depend on earlier requests under other names.
        let n = 1000 * (1 + script.as_object()?.keys().position(|name| name == key)?) + *times;
        let step = &steps[*times % steps.len()];
        *times += 1;
        Some(reply(request, n, step, Calls::Numbered))
    });
    Ok(server)
}

/// The text of the last user message.
fn said_last(request: &Recorded) -> String {
    let body = request.json();
    let mut users = body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user");
    let last = users.next_back().map(|message| &message["content"]).cloned().unwrap_or_default();
    match last {
        Value::String(text) => text,
        blocks => {
            let texts = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Prints the table; returns true if there are no new differences.
fn print(version: PiVersion, theirs: &RpcDialogue, ours: &RpcDialogue) -> anyhow::Result<bool> {
    let mut known = KnownList::new(&known::of(version));
    let (mut n_same, mut n_known, mut failures) = (0, 0, Vec::new());
    println!("  {:<28} {:<40} {:<30} {:<30}", "method", "step", format!("pi {}", version.number), "pinch");
    for (n, their_row) in theirs.rows.iter().enumerate() {
        let name = their_row["step"].as_str().context("a step without a name")?;
        let Some(our_row) = ours.rows.get(n) else {
            failures
                .push(format!("{name}: pinch did not come so far: {}", ours.broken.as_deref().unwrap_or("no reason")));
            break;
        };
        let verdict = match known.judge(name, neutral::differences(their_row, our_row)) {
            Ok(reasons) if reasons.is_empty() => {
                n_same += 1;
                "same".to_owned()
            }
            Ok(reasons) => {
                n_known += 1;
                format!("differs, known: {}", reasons.join("; "))
            }
            Err(new) => {
                failures.push(format!("{name}: {}: {}", new.at, new.how));
                "DIFFERS".to_owned()
            }
        };
        let method = their_row["method"].as_str().unwrap_or_default();
        println!("  {method:<28} {name:<40} {:<30} {:<30} {verdict}", outcome(their_row), outcome(our_row));
    }
    failures
        .extend(theirs.forgotten.iter().map(|method| format!("{method}: this method of the client is never called")));
    failures.extend(
        known
            .gone()
            .iter()
            .map(|known| format!("{}: {} does not differ any more: {}", known.step, known.at, known.reason)),
    );
    for failure in &failures {
        println!("\nFAILED {failure}");
    }
    println!("\n{n_same} same, {n_known} known differences, {} failed", failures.len());
    Ok(failures.is_empty())
}

/// The start of a call's result.
fn outcome(row: &Value) -> String {
    let text = match row["error"].as_str() {
        Some(why) => format!("error: {}", why.replace('\n', " ")),
        None => row["result"].to_string(),
    };
    text.chars().take(29).collect()
}
