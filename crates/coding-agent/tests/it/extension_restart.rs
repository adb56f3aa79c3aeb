//! JavaScript extensions are loaded anew for every session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pinch_coding_agent::extension::OutputListener;
use pinch_coding_agent::runtime::SessionTarget;
use pinch_coding_agent::session::create::ModelChoice;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use crate::extension_process::program;
use crate::rpc::RpcTestClient;

/// Notes what happens to it, with the number of sessions its variables have seen.
const COUNTER: &str = r#"
import { appendFileSync } from "node:fs";
const note = (text) => appendFileSync(new URL("../notes", import.meta.url), `${text}\n`);
let n = 0;
export default function (pi) {
  note("load");
  pi.on("session_start", ({ reason, previousSessionFile }) => note(`start ${reason} ${++n} ${previousSessionFile ? "after another" : "first"}`));
  pi.on("session_shutdown", ({ reason, targetSessionFile }) => note(`shutdown ${reason} ${n} ${targetSessionFile ? "for another" : "last"}`));
  pi.registerCommand("next", {
    handler: async (args, ctx) => {
      await ctx.newSession({
        withSession: async (fresh) => {
          const errors = [];
          for (const look of [() => ctx.isIdle(), () => pi.getSessionName(), () => fresh.isIdle()]) {
            try { look(); errors.push("fine"); } catch (error) { errors.push(error.message.includes("stale") ? "stale" : error.message); }
          }
          note(`within ${n} ${errors.join(" ")}`);
          if (args === "twice") await fresh.newSession({ withSession: async (last) => note(`second ${last.isIdle()}`) });
        },
      });
      note("command ends");
    },
  });
  pi.registerCommand("again", { handler: (args, ctx) => ctx.reload() });
}
"#;

struct Restarted {
    client: RpcTestClient,
    notes: PathBuf,
}

impl Restarted {
    async fn with(source: &str) -> Option<Self> {
        Some(Self::printing(source).await?.0)
    }

    /// Also returns what the extension prints.
    async fn printing(source: &str) -> Option<(Self, Arc<Mutex<Vec<String>>>)> {
        let printed = Arc::<Mutex<Vec<String>>>::default();
        let to = Arc::clone(&printed);
        let listener = OutputListener::new(move |line| to.lock().unwrap().push(line.to_owned()));
        program("node")?;
        let folder = tempfile::tempdir().unwrap();
        let extensions = folder.path().join("agent/extensions");
        std::fs::create_dir_all(&extensions).unwrap();
        std::fs::write(extensions.join("counter.mjs"), source).unwrap();
        std::fs::rename(extensions.join("counter.mjs"), extensions.join("counter.js")).unwrap();
        std::fs::write(folder.path().join("agent/package.json"), r#"{"type":"module"}"#).unwrap();
        let notes = folder.path().join("agent/notes");
        std::fs::write(&notes, "").unwrap();
        let home = folder.path().to_owned();
        let replies = (0..9).map(|n| ScriptedReply::text(format!("r{n}")));
        let client = RpcTestClient::adjusted(folder, replies, SessionTarget::New, |options| {
            let env = Host::system().env().clone();
            options.services.host = Host::builder().seed(1).home(&home).temp(&home).env(env).build();
            options.session.extension_output = Some(listener);
            options.session.model = ModelChoice::Exact(Arc::new(ScriptedProvider::model("scripted")));
        });
        Some((Self { client, notes }, printed))
    }

    /// Returns what the extension has noted since the last call, once the last of it ends this way.
    async fn noted(&self, last: &str) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let text = std::fs::read_to_string(&self.notes).unwrap();
            if text.trim_end().ends_with(last) {
                std::fs::write(&self.notes, "").unwrap();
                return text.lines().map(str::to_owned).collect();
            }
            assert!(Instant::now() < until, "{text}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn prompt(&mut self, text: &str) {
        self.client.ask(json!({"id": text, "type": "prompt", "message": text})).await;
        self.client.event("agent_settled").await;
    }

    async fn state(&mut self) -> Value {
        self.client.ask(json!({"id": "state", "type": "get_state"})).await["data"].clone()
    }
}

#[tokio::test]
async fn extensions_are_loaded_anew_for_every_session() {
    let Some(mut restarted) = Restarted::with(COUNTER).await else { return };
    restarted.prompt("hi").await;
    assert_eq!(restarted.noted("first").await, ["load", "start startup 1 first"]);
    let first = restarted.state().await["sessionFile"].clone();
    let points = restarted.client.ask(json!({"id": "p", "type": "get_fork_messages"})).await;
    let entry = points["data"]["messages"][0]["entryId"].clone();

    restarted.client.ask(json!({"id": 1, "type": "clone"})).await;
    let fork = ["shutdown fork 1 for another", "load", "start fork 1 after another"];
    assert_eq!(restarted.noted("start fork 1 after another").await, fork);
    restarted.client.ask(json!({"id": 2, "type": "fork", "entryId": entry})).await;
    assert_eq!(restarted.noted("start fork 1 after another").await, fork);
    let begun = Instant::now();
    restarted.client.ask(json!({"id": 3, "type": "new_session"})).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    let new = ["shutdown new 1 for another", "load", "start new 1 after another"];
    assert_eq!(restarted.noted("start new 1 after another").await, new);
    let switched = restarted.client.ask(json!({"id": 4, "type": "switch_session", "sessionPath": first})).await;
    assert_eq!(switched["data"]["cancelled"], false);
    let resume = ["shutdown resume 1 for another", "load", "start resume 1 after another"];
    assert_eq!(restarted.noted("start resume 1 after another").await, resume);
    let (done, lines) = restarted.client.leave().await;
    done.unwrap();
    assert!(lines.iter().all(|line| line["type"] != "extension_error"));
}

#[tokio::test]
async fn a_command_that_replaces_the_session_goes_on_with_the_context_of_the_next_one() {
    let Some(mut restarted) = Restarted::with(COUNTER).await else { return };
    restarted.state().await;
    restarted.noted("first").await;
    restarted.client.ask(json!({"id": 1, "type": "prompt", "message": "/next"})).await;
    let once = [
        "shutdown new 1 for another",
        "load",
        "start new 1 after another",
        "within 1 stale stale fine",
        "command ends",
    ];
    assert_eq!(restarted.noted("command ends").await, once);
    restarted.client.ask(json!({"id": 2, "type": "prompt", "message": "/next twice"})).await;
    let twice = restarted.noted("command ends").await;
    assert_eq!(twice[..4], once[..4]);
    assert_eq!(twice[4..7], once[..3]);
    assert_eq!(twice[7..], ["second true", "command ends"]);
    let (done, lines) = restarted.client.leave().await;
    done.unwrap();
    assert!(lines.iter().all(|line| line["type"] != "extension_error"), "{lines:#?}");
}

#[tokio::test]
async fn extensions_are_loaded_anew_by_a_reload_and_after_one_that_failed() {
    let Some(mut restarted) = Restarted::with(COUNTER).await else { return };
    restarted.state().await;
    restarted.noted("first").await;
    let settings = restarted.client.folder.path().join("agent/settings.json");
    restarted.client.ask(json!({"id": 1, "type": "prompt", "message": "/again"})).await;
    let reload = ["shutdown reload 1 last", "load", "start reload 1 first"];
    assert_eq!(restarted.noted("start reload 1 first").await, reload);
    std::fs::write(&settings, r#"{"shellPath": "/nowhere/sh"}"#).unwrap();
    restarted.client.ask(json!({"id": 2, "type": "prompt", "message": "/again"})).await;
    // The shell is looked for when the extensions of the next session have been loaded, which is not started.
    let failed = ["shutdown reload 1 last", "load", "load", "start reload 1 first"];
    assert_eq!(restarted.noted("start reload 1 first").await, failed);
    restarted.prompt("hi").await;
    let (done, _) = restarted.client.leave().await;
    done.unwrap();
}

#[tokio::test]
async fn a_command_that_arrives_during_a_reload_may_reload_as_well() {
    let Some(restarted) = Restarted::with(COUNTER).await else { return };
    restarted.noted("first").await;
    restarted.client.say(json!({"id": 1, "type": "prompt", "message": "/again"})).await;
    let last = "shutdown reload 1 last";
    assert_eq!(restarted.noted(last).await, [last]);
    restarted.client.say(json!({"id": 2, "type": "prompt", "message": "/again"})).await;
    let mut noted = Vec::new();
    while noted.len() < 5 {
        noted.extend(restarted.noted("start reload 1 first").await);
    }
    assert_eq!(noted, ["load", "start reload 1 first", last, "load", "start reload 1 first"]);
    let (done, _) = restarted.client.leave().await;
    done.unwrap();
}

#[tokio::test]
async fn what_extensions_print_is_passed_on() {
    let source = r#"
        process.stdout.write("loaded\n");
        export default function (pi) {
          pi.on("session_start", ({ reason }) => { console.log(`log ${reason}`); console.error("error"); process.stdout.write("no end"); });
        }"#;
    let Some((stage, printed)) = Restarted::printing(source).await else { return };
    let mut client = stage.client;
    client.ask(json!({"id": 1, "type": "new_session"})).await;
    let (done, lines) = client.leave().await;
    done.unwrap();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let session =
        |reason: &str| ["loaded".to_owned(), format!("log {reason}"), "error".to_owned(), "no end".to_owned()];
    assert_eq!(*printed.lock().unwrap(), [session("startup"), session("new")].concat());
}
