//! JavaScript extensions, run by the bundled host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::extension::ProviderChange;
use pinch_coding_agent::extension::ui::{Dialog, DialogReply, Ui, UiUpdate};
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::{ScriptedReply as Reply, ScriptedStep};
use pinch_stdx::cancel::Cancel;
use pinch_testing::logs::text_of;

use crate::extension_hooks::{failures, pull};
use crate::extension_process::{ProcessFixture, RecordingUi, program};

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension-host/pinch-extension-host.mjs");

/// Creates a session with an extension with this source; `None` without Node.
pub(crate) async fn stage(
    text: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> Option<(ProcessFixture, tempfile::TempDir)> {
    let node = program("node")?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("extension.mjs");
    std::fs::write(&file, text).unwrap();
    let command = [node.to_str().unwrap(), HOST, file.to_str().unwrap()].map(str::to_owned);
    Some((ProcessFixture::running(command.to_vec(), replies).await, folder))
}

/// Returns the states that extensions stored in the log.
pub(crate) fn states(stage: &ProcessFixture) -> Vec<String> {
    let entries = stage.scene.session.log().entries();
    let state = |body: &EntryBody| match body {
        EntryBody::Custom { custom_type, data } => Some(format!("{custom_type} {}", data.clone().unwrap_or_default())),
        _ => None,
    };
    entries.filter_map(|entry| state(&entry.body)).collect()
}

#[tokio::test]
async fn registrations_between_load_and_session_start_are_accepted() {
    let text = r#"
        export default function (pi) {
          const tool = (name) => ({ name, description: name, parameters: { type: "object" }, execute: async () => ({ content: name }) });
          pi.registerTool(tool("early"));
          for (const name of ["gone", "kept"]) pi.registerProvider(name, { baseUrl: "http://x" });
          pi.unregisterProvider("gone");
          // By then pinch has asked for the registrations, and there is no session yet.
          process.stdin.once("data", () => setImmediate(() => pi.registerTool(tool("between"))));
          pi.on("session_start", async () => {
            await pi.registerTool(tool("late"));
            let refused = "";
            try { pi.registerCommand("c", { handler() {} }); } catch (error) { refused = error.message; }
            await pi.appendEntry("refused", refused);
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let names: Vec<String> = stage.extensions.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["early", "between", "late"]);
    let changes = stage.extensions.take_provider_changes().into_iter().map(|(_, change)| change);
    let kept = |change| match change {
        ProviderChange::Register { name, .. } => name,
        ProviderChange::Unregister { name } => format!("without {name}"),
    };
    assert_eq!(changes.map(kept).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(states(&stage), ["refused \"pi.registerCommand must be called while the extension is loaded\""]);
}

#[tokio::test]
async fn what_extensions_look_up_is_there_at_once() {
    let text = r#"
        export default function (pi) {
          let early = "";
          try { pi.getActiveTools(); } catch (error) { early = error.message; }
          pi.registerFlag("plan", { type: "boolean", default: false });
          const order = [];
          pi.on("turn_start", () => order.push("start"));
          pi.on("turn_end", async (event, ctx) => {
            order.push("end");
            const user = ctx.sessionManager.getEntries().find((entry) => entry.message?.role === "user");
            await pi.setLabel(user.id, "here");
          });
          pi.on("agent_end", async (event, ctx) => {
            const log = ctx.sessionManager;
            const branch = log.getBranch();
            const [user, answer] = branch.filter((entry) => /user|assistant/.test(entry.message?.role));
            const tree = log.getTree();
            let node = tree[0];
            while (node.entry.id !== user.id) node = node.children[0];
            await pi.appendEntry("seen", {
              early, order,
              part: log.getBranch(user.id).at(-1).id === user.id,
              answer: [answer.message.content[0].text, log.getEntry(answer.id).id === answer.id],
              leaf: [log.getLeafEntry().type, branch.at(-1).id === log.getLeafId()],
              label: [log.getLabel(user.id), node.label, log.getLabel(answer.id) ?? null],
              model: ctx.model.id, idle: ctx.isIdle(), pending: ctx.hasPendingMessages(), prompt: typeof ctx.getSystemPrompt(),
              flag: pi.getFlag("plan"), level: pi.getThinkingLevel(), tools: pi.getActiveTools().length === pi.getAllTools().length,
              name: pi.getSessionName() ?? null,
            });
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let [seen] = &states(&stage)[..] else { panic!("{:?}", states(&stage)) };
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn looking_up_every_entry_takes_one_request() {
    let text = r#"
        import { Socket } from "node:net";
        export default function (pi) {
          let asked = 0;
          const { write } = Socket.prototype;
          Socket.prototype.write = function (line, ...more) {
            if (line.includes('"getEntries"')) asked++;
            return write.call(this, line, ...more);
          };
          const lookAtAll = ({ sessionManager }) => {
            for (let n = 0; n < 100; n++) for (const { id } of sessionManager.getEntries()) sessionManager.getLabel(id);
            return sessionManager.getEntries().length;
          };
          pi.on("agent_end", async (event, ctx) => {
            const before = lookAtAll(ctx);
            const once = asked;
            await pi.events.emit("waited", {});
            await pi.appendEntry("asked", { once, again: lookAtAll(ctx) >= before, twice: asked });
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(states(&stage), [r#"asked {"once":1,"again":true,"twice":2}"#]);
}

#[tokio::test]
async fn messages_that_arrive_during_a_lookup_are_handled_after_it() {
    let text = r#"
        export default function (pi) {
          const seen = [];
          pi.on("message_update", (event, ctx) => {
            const n = ctx.sessionManager.getEntries().length;
            seen.push(event.assistantMessageEvent.type);
          });
          pi.registerTool({
            name: "look", description: "Looks", parameters: { type: "object" },
            // Two calls at the same time, and each looks up a lot.
            async execute(id, params, signal, update, ctx) {
              for (let n = 0; n < 50; n++) ctx.sessionManager.getBranch();
              return { content: id };
            },
          });
          pi.on("agent_end", async () => {
            await pi.appendEntry("seen", seen.filter((type, at) => type !== seen[at - 1]).join(" "));
          });
        }"#;
    let call = |id: &str| ScriptedStep::ToolCall { id: id.into(), name: "look".into(), arguments: JsonObject::new() };
    let calls = Reply { steps: vec![call("c1"), call("c2")], ..Reply::default() };
    let Some((mut stage, _folder)) = stage(text, [calls, Reply::text("done")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    insta::assert_snapshot!(states(&stage).join("\n"));
}

#[tokio::test]
async fn a_failing_notification_handler_is_reported() {
    let text = r#"
        export default function (pi) {
          pi.on("turn_start", () => { throw new Error("broken"); });
          // Notifications are handled in order, so the handler before this one is awaited.
          pi.on("agent_end", () => {});
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    let failed = failures(&stage.ask("hi").await);
    let failed: Vec<_> = failed.iter().map(|failure| (failure.event.as_str(), failure.error.as_str())).collect();
    assert_eq!(failed, [("turn_start", "broken")]);
}

#[tokio::test]
async fn notifications_before_the_end_are_handled_completely() {
    let text = r#"
        export default function (pi) {
          pi.on("turn_start", async () => {
            await new Promise((done) => setTimeout(done, 300));
            throw new Error("late");
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    stage.ask("hi").await;
    let extensions = stage.scene.session.control().extensions().clone();
    extensions.close().await;
    let failed: Vec<_> = extensions.take_failures().into_iter().map(|failure| failure.error).collect();
    assert_eq!(failed, ["late"]);
}

#[tokio::test]
async fn all_handlers_of_a_file_take_effect() {
    let text = r#"
        export default function (pi) {
          const say = (content) => ({ customType: "c", content, display: true });
          pi.on("before_agent_start", () => ({ message: say("one"), systemPrompt: "first" }));
          pi.on("before_agent_start", (event) => ({ message: say("two"), systemPrompt: event.systemPrompt + "+second" }));
          const off = pi.on("before_agent_start", () => ({ message: say("never") }));
          off();
          pi.on("turn_end", () => ({ entries: [{ type: "custom", customType: "a", data: 1 }] }));
          pi.on("turn_end", (event) => ({ entries: [...event.entries, { type: "custom", customType: "b", data: event.outcome }] }));
          let n = 0;
          pi.on("agent_before_settle", () => {
            if (n++ > 0) return;
            return { entries: [{ type: "custom_message", customType: "c", content: "more", display: true }], continue: true };
          });
          pi.on("context_with_system", (event) => ({ messages: [...event.messages, { role: "user", content: "last", timestamp: 0 }] }));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("1"), Reply::text("2")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(stage.texts(), ["system", "hi", "custom", "custom", "1", "custom", "2"]);
    let texts: Vec<String> = stage.scene.provider.requests()[1]
        .messages
        .iter()
        .filter_map(|message| match &**message {
            Message::User(user) => Some(user.content.text("")),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["hi", "one", "two", "more", "last"]);
    let Message::System(asked) = &*stage.scene.provider.requests()[0].messages[0] else { panic!() };
    assert_eq!(asked.content.text(""), "first+second");
    assert_eq!(states(&stage), ["a 1", "b \"completed\"", "a 1", "b \"completed\""]);
    stage.extensions.close().await;
}

#[tokio::test]
async fn a_script_is_notified_of_dialogs() {
    let text = r#"
        export default function (pi) {
          for (const name of ["ui_prompt_start", "ui_prompt_end"]) {
            pi.on(name, (event) => pi.appendEntry(event.type, `${event.reason} ${event.kind} ${event.title}`));
          }
          pi.registerCommand("ask", {
            handler: (args, ctx) => ctx.ui.confirm("Sure?", ""),
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, []).await else { return };
    stage.extensions.set_ui(Arc::new(RecordingUi::default()));
    assert_eq!(failures(&stage.ask("/ask").await), []);
    let until = Instant::now() + Duration::from_secs(20);
    let recorded = loop {
        pull(stage.scene.session.run_requests(&Cancel::new())).await;
        let recorded = states(&stage);
        if recorded.len() == 2 {
            break recorded;
        }
        assert!(Instant::now() < until, "{recorded:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let dialog = "\"ui_prompt confirm Sure?\"";
    assert_eq!(recorded, [format!("ui_prompt_start {dialog}"), format!("ui_prompt_end {dialog}")]);
}

/// A text with every character that some program treats as a line break.
const BREAKS: &str = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\rg\r\nh";

#[tokio::test]
async fn unicode_separators_do_not_end_a_message() {
    let text = r#"
        export default function (pi) {
          pi.on("before_agent_start", (event) => ({ message: { customType: "c", content: event.prompt, display: true } }));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask(BREAKS).await), []);
    let echoed = stage.scene.session.log().entries().find_map(|entry| match &entry.body {
        EntryBody::CustomMessage(message) => Some(message.content.text("")),
        _ => None,
    });
    assert_eq!(echoed.as_deref(), Some(BREAKS));
}

/// Escaping spares other hosts and languages the separators; this host also accepts them unescaped.
#[tokio::test]
async fn the_host_splits_at_line_feeds_only() {
    use std::io::Write as _;
    let Some(node) = program("node") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("extension.mjs");
    std::fs::write(&file, "export default function () {}").unwrap();
    let mut child = std::process::Command::new(node)
        .args([HOST.as_ref(), file.as_os_str()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let message = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": BREAKS, "params": {}}).to_string();
    assert!(message.contains('\u{2028}'));
    let mut stdin = child.stdin.take().unwrap();
    for piece in message.as_bytes().chunks(3) {
        stdin.write_all(piece).unwrap();
        stdin.flush().unwrap();
    }
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.success(), &answer["id"]), (true, &serde_json::json!(7)), "{answer}");
}

/// Shows dialogs that nobody answers.
struct SilentUi;

impl Ui for SilentUi {
    fn ask<'a>(&'a self, _: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(std::future::pending())
    }

    fn show(&self, _: UiUpdate) {}
}

#[tokio::test]
async fn programs_and_dialogs_end_with_their_signal() {
    let text = r#"
        export default function (pi) {
          pi.on("agent_end", async (event, ctx) => {
            const stop = new AbortController();
            const [ran, early, chosen] = [
              pi.exec("sleep", ["30"], { cwd: "/", signal: stop.signal }),
              pi.exec("sleep", ["30"], { cwd: "/", signal: AbortSignal.abort() }),
              ctx.ui.select("Which?", ["a", "b"], { signal: stop.signal }),
            ];
            setTimeout(() => stop.abort(), 50);
            await pi.appendEntry("ended", [(await ran).killed, (await early).killed, (await chosen) ?? null]);
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    stage.extensions.set_ui(Arc::new(SilentUi));
    let began = Instant::now();
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(states(&stage), ["ended [true,true,null]"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn without_a_registry_extensions_see_the_model_of_the_session() {
    let text = r#"
        export default function (pi) {
          pi.on("agent_end", async (event, ctx) => {
            const registry = ctx.modelRegistry;
            const [model] = registry.getAvailable();
            const messages = [{ role: "user", content: "And you?", timestamp: 0 }];
            const answer = await registry.complete(ctx.model, { messages });
            let refused = "";
            try {
              await registry.complete(model, { messages }, { cacheRetention: "ever" });
            } catch (error) {
              refused = error.message;
            }
            await pi.appendEntry("seen", {
              same: model.id === ctx.model.id, n: registry.getAll().length, keys: await registry.getApiKeyAndHeaders(model),
              answer: answer.content[0].text, refused, n_entries: ctx.sessionManager.getEntries().length,
            });
          });
        }"#;
    let replies = [Reply::text("ok"), Reply::text("Fine.")];
    let Some((mut stage, _folder)) = stage(text, replies).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let [seen] = &states(&stage)[..] else { panic!("{:?}", states(&stage)) };
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn a_failed_request_that_nobody_waits_for_is_reported() {
    let text = r#"
        export default function (pi) {
          pi.on("turn_end", () => void pi.setThinkingLevel("huge"));
          pi.on("agent_end", () => pi.appendEntry("seen", "still here"));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    let failures = failures(&stage.ask("hi").await);
    assert_eq!(states(&stage), [r#"seen "still here""#]);
    let [failure] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((failure.event.as_str(), failure.error.as_str()), ("promise", "Unknown level: huge"));
}

#[tokio::test]
async fn a_burst_of_requests_that_are_done_at_once_is_answered() {
    let text = r#"
        export default function (pi) {
          pi.on("agent_end", async () => {
            const asked = Array.from({ length: 500 }, (_, n) => pi.events.emit("count", n));
            const answers = await Promise.allSettled(asked);
            const refused = answers.filter((answer) => answer.status === "rejected").length;
            await pi.appendEntry("burst", { refused });
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(states(&stage), [r#"burst {"refused":0}"#]);
}

#[tokio::test]
async fn answers_may_be_longer_than_other_lines() {
    let text = r#"
        export default function (pi) {
          pi.on("agent_end", async (event, ctx) => {
            for (let n = 0; n < 2; n++) await pi.appendEntry("big", "x".repeat(9 << 20));
          });
          pi.registerCommand("count", { async handler(args, ctx) {
            await pi.setSessionName(`${JSON.stringify(ctx.sessionManager.getEntries()).length >> 20} MiB`);
          } });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(failures(&stage.ask("/count").await), []);
    assert_eq!(stage.scene.session.log().name().as_deref(), Some("18 MiB"));
}

#[tokio::test]
async fn a_handler_learns_of_the_compaction_that_it_requested() {
    let text = r#"
        export default function (pi) {
          const seen = [];
          pi.on("session_compact", ({ type, ...event }) => {
            const { id, parentId, timestamp, firstKeptEntryId, ...entry } = event.compactionEntry;
            const ids = [id, parentId, timestamp, firstKeptEntryId].map((one) => typeof one);
            seen.push({ ...event, compactionEntry: entry, ids });
          });
          pi.on("session_compact_failed", ({ type, ...event }) => void seen.push(event));
          pi.on("agent_end", (event, ctx) => {
            const compact = (next) => ctx.compact({
              customInstructions: "f",
              onComplete: (result) => { seen.push(Object.keys(result)); next(); },
              onError: (error) => { seen.push(error.message); next(); },
            });
            if (seen.length === 0) seen.push(compact(() => compact(() => pi.appendEntry("seen", seen))) ?? null);
          });
        }"#;
    let replies = [Reply::text("1"), Reply::text("SUMMARY"), Reply::text("S2")];
    let Some((mut stage, _folder)) = stage(text, replies).await else { return };
    stage.scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    assert_eq!(failures(&stage.ask("hi").await), []);
    // The session answers what the callbacks ask for.
    let deadline = Instant::now() + Duration::from_secs(10);
    while states(&stage).is_empty() && Instant::now() < deadline {
        pull(stage.scene.session.run_requests(&Cancel::new())).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    insta::assert_snapshot!(states(&stage).join("\n"));
}

#[tokio::test]
async fn an_extension_adds_sections_to_the_system_prompt_and_reads_what_it_is_made_of() {
    let text = r#"
        export default function (pi) {
          pi.on("before_agent_start", (event, ctx) => {
            const { selectedTools, sections } = event.systemPromptOptions;
            sections.guidance = `Tools: ${selectedTools}`;
            let refused;
            try { selectedTools.push("x"); } catch (error) { refused = error.name; }
            pi.appendEntry("start", [event.messageType, refused]);
          });
          pi.registerCommand("look", { handler: (args, ctx) => pi.appendEntry("look", Object.keys(ctx.getSystemPromptOptions())) });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("1")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(failures(&stage.ask("/look").await), []);
    let request = stage.scene.provider.requests().remove(0);
    let Message::System(sent) = &*request.messages[0] else { panic!("{request:?}") };
    insta::assert_snapshot!(format!("{}\n{}", states(&stage).join("\n"), sent.content.text("")));
}

#[tokio::test]
async fn a_session_manager_shows_what_the_model_sees() {
    let text = r#"
        export default function (pi) {
          let preview;
          pi.on("turn_end", ({ context }) => {
            const { contextEntries, contextMessages, llmMessages, canContinue } = context;
            preview = [contextEntries.length, contextMessages.length, llmMessages.length, canContinue];
          });
          pi.on("agent_end", (event, { sessionManager: log }) => {
            const { entries, messages, thinkingLevel } = log.buildSessionProjection();
            const first = log.getEntries()[0];
            pi.appendEntry("seen", {
              header: Object.keys(log.getHeader()), isOurs: log.getHeader().id === log.getSessionId(),
              entries: log.buildContextEntries().map(({ type }) => type), count: log.getEntryCount(),
              projected: entries.map((entry) => entry.messages.map(({ role }) => role).join()),
              roles: messages.map(({ role }) => role), same: log.buildSessionContext().messages.length === messages.length,
              preview, thinkingLevel, children: log.getChildren(first.id).length,
            });
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("1")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    insta::assert_snapshot!(states(&stage).join("\n"));
}

#[tokio::test]
async fn a_command_prepares_the_next_session_and_goes_on_in_it() {
    let text = r#"
        export default function (pi) {
          pi.on("session_start", ({ reason }, { sessionManager: log }) => {
            if (reason === "new") pi.appendEntry("start", log.getEntries().map(({ type }) => type));
          });
          pi.registerCommand("hand", { handler: async (args, ctx) => {
            const before = ctx.sessionManager.getSessionId();
            await ctx.newSession({
              setup: async (log) => {
                log.appendMessage({ role: "user", content: [{ type: "text", text: "before" }], timestamp: 1 });
                log.appendSessionInfo("handed over");
              },
              withSession: async (next) => {
                const { sessionManager: log } = next;
                const content = `${log.getSessionId() !== before} ${log.getSessionName()}`;
                await next.sendMessage({ customType: "note", content, display: true });
                await next.sendUserMessage("go on");
              },
            });
          } });
          pi.registerCommand("bad", { handler: (args, ctx) => ctx.newSession({ setup: (log) => log.appendMessage("text") }) });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("1"), Reply::text("2")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(failures(&stage.ask("/hand").await), []);
    let request = stage.scene.provider.requests().pop().unwrap();
    let messages = request.messages.iter().filter(|message| !matches!(***message, Message::System(_)));
    let texts: Vec<String> = messages.map(|message| text_of(message)).collect();
    assert_eq!(texts, ["before", "true handed over", "go on"]);
    assert_eq!(states(&stage), [r#"start ["message","session_info","model_change","thinking_level_change"]"#]);
    let failed = failures(&stage.ask("/bad").await);
    assert!(failed[0].error.contains("cannot begin with this entry of type message"), "{failed:?}");
}
