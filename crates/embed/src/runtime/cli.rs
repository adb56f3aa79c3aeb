//! Command-line agents in place of a model: Claude Code, Codex, and others that take a prompt and print an answer.
//!
//! A backend keeps the conversation itself and resumes it by its id. The transcript is written as by every other runtime, so that a session
//! can continue with a model. Only child processes of this runtime are ever stopped, with all their descendants.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{SessionStore, StoreError};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::{AssistantMessage, Block, Content, Image, Message, UserMessage};
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::pull::pulled;
use pinch_tools::policy::PermissionMode;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::native::{history, store_error};
use super::{AttemptEvent, AttemptRuntime, Attempts, Capabilities, QueueRefusal, RunControl};
use crate::config::cli::{CliBackend, CliOutput};
use crate::plugin::LlmInput;
use crate::run::decide::{Repair, RepairOutcome};
use crate::run::outcome::{AttemptEnd, AttemptStart, FailureStage};
use crate::run::scope::RunScope;
use crate::run::{AttemptOutcome, AttemptPlan, RunError, RunRequest};

pub mod args;
pub mod output;
mod printed;
mod process;

use args::{CliTurn, command_line};
use output::CliReply;
use printed::PrintedAnswer;
use process::{CliEnd, CliProcess};

/// Type of the transcript entry with a backend's session id.
const CLI_SESSION: &str = "pinch.cli-session";
/// The program has none of this engine's tools.
const NO_TOOLS: &str = "The tools of this conversation are disabled. Do not call any; answer in text.";

/// Runs command-line agents.
pub struct CliRuntime {
    store: Arc<dyn SessionStore>,
    /// Locks of backends that take one prompt at a time.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl CliRuntime {
    /// Creates a runtime that stores transcripts in this store.
    pub fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store, turns: Mutex::default() }
    }

    fn turn_of(&self, backend: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(backend.to_owned()).or_default())
    }
}

impl AttemptRuntime for CliRuntime {
    fn id(&self) -> &str {
        super::CLI
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.logs_prompt(true)
    }

    fn session_file(&self, request: &RunRequest) -> Option<PathBuf> {
        self.store.file_of(&request.session)
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        Box::pin(async move {
            let name = model.provider.as_str();
            let backend = scope.cli_backends.get(name).ok_or_else(|| {
                RunError::Config(format!(
                    "{name} is not a command-line agent. Add it to agents.defaults.cliBackends, or choose another runtime"
                ))
            })?;
            if scope.sandbox.is_some() {
                return Err(RunError::Config(format!(
                    "{name} uses its own tools, outside the sandbox that this run requires. Choose another model, or change agents.defaults.sandbox"
                )));
            }
            if let Some(mode) = scope.request.permission_mode.filter(|mode| *mode != PermissionMode::Full) {
                return Err(RunError::Config(format!(
                    "{name} uses its own tools, which do not follow the permission mode {}. Choose another model or mode",
                    mode.name()
                )));
            }
            if let Some(removed) = scope.tools.removal_of(&OWN_TOOLS, &model) {
                return Err(RunError::Config(format!(
                    "{name} uses its own tools, which do not follow the tool policy: {removed}. Choose another model, or change the policy"
                )));
            }
            if let Some(guard) = &scope.call_guard {
                return Err(RunError::Config(format!(
                    "{name} uses its own tools, which {guard} does not see. Choose another model, or remove the restriction"
                )));
            }
            let is_answering = Arc::new(AtomicBool::new(false));
            let attempts: Box<dyn Attempts + 'a> =
                Box::new(CliAttempts { runtime: self, scope, backend, model, is_answering });
            Ok(attempts)
        })
    }
}

/// Maximum length of an argument of a program on Linux, in bytes.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// What command-line agents can do by themselves, as tools of ours.
const OWN_TOOLS: [&str; 4] = ["read", "write", "edit", "exec"];

/// Attempts with one backend.
struct CliAttempts<'r> {
    runtime: &'r CliRuntime,
    scope: &'r RunScope,
    backend: &'r CliBackend,
    model: Arc<Model>,
    is_answering: Arc<AtomicBool>,
}

/// Prompt for the program.
struct CliPrompt {
    prompt: String,
    system: String,
    images: Vec<String>,
    /// Keeps the images until the program has exited.
    _dir: Option<TempDir>,
}

/// Outcome of an attempt.
enum CliOutcome {
    Answered(CliReply),
    Ended(AttemptEnd),
}

impl CliAttempts<'_> {
    fn name(&self) -> &str {
        self.model.provider.as_str()
    }

    /// Returns the backend's session id, if known.
    fn known_session(&self, log: &SessionLog) -> Option<String> {
        self.scope.cli_sessions.get(self.name()).or_else(|| {
            let entry = log.last_custom(CLI_SESSION).flatten()?;
            (entry["backend"] == self.name()).then(|| entry["sessionId"].as_str().map(str::to_owned)).flatten()
        })
    }

    async fn prepare(&self, log: &SessionLog) -> Result<CliPrompt, RunError> {
        let (scope, request) = (self.scope, &self.scope.request);
        let messages = log.context().messages;
        let prompt = scope.hooks.prepare(&request.prompt, &messages).await.prompt;
        let system = format!("{}\n\n{NO_TOOLS}", scope.prompt.for_model(&self.model)(&ToolSet::default()).as_sent());
        let (dir, images) = image_files(&request.images, scope)
            .map_err(|error| RunError::Internal(format!("cannot write images for {}: {error}", self.name())))?;
        scope.hooks.llm_input(|| LlmInput {
            provider: self.name().to_owned(),
            model: self.model.id.to_string(),
            system_prompt: Some(system.clone()),
            prompt: prompt.clone(),
            history: messages,
            n_images: images.len(),
        });
        Ok(CliPrompt { prompt, system, images, _dir: dir })
    }

    /// Returns how long the program may print nothing.
    fn silence(&self, resumes: bool) -> Duration {
        let limit = self.scope.request.timeout.unwrap_or(Duration::MAX);
        let share = |n: u32, at_least: u64, at_most: u64| {
            let share = limit.checked_mul(n).map_or(Duration::MAX, |share| share / 10);
            share.clamp(Duration::from_secs(at_least), Duration::from_secs(at_most))
        };
        match resumes {
            true => self.backend.resume_silence.unwrap_or_else(|| share(3, 60, 180)),
            false => self.backend.silence.unwrap_or_else(|| share(8, 180, 600)),
        }
    }

    /// Runs the program. If it no longer knows the conversation, a new one is begun, once.
    async fn ask(
        &self,
        prompt: &CliPrompt,
        known: Option<String>,
        cancel: &Cancel,
        answering: &mut PrintedAnswer<'_>,
    ) -> CliOutcome {
        let mut known = known;
        loop {
            let new = self.scope.host.ids().uuid_v4();
            let command = command_line(
                self.backend,
                &CliTurn {
                    model: self.model.id.as_str(),
                    system_prompt: Some(&prompt.system),
                    prompt: &prompt.prompt,
                    images: &prompt.images,
                    known_session: known.as_deref(),
                    new_session: &new,
                },
            );
            if let Some(n) = command.args.iter().map(String::len).find(|n| *n > MAX_ARGUMENT) {
                let text = format!(
                    "the arguments of {} are too long: one has {n} bytes, and {MAX_ARGUMENT} are possible. Shorten the workspace files of the \
                     system prompt, or set systemPromptWhen to never",
                    self.name()
                );
                let error = LlmError::new(self.model.provider.clone(), LlmErrorKind::Protocol, text);
                return CliOutcome::Ended(AttemptEnd::failed(FailureStage::Prompt, Arc::new(error)));
            }
            let usual = self.backend.output;
            let form = if command.resumes { self.backend.resume_output.unwrap_or(usual) } else { usual };
            let silence = self.silence(command.resumes);
            let process = CliProcess {
                program: &self.backend.command,
                args: &command.args,
                env: self.environment(),
                dir: &self.scope.workspace,
                input: command.input,
                silence,
            };
            let streams = form == CliOutput::JsonLines;
            let end = process::run(process, cancel, streams.then_some(&mut *answering)).await;
            let provider = &self.model.provider;
            let failed = |error: LlmError| CliOutcome::Ended(AttemptEnd::failed(FailureStage::Prompt, Arc::new(error)));
            match end {
                CliEnd::Exited { exit, stdout, .. } if exit.is_success() => {
                    let mut reply = output::parse(self.backend, form, &stdout);
                    reply.session_id = reply.session_id.or(command.session);
                    return CliOutcome::Answered(reply);
                }
                CliEnd::Exited { stdout, stderr, .. }
                    if command.resumes && output::has_lost_session(&format!("{stderr}\n{stdout}")) =>
                {
                    tracing::info!(
                        backend = self.name(),
                        "the program no longer knows the conversation; starting a new one"
                    );
                    known = None;
                }
                CliEnd::Exited { exit, stdout, stderr } => {
                    return failed(output::failure(provider, exit.status(), &stdout, &stderr));
                }
                CliEnd::Silent => {
                    let text =
                        format!("{} timed out: it printed nothing for {} seconds", self.name(), silence.as_secs());
                    return failed(LlmError::new(provider.clone(), LlmErrorKind::Timeout, text));
                }
                CliEnd::Stopped(reason) => return CliOutcome::Ended(AttemptEnd::stopped(reason, false)),
                CliEnd::NotStarted(why) => {
                    return failed(LlmError::new(provider.clone(), LlmErrorKind::Protocol, why));
                }
            }
        }
    }

    /// Returns the environment of the program: the host's, without the variables that the backend clears and without credentials that it is
    /// not meant to have, and with those it sets.
    fn environment(&self) -> Vec<(String, String)> {
        let CliBackend { clear_env, pass_env, .. } = self.backend;
        let is_kept = |name: &str| pass_env.iter().any(|kept| kept == name);
        let is_cleared = |name: &str| {
            clear_env.iter().any(|cleared| cleared == name) || (self.scope.is_credential(name) && !is_kept(name))
        };
        let inherited = self.scope.host.env().iter().filter(|(name, _)| !is_cleared(name));
        let own = self.backend.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        inherited.chain(own).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Writes the prompt to the transcript.
    async fn record_prompt(&self, log: &mut SessionLog, prompt: UserMessage) -> Result<(), StoreError> {
        history::begin(log, &self.model, self.scope).await?;
        history::answer_interrupted_calls(log, &self.scope.hooks, &self.scope.host).await?;
        self.append_message(log, Message::User(prompt)).await
    }

    /// Writes the answer to the transcript.
    async fn record_answer(
        &self,
        log: &mut SessionLog,
        answer: Arc<AssistantMessage>,
        session: Option<&str>,
    ) -> Result<(), StoreError> {
        if let Some(id) = session {
            self.scope.cli_sessions.record(self.name(), id);
            let data = json!({"backend": self.name(), "sessionId": id});
            if log.last_custom(CLI_SESSION).flatten().as_ref() != Some(&data) {
                append(log, data).await?;
            }
        }
        self.append_message(log, Message::Assistant(answer)).await
    }

    /// Writes a message as plugins let it be written.
    async fn append_message(&self, log: &mut SessionLog, message: Message) -> Result<(), StoreError> {
        let message = self.scope.hooks.written(Arc::new(message)).await;
        log.append(EntryBody::Message(message)).await.map(drop)
    }
}

async fn append(log: &mut SessionLog, data: Value) -> Result<(), StoreError> {
    let body = EntryBody::Custom { custom_type: CLI_SESSION.to_owned(), data: Some(data) };
    log.append(body).await.map(drop)
}

/// Writes images to files that nobody else can read.
fn image_files(images: &[Image], scope: &RunScope) -> std::io::Result<(Option<TempDir>, Vec<String>)> {
    if images.is_empty() {
        return Ok((None, Vec::new()));
    }
    let dir = tempfile::Builder::new().prefix("pinch-images-").tempdir_in(scope.host.temp())?;
    let mut paths = Vec::new();
    for (n, image) in images.iter().enumerate() {
        let ending = image.mime_type.rsplit('/').next().unwrap_or("png");
        let ending: String = ending.chars().filter(char::is_ascii_alphanumeric).collect();
        let path = dir.path().join(format!("image-{}.{ending}", n + 1));
        let bytes = STANDARD.decode(image.data.as_bytes()).map_err(std::io::Error::other)?;
        write_atomic(&path, &bytes, Access::Private)?;
        paths.push(path.to_string_lossy().into_owned());
    }
    Ok((Some(dir), paths))
}

impl Attempts for CliAttempts<'_> {
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        Box::pin(pulled(move |emitter| async move {
            let turn = self.runtime.turn_of(self.name());
            let _turn = match self.backend.serialize {
                true => match cancel.run(turn.lock_owned()).await {
                    Ok(turn) => Some(turn),
                    Err(stopped) => {
                        let end = AttemptEnd::stopped(stopped.reason, false);
                        emitter.emit(AttemptEvent::End(Box::new(AttemptOutcome::new(end)))).await;
                        return;
                    }
                },
                false => None,
            };
            let mut log = match history::open_log(&self.runtime.store, self.scope, None).await {
                Ok(log) => log,
                Err(error) => return emitter.emit(AttemptEvent::Broken(store_error(error))).await,
            };
            let prompt = match self.prepare(&log).await {
                Ok(prompt) => prompt,
                Err(error) => return emitter.emit(AttemptEvent::Broken(error)).await,
            };
            let now = self.scope.host.now_ms();
            let images = self.scope.request.images.iter().cloned().map(Block::Image);
            let blocks = std::iter::once(Block::text(prompt.prompt.clone())).chain(images).collect();
            let mut user = UserMessage::new(Content::Blocks(blocks), now);
            user.provenance = self.scope.request.provenance.clone().map(Arc::new);
            let mut answering = PrintedAnswer::new(&emitter, &self.model, &self.scope.host);
            answering.asked(&user).await;
            let recorded = match plan.start {
                AttemptStart::Prompt => self.record_prompt(&mut log, user).await,
                AttemptStart::Resume | AttemptStart::Continue | AttemptStart::FinalReply => {
                    log.omit_last_answer(|answer| answer.stop_reason.is_failure()).await.map(drop)
                }
            };
            if let Err(error) = recorded {
                return emitter.emit(AttemptEvent::Broken(store_error(error))).await;
            }
            let known = self.known_session(&log);
            self.is_answering.store(true, Ordering::Relaxed);
            let outcome = self.ask(&prompt, known, &cancel, &mut answering).await;
            self.is_answering.store(false, Ordering::Relaxed);
            let (end, answer, session) = match outcome {
                CliOutcome::Ended(end) => {
                    let (end, answer) = answering.broken_off(end).await;
                    (end, answer, None)
                }
                CliOutcome::Answered(reply) => {
                    let session = reply.session_id.clone();
                    (AttemptEnd::Good, answering.answered(reply).await, session)
                }
            };
            if let Err(error) = self.record_answer(&mut log, answer, session.as_deref()).await {
                return emitter.emit(AttemptEvent::Broken(store_error(error))).await;
            }
            let outcome = answering.into_outcome(end);
            emitter.emit(AttemptEvent::End(Box::new(outcome))).await;
        }))
    }

    fn repair<'a>(&'a mut self, _: &'a Repair, _: Arc<dyn RequestAuth>, _: Cancel) -> BoxFuture<'a, RepairOutcome> {
        let reason = "a command-line agent keeps its conversation itself".to_owned();
        Box::pin(async { RepairOutcome::NotCompacted { reason } })
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(CliControl(Arc::clone(&self.is_answering)))
    }
}

/// A running program accepts no messages.
struct CliControl(Arc<AtomicBool>);

impl RunControl for CliControl {
    fn queue(&self, _: QueueKind, _: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        Err(QueueRefusal::Unsupported)
    }

    fn is_streaming(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
