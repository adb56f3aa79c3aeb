//! Long conversations of an embedded engine with llama.cpp, through a proxy on the loopback interface that records what they say.
//!
//! Three plans: in the first, the engine knows the window of the model and compacts before it is full. In the second, the configured window
//! is much larger than the server's context, a common mistake, so that the server refuses every prompt that no longer fits, and each
//! compaction is the repair of a failed attempt. The third is as the first, with a larger window, shorter texts and thousands of turns.
//!
//! The model cannot decide to call a tool. The proxy adds `tool_choice` to the first request of some runs, which makes the server's grammar
//! produce a call, and changes nothing else. The tool is the real one, on files in a temporary workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::StreamExt;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_embed::config::Config;
use pinch_embed::engine::Engine;
use pinch_embed::run::{RunError, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_llm::message::{Message, StopReason};
use pinch_stdx::host::Host;
use pinch_testing::server::{Exchange, Recorded, Server, ServerReply, Upstream};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::exchanges::{ReportedTokens, StoredSummary, check_prefixes, check_summaries, is_turn};
use super::prompts::{LlamaPrompt, TextLengths, prompt, write_files};
use super::server::{LlamaFormat, LlamaPython, LlamaServer, LlamaSettings};
use crate::interop::pi;
use crate::interop::table::ResultTable;

/// Number of runs of a conversation.
pub(super) const DEFAULT_RUNS: usize = 30;
/// Number of requests to the model, except for summaries, in the longest conversation.
pub(super) const DEFAULT_TURNS: usize = 2_000;
/// Session id of the conversation.
const SESSION: &str = "long";
/// Id of the token that ends an answer, and how much more likely it is made: by itself this model would hardly ever end one.
const END_TOKEN: (&str, u32) = ("1", 8);
/// Maximum tokens of a summary. The grammar ends it before.
const SUMMARY_TOKENS: u64 = 160;
/// A text of at most 160 characters: this model writes words one after the other until the limit cuts it off, which is no summary.
const SUMMARY_GRAMMAR: &str = "root ::= [a-zA-Z,. ]{40,160}";
/// Time limit of a run; the machine may be slow.
const RUN_LIMIT: Duration = Duration::from_secs(1_800);

/// A conversation.
#[derive(Clone, Debug)]
pub(super) struct TalkPlan {
    name: &'static str,
    /// The configured window, in tokens.
    window: u64,
    /// Reserved tokens of the window.
    reserve: u64,
    /// The server's context, in tokens.
    context: u64,
    texts: TextLengths,
    /// Maximum tokens of an answer. A call needs 33.
    answer_tokens: u64,
    length: TalkLength,
    /// A compaction is expected at least every so many runs or turns.
    until_compaction: usize,
}

/// How long a conversation is.
#[derive(Clone, Copy, Debug)]
enum TalkLength {
    Runs(usize),
    Turns(usize),
}

impl TalkPlan {
    /// A conversation that is compacted before the window is full. The engine refuses windows below 16 000 tokens, of which it can reserve
    /// half.
    pub(super) fn known_window(runs: usize) -> Self {
        Self {
            name: "known window",
            window: 16_000,
            reserve: 8_000,
            context: 16_384,
            texts: TextLengths { file: 700, message: 200 },
            answer_tokens: 96,
            length: TalkLength::Runs(runs),
            until_compaction: 6,
        }
    }

    /// A conversation that is compacted when the server refuses it, which takes longer.
    pub(super) fn wrong_window(runs: usize) -> Self {
        Self {
            name: "too large a window",
            window: 32_000,
            reserve: 4_000,
            context: 8_192,
            until_compaction: 15,
            ..Self::known_window(runs)
        }
    }

    /// A conversation of many short turns.
    pub(super) fn many_turns(turns: usize) -> Self {
        Self {
            name: "many turns",
            window: 32_000,
            reserve: 16_000,
            context: 32_768,
            texts: TextLengths { file: 60, message: 40 },
            answer_tokens: 40,
            length: TalkLength::Turns(turns),
            until_compaction: 200,
        }
    }

    /// Returns the minimum number of compactions.
    fn compactions(&self) -> usize {
        let (TalkLength::Runs(length) | TalkLength::Turns(length)) = self.length;
        length / self.until_compaction
    }

    /// Returns whether this many runs, in which the model has answered so often, are enough.
    fn is_over(&self, n_runs: usize, n_turns: usize) -> bool {
        match self.length {
            TalkLength::Runs(length) => n_runs >= length,
            TalkLength::Turns(length) => n_turns >= length,
        }
    }
}

/// Holds a conversation and checks it.
pub(super) fn check(
    runtime: &Runtime,
    python: &LlamaPython,
    plan: &TalkPlan,
    format: &LlamaFormat,
    table: &mut ResultTable,
) -> anyhow::Result<()> {
    let settings = LlamaSettings { context: plan.context, grammar: Some(SUMMARY_GRAMMAR) };
    let server = LlamaServer::start(python, settings)?;
    let (talk, held, log) = runtime.block_on(async {
        let talk = Talk::prepare(&server, plan, format).await?;
        let held = talk.hold(plan).await?;
        let log = open(&talk.session_file()).await?;
        anyhow::Ok((talk, held, log))
    })?;
    let checks = held.checks(plan).into_iter().chain(session_checks(&log, &talk.session_file()));
    for (what, result) in checks {
        table.row(plan.name, what, result.map_err(|why| format!("{why:#}")));
    }
    Ok(())
}

/// An engine that talks to the server through the proxy.
struct Talk {
    engine: Engine,
    upstream: Upstream,
    /// Whether the next turn has to call a tool.
    must_call: Arc<AtomicBool>,
    folder: tempfile::TempDir,
    _proxy: Server,
}

impl Talk {
    async fn prepare(server: &LlamaServer, plan: &TalkPlan, format: &LlamaFormat) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        write_files(&folder.path().join("workspace"), plan.texts)?;
        let upstream = Upstream::new(&server.url);
        let must_call = Arc::new(AtomicBool::new(false));
        let proxy = Server::start().await.context("cannot start the proxy")?;
        proxy.answer_with({
            let (upstream, must_call, forced) = (upstream.clone(), Arc::clone(&must_call), format.forced.clone());
            move |request| {
                let forces = is_turn(request) && must_call.swap(false, Ordering::Relaxed);
                let request = if forces { forced_to_call(request, &forced) } else { request.clone() };
                Some(ServerReply::forward(&upstream, request))
            }
        });
        let engine = engine(folder.path(), &format!("{}{}", proxy.url(), format.path), plan, format)?;
        Ok(Self { engine, upstream, must_call, folder, _proxy: proxy })
    }

    fn session_file(&self) -> PathBuf {
        self.folder.path().join(format!("state/agents/main/sessions/{SESSION}.jsonl"))
    }

    /// Runs one prompt after the other.
    async fn hold(&self, plan: &TalkPlan) -> anyhow::Result<HeldTalk> {
        let began = Instant::now();
        let mut held = HeldTalk::default();
        let (mut nth, mut n_turns) = (0, 0);
        while !plan.is_over(nth, n_turns) {
            let LlamaPrompt { text, calls } = prompt(nth, plan.texts);
            self.must_call.store(calls, Ordering::Relaxed);
            let (at, since) = (self.upstream.n_exchanges(), Instant::now());
            let mut run = self.engine.run(self.engine.request(SESSION, None, None, &text));
            while let Some(event) = run.next().await {
                held.observe(&event, self)?;
            }
            let result = run.result();
            let new = self.upstream.exchanges_since(at);
            n_turns += new.iter().filter(|exchange| exchange.status == 200 && is_turn(&exchange.request)).count();
            println!("  run {nth}: {}", described(&new, since.elapsed()));
            held.problems.extend(problem_of(nth, &result));
            nth += 1;
        }
        (held.n_runs, held.n_turns) = (nth, n_turns);
        held.exchanges = self.upstream.exchanges_since(0);
        held.took = began.elapsed();
        Ok(held)
    }
}

/// Returns a request that forces a call. Everything else stays as it is, byte by byte.
fn forced_to_call(request: &Recorded, forced: &Value) -> Recorded {
    let mut request = request.clone();
    let member = format!("\"tool_choice\":{forced},");
    let start = request.body.iter().position(|byte| *byte == b'{').map_or(0, |brace| brace + 1);
    request.body.splice(start..start, member.into_bytes());
    request
}

fn engine(folder: &Path, base_url: &str, plan: &TalkPlan, format: &LlamaFormat) -> anyhow::Result<Engine> {
    let document = json!({
        "agents": {"defaults": {
            "workspace": folder.join("workspace"),
            "model": "llama/gemma",
            "models": {"llama/gemma": {"params": {
                "maxTokens": plan.answer_tokens, "temperature": 0, "logit_bias": {END_TOKEN.0: END_TOKEN.1},
            }}},
            "timeoutSeconds": RUN_LIMIT.as_secs(),
            "compaction": {"reserveTokensFloor": plan.reserve, "qualityGuard": {"enabled": true, "maxRetries": 1}},
        }},
        "models": {"providers": {"llama": {
            "baseUrl": base_url, "api": format.api, "apiKey": "none",
            "models": [{"id": "gemma", "contextWindow": plan.window, "maxTokens": SUMMARY_TOKENS}],
        }}},
    });
    let settings = json!({"compaction": {"reserveTokens": plan.reserve, "keepRecentTokens": 400}});
    let agent_dir = folder.join("state/agents/main/agent");
    std::fs::create_dir_all(&agent_dir)?;
    std::fs::write(agent_dir.join("settings.json"), settings.to_string())?;
    let document = document.as_object().cloned().unwrap_or_default();
    let (config, problems) = Config::from_document(document, &folder.join("pinch.json"));
    ensure!(problems.is_empty(), "{problems:?}");
    // No environment: the keys of the person who runs this must not be used.
    let host = Host::builder().home(folder).temp(folder).build();
    let engine = Engine::builder(folder.join("state")).host(host).config(config).builtin_tools(["read"]).build();
    ensure!(engine.problems().is_empty(), "{:?}", engine.problems());
    Ok(engine)
}

/// Describes the requests of a run.
fn described(exchanges: &[Exchange], took: Duration) -> String {
    let one = |exchange: &Exchange| {
        let ReportedTokens { prompt, cached, answer } = ReportedTokens::of(exchange);
        let what = if is_turn(&exchange.request) { "turn" } else { "summary" };
        match exchange.status {
            200 => format!("{what} {prompt} tokens ({cached} cached) + {answer}"),
            status => format!("{what} refused ({status})"),
        }
    };
    let all: Vec<String> = exchanges.iter().map(one).collect();
    format!("{}, {:.1} s", all.join(", "), took.as_secs_f64())
}

/// Returns what went wrong in a run, if a person would notice.
fn problem_of(nth: usize, result: &Result<RunResult, RunError>) -> Option<String> {
    let result = match result {
        Ok(result) => result,
        Err(error) => return Some(format!("run {nth} failed: {error}")),
    };
    if let Some(error) = &result.meta.error {
        return Some(format!("run {nth} ended with {}: {}", error.kind.as_str(), error.message));
    }
    // The model also makes nonsensical calls. A note about one of them is no failure of the run.
    let n_notes = usize::from(result.meta.unresolved_tool.is_some());
    let failure = result.payloads.iter().filter(|payload| payload.is_error).nth(n_notes);
    failure.map(|payload| format!("run {nth} reports {:?}", payload.reply.text))
}

/// What happened in a conversation.
#[derive(Default)]
struct HeldTalk {
    n_runs: usize,
    /// Number of answered requests, except for those for summaries.
    n_turns: usize,
    exchanges: Vec<Exchange>,
    summaries: Vec<StoredSummary>,
    problems: Vec<String>,
    /// Compactions that failed, and why.
    failed_compactions: Vec<String>,
    took: Duration,
}

/// A check and its result.
type TalkCheck = (&'static str, anyhow::Result<String>);

impl HeldTalk {
    /// Looks for new compactions. The engine continues only when the next event is requested, so the numbers of requests are exact.
    fn observe(&mut self, event: &RunEvent, talk: &Talk) -> anyhow::Result<()> {
        match event {
            RunEvent::Session(event) => match &**event {
                SessionEvent::CompactionEnd { error_message: Some(why), .. } => {
                    self.failed_compactions.push(why.clone());
                }
                SessionEvent::CompactionEnd { .. } => {}
                _ => return Ok(()),
            },
            RunEvent::Repaired(_) => {}
            _ => return Ok(()),
        }
        let n_requests = talk.upstream.n_exchanges();
        let stored = stored_summaries(&talk.session_file())?;
        let new = stored.into_iter().skip(self.summaries.len()).map(|text| StoredSummary { text, n_requests });
        self.summaries.extend(new.collect::<Vec<_>>());
        Ok(())
    }

    fn checks(&self, plan: &TalkPlan) -> [TalkCheck; 6] {
        let summaries = check_summaries(&self.exchanges, &self.summaries).map(|n| format!("{n} summaries"));
        let prefixes = check_prefixes(&self.exchanges, &self.summaries).map(|n| format!("{n} requests"));
        [
            ("no failure reaches the person", self.check_runs()),
            ("is compacted", self.check_compactions(plan)),
            ("summaries are in the next request", summaries),
            ("prompts continue byte by byte", prefixes),
            ("tokens stay within the context", self.check_tokens(plan)),
            ("prompts are in the cache", self.check_cache()),
        ]
    }

    fn check_runs(&self) -> anyhow::Result<String> {
        ensure!(self.problems.is_empty(), "{}", self.problems.join("\n    "));
        Ok(format!("{} runs of {} turns in {} s", self.n_runs, self.n_turns, self.took.as_secs()))
    }

    fn check_compactions(&self, plan: &TalkPlan) -> anyhow::Result<String> {
        let n_refused = self.exchanges.iter().filter(|exchange| exchange.status != 200).count();
        let told = format!(
            "{} compactions, {} failed, {n_refused} refused requests",
            self.summaries.len(),
            self.failed_compactions.len()
        );
        ensure!(self.summaries.len() >= plan.compactions(), "{told}: {:?}", self.failed_compactions);
        Ok(told)
    }

    fn check_tokens(&self, plan: &TalkPlan) -> anyhow::Result<String> {
        let all = self.exchanges.iter().filter(|exchange| exchange.status == 200).map(ReportedTokens::of);
        let most = all.map(|tokens| tokens.prompt + tokens.answer).max().unwrap_or(0);
        ensure!(most > 0, "the server reports no tokens");
        ensure!(most <= plan.context, "{most} tokens in a context of {}", plan.context);
        Ok(format!("at most {most} of {}", plan.context))
    }

    /// Checks that turns which continue the previous one find most of its prompt in the cache.
    fn check_cache(&self) -> anyhow::Result<String> {
        let is_answered_turn = |exchange: &&Exchange| exchange.status == 200 && is_turn(&exchange.request);
        let turns: Vec<ReportedTokens> =
            self.exchanges.iter().filter(is_answered_turn).map(ReportedTokens::of).collect();
        let sum = |of: fn(&ReportedTokens) -> u64| turns.iter().map(of).sum::<u64>();
        let (prompt, cached) = (sum(|turn| turn.prompt), sum(|turn| turn.cached));
        let told = format!("{cached} of {prompt} tokens of {} turns", turns.len());
        ensure!(cached * 2 > prompt, "only {told}");
        Ok(told)
    }
}

/// Returns the summaries in a session's file, oldest first.
fn stored_summaries(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let compactions = text.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["type"] == "compaction").then(|| line["summary"].as_str().unwrap_or_default().to_owned())
    });
    Ok(compactions.collect())
}

async fn open(path: &Path) -> anyhow::Result<SessionLog> {
    let store = Arc::new(JsonlStore::flat(path.parent().context("no directory")?));
    Ok(SessionLog::open(&Host::system(), store, &SessionRef::Path(path.to_owned()), "/").await?)
}

fn session_checks(log: &SessionLog, path: &Path) -> [TalkCheck; 3] {
    [
        ("tools answer", check_tools(log)),
        ("pinch opens the session", check_session(log)),
        ("pi opens the session", pi::reads_alike(path)),
    ]
}

/// Checks that calls were made, and that each finished one has a result.
fn check_tools(log: &SessionLog) -> anyhow::Result<String> {
    let mut calls: Vec<String> = Vec::new();
    let (mut n_results, mut n_failed) = (0, 0);
    for entry in log.entries() {
        let EntryBody::Message(message) = &entry.body else { continue };
        match &**message {
            Message::Assistant(answer) if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) => {
                calls.extend(answer.tool_calls().map(|call| call.id.to_string()));
            }
            Message::ToolResult(result) => {
                let id = result.tool_call_id.to_string();
                let at = calls.iter().position(|call| *call == id).with_context(|| format!("no call {id}"))?;
                calls.remove(at);
                n_results += 1;
                n_failed += usize::from(result.is_error);
            }
            _ => {}
        }
    }
    ensure!(calls.is_empty(), "calls without a result: {calls:?}");
    ensure!(n_results > n_failed, "{n_results} results, all of them failures");
    Ok(format!("{n_results} results, {n_failed} of nonsensical calls"))
}

fn check_session(log: &SessionLog) -> anyhow::Result<String> {
    ensure!(
        log.n_skipped() == 0 && log.problems().is_empty(),
        "{} skipped lines, {:?}",
        log.n_skipped(),
        log.problems()
    );
    Ok(format!("{} entries, {} messages in the context", log.entries().count(), log.context().messages.len()))
}
