//! Other processes for the tests: this very test binary, told by its environment what to do.
//!
//! A child speaks in lines on its standard output. With `STEP` set it waits for a line on its standard input after each of its own, so that
//! its parent knows exactly where it is.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{Durability, JsonlStore, SessionRef};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::Value;

use crate::help::{answer, result, user};
use crate::properties::run;
use crate::tool_calls;

const TASK: &str = "PINCH_TEST_CHILD";
const FILE: &str = "PINCH_TEST_FILE";
const DURABILITY: &str = "PINCH_TEST_DURABILITY";
const STEP: &str = "PINCH_TEST_STEP";

/// Appends in the `talk` of one child.
pub(crate) const TALK: usize = 400;

/// A child at work. It is killed when it is dropped.
pub(crate) struct Other {
    child: Child,
    pub(crate) said: Lines<BufReader<ChildStdout>>,
    ear: Option<ChildStdin>,
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Other {
    pub(crate) fn start(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[])
    }

    /// A child that waits after each line for [`Other::go_on`].
    pub(crate) fn stepped(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(STEP, "1")])
    }

    pub(crate) fn durable(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(DURABILITY, "entry")])
    }

    /// A child that may write no file longer than a few kilobytes; `trap` says whether it survives trying.
    pub(crate) fn limited(task: &str, file: &Path, trap: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{trap} ulimit -f 40; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
        Self::spawn(shell, task, file, &[])
    }

    /// A child that is killed after so many seconds, and gets no more than a few gigabytes.
    pub(crate) fn hurried(task: &str, file: &Path, secs: u32) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -v 4000000; exec timeout --foreground -s KILL {secs} \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap());
        Self::spawn(shell, task, file, &[])
    }

    fn spawn(mut command: Command, task: &str, file: &Path, env: &[(&str, &str)]) -> Self {
        command.args(["--exact", "child::child", "--nocapture", "--test-threads=1"]);
        command.env(TASK, task).env(FILE, file).envs(env.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let ear = child.stdin.take();
        Self { child, said, ear }
    }

    /// The next line of the child's own; none when it has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.said.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("> ").map(str::to_owned))
    }

    /// Reads on until a line begins like this; returns what follows.
    pub(crate) fn wait_for(&mut self, word: &str) -> Option<String> {
        std::iter::from_fn(|| self.next()).find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    }

    pub(crate) fn go_on(&mut self) {
        self.ear.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills it at once, whatever it does.
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        self.child.wait().unwrap();
    }

    /// Waits for its end; true when it was good.
    pub(crate) fn ends_well(&mut self) -> bool {
        self.ear = None;
        self.child.wait().unwrap().success()
    }
}

/// Says a line; false when nobody listens any more.
fn say(words: &str) -> bool {
    let mut out = std::io::stdout().lock();
    // On a line of its own: the test harness has begun one.
    let said = out.write_all(format!("\n> {words}\n").as_bytes()).and_then(|()| out.flush()).is_ok();
    if said && std::env::var_os(STEP).is_some() {
        return hear();
    }
    said
}

/// Waits for a line; false when there is nobody to send one.
fn hear() -> bool {
    std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|n_bytes| n_bytes > 0)
}

async fn open(file: &Path) -> SessionLog {
    let durability = std::env::var(DURABILITY).ok().and_then(|word| Durability::parse(&word)).unwrap_or_default();
    let store = JsonlStore::flat(file.parent().unwrap()).durability(durability);
    SessionLog::open(&Host::system(), Arc::new(store), &SessionRef::Path(file.to_owned()), "/w").await.unwrap()
}

/// Not a test: what a child does. In the parent's own run there is no task.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let file = PathBuf::from(std::env::var_os(FILE).unwrap());
    run(async {
        match &*task {
            "append" => append(&file).await,
            "talk" => talk(&file).await,
            "fill" => fill(&file).await,
            "hold" => hold(&file),
            "import" => import(&file),
            "begin" => begin(&file).await,
            "tool" => tool(&file).await,
            other => panic!("no such task: {other}"),
        }
    });
}

/// One step of a conversation with tools.
fn body(step: usize) -> EntryBody {
    let text = format!("step {step} {}", "x".repeat(step * 37 % 5000));
    match step % 7 {
        0 => user(&text),
        1 => answer(&text, &["c1", "c2"]),
        2 => result("c1"),
        3 => result("c2"),
        4 => EntryBody::ThinkingLevelChange { thinking_level: text },
        5 => answer(&text, &[]),
        _ => EntryBody::Custom { custom_type: text, data: None },
    }
}

/// Appends for ever; acknowledges each entry.
async fn append(file: &Path) {
    let mut log = open(file).await;
    say("open");
    for step in 0.. {
        if !say("next") {
            return;
        }
        let id = log.append(body(step)).await.unwrap();
        // What comes before the first prompt waits in memory; this begins with it, so everything is in the file.
        if !say(&format!("ack {id}")) {
            return;
        }
    }
}

/// Says something again and again in a session that others write as well; tells what it was told.
async fn talk(file: &Path) {
    let mut log = open(file).await;
    let n_known = log.entry_ids().len();
    say("open");
    hear();
    let mut n_told = 0;
    for turn in 0..TALK {
        let long = if turn % 10 == 0 { 100_000 } else { 10 };
        let id = log.append(user(&format!("{} {turn} {}", std::process::id(), "y".repeat(long)))).await.unwrap();
        while let Some(conflict) = log.take_conflict() {
            assert!(conflict.followed);
            n_told += conflict.n_entries;
        }
        say(&format!("ack {id}"));
    }
    say(&format!("told {n_told} of {}", log.entry_ids().len() - TALK - n_known));
}

/// Appends until the disk is full, twice; tells what the log says of itself.
async fn fill(file: &Path) {
    let mut log = open(file).await;
    for step in 0.. {
        match log.append(body(step)).await {
            Ok(id) => say(&format!("ack {id}")),
            Err(error) => {
                let before = (log.leaf_id().cloned(), log.entry_ids().len(), log.awaited_calls().len());
                let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                say(&format!("full {error}: {source}"));
                assert!(log.append(body(step)).await.is_err(), "there is still no room");
                let after = (log.leaf_id().cloned(), log.entry_ids().len(), log.awaited_calls().len());
                assert_eq!(after, before, "an entry that was not written does not exist");
                say(&format!("entries {}", after.1));
                return;
            }
        };
    }
}

/// Holds the kernel's lock of the file.
fn hold(file: &Path) {
    let held = File::open(file).unwrap();
    held.lock().unwrap();
    say("held");
    hear();
}

/// Takes the file into a folder beside it.
fn import(file: &Path) {
    let store = JsonlStore::flat(file.parent().unwrap().join("sessions"));
    let error = store.import(file, "/w").unwrap_err();
    say(&format!("full {error}"));
}

/// Begins a session in a folder beside the file whose first message finds no room.
async fn begin(file: &Path) {
    let store = Arc::new(JsonlStore::flat(file.parent().unwrap().join("sessions")));
    let mut log = SessionLog::create(&Host::system(), store, NewSession::in_folder("/w")).await.unwrap();
    let error = log.append(user(&"x".repeat(100_000))).await.unwrap_err();
    say(&format!("full {error}"));
}

/// Calls the tool that the file names; tells the result and how much memory this process had at most.
async fn tool(file: &Path) {
    let ask: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let (folder, tool) = (Path::new(ask["folder"].as_str().unwrap()), ask["tool"].as_str().unwrap());
    let told = tool_calls::told(tool_calls::call(folder, tool, ask["input"].clone(), &Cancel::new()).await);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    say(&format!("peak {}", peak.trim_end_matches("kB").trim()));
    say(&format!("told {}", Value::from(told)));
}
