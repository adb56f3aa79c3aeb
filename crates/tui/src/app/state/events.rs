//! Handling of events from the session, from extensions, and from user commands.

use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::tool::ToolError;
use pinch_coding_agent::compaction::CompactionReason;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::ui::{Dialog as Question, NoteKind, UiUpdate, WidgetPlace};
use pinch_coding_agent::session::AgentSession;
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::message::{Message, StopReason};
use tokio::sync::oneshot;

use super::extension_look::WorkingLook;
use super::{App, OpenDialog, SessionActivity, Widget};
use crate::dialog::{Ask, DialogNews, DialogView};
use crate::effect::DialogAnswer;
use crate::terminal::{NotificationKind, ProgramStatus};

/// Maximum number of widgets and statuses.
const MAX_KEYS: usize = 64;

impl App {
    /// Handles an event of the session.
    pub(crate) fn session_event(&mut self, event: &SessionEvent, now_ms: i64) {
        self.transcript.record_activity(now_ms);
        match event {
            SessionEvent::Agent(event) => self.agent_event(event, now_ms),
            SessionEvent::RunEnd { will_retry, .. } => {
                self.transcript.run_ended();
                if !will_retry {
                    self.begin(SessionActivity::Idle, now_ms);
                }
            }
            SessionEvent::Settled { .. } => self.begin(SessionActivity::Idle, now_ms),
            SessionEvent::QueueUpdate { steering, follow_up } => self.set_queue(steering.clone(), follow_up.clone()),
            SessionEvent::CompactionStart { reason } => {
                self.begin(SessionActivity::Compacting, now_ms);
                self.ongoing.text = match reason {
                    CompactionReason::Manual => "Compacting context",
                    CompactionReason::Overflow => "Context overflow detected, auto-compacting",
                    _ => "Auto-compacting",
                }
                .to_owned();
            }
            SessionEvent::CompactionEnd { result, aborted, error_message, will_retry, .. } => {
                self.begin(if *will_retry { SessionActivity::Working } else { SessionActivity::Idle }, now_ms);
                if let Some(done) = result {
                    self.transcript.compacted(&done.summary, done.tokens_before);
                    if let Some(usage) = &done.usage {
                        self.footer.spent.add(usage);
                    }
                    self.footer.context_tokens = None;
                } else if *aborted {
                    self.status("Compaction cancelled");
                } else if let Some(error) = error_message {
                    self.error(error);
                }
            }
            SessionEvent::RetryStart { attempt, max_attempts, delay_ms, .. } => {
                self.begin(SessionActivity::Retrying, now_ms);
                self.ongoing.text = format!("Retrying ({attempt}/{max_attempts})");
                self.ongoing.until_ms = i64::try_from(*delay_ms).ok().map(|delay| now_ms + delay);
            }
            SessionEvent::RetryEnd { success, attempt, final_error } => {
                if !success && let Some(error) = final_error {
                    self.error(&format!("Retry failed after {attempt} attempts: {error}"));
                }
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay_ms, .. } => {
                self.ongoing.text = format!("Retrying the summary ({attempt}/{max_attempts})");
                self.ongoing.until_ms = i64::try_from(*delay_ms).ok().map(|delay| now_ms + delay);
            }
            SessionEvent::SummaryRetryStart { .. } | SessionEvent::SummaryRetryEnd => self.ongoing.until_ms = None,
            SessionEvent::ThinkingLevelChanged { level } => {
                self.thinking = *level;
                if self.footer.thinking.is_some() {
                    self.footer.thinking = Some(level.as_str().to_owned());
                }
            }
            SessionEvent::InfoChanged { name } => self.footer.session_name.clone_from(name),
            SessionEvent::ExtensionError(failure) => {
                self.error(&format!(
                    "Extension \"{}\" failed at {}: {}",
                    failure.extension, failure.event, failure.error
                ));
            }
            SessionEvent::Conflict { path, .. } => {
                self.warning(&format!(
                    "Another program wrote to {}; this session continues on its own branch",
                    path.display()
                ));
            }
            SessionEvent::EntryAppended(entry) => self.transcript.appended(&entry.body),
            _ => {}
        }
    }

    fn agent_event(&mut self, event: &AgentEvent, now_ms: i64) {
        match event {
            AgentEvent::AgentStart => self.begin(SessionActivity::Working, now_ms),
            AgentEvent::MessageEnd { message, .. } => {
                if let Message::Assistant(answer) = &**message {
                    self.footer.spent.add(&answer.usage);
                    let used = answer.usage.total_tokens;
                    if used > 0 {
                        self.footer.context_tokens = Some(used);
                    }
                }
            }
            _ => {}
        }
        self.transcript.agent_event(event, now_ms);
    }

    /// Updates the state from the session at the end of a run.
    pub(crate) fn run_ended(&mut self, session: &AgentSession) {
        let now = self.options.host.now_ms();
        self.begin(SessionActivity::Idle, now);
        self.attention.notify("The answer is complete", now);
        let last = session.messages().last();
        let has_failed = last.is_some_and(
            |last| matches!(&**last, Message::Assistant(answer) if answer.stop_reason == StopReason::Error),
        );
        self.outcome = if has_failed { ProgramStatus::Failed } else { ProgramStatus::Done };
        self.transcript.run_ended();
        self.session_path = session.path();
        self.take_usage(session);
        self.model_changed(&std::sync::Arc::clone(session.model()), session.thinking());
        let (steering, follow_up) = session.control().waiting();
        self.set_queue(steering, follow_up);
        self.footer.head = crate::app::branch::head(&self.options.cwd);
    }

    /// Returns the status to report to the terminal.
    pub(super) fn program_status(&self) -> ProgramStatus {
        if self.dialogs.iter().any(|open| open.reply.is_some()) {
            return ProgramStatus::Blocked;
        }
        if self.activity() == SessionActivity::Idle { self.outcome } else { ProgramStatus::Working }
    }

    /// Returns the control sequence that notifies the user of events since the last call, as configured.
    pub(crate) fn take_notification(&mut self, usual: NotificationKind) -> Option<Vec<u8>> {
        let word = self.interface.as_ref().map_or("auto", |interface| &interface.terminal.notify);
        let name = self.footer.session_name.as_deref().unwrap_or(&self.footer.cwd);
        self.attention.take(word, usual, name)
    }

    /// Shows a question of an extension.
    pub(crate) fn ask(&mut self, question: &Question, reply: oneshot::Sender<DialogAnswer>, now_ms: i64) {
        self.close_stale_questions();
        self.completion.close();
        let dialog = Box::new(Ask::new(question, now_ms).guarded());
        self.dialogs.push(OpenDialog { dialog, reply: Some(reply) });
        self.attention.notify("A question waits for you", now_ms);
    }

    /// Closes questions whose askers are gone.
    pub(crate) fn close_stale_questions(&mut self) {
        self.dialogs.retain(|open| open.reply.as_ref().is_none_or(|reply| !reply.is_closed()));
    }

    /// Shows an update of an extension.
    pub(crate) fn show(&mut self, update: UiUpdate) {
        match update {
            UiUpdate::Note { message, kind } => match kind {
                Some(NoteKind::Error) => self.error(&message),
                Some(NoteKind::Warning) => self.warning(&message),
                _ => self.status(&message),
            },
            UiUpdate::Status { key, text: Some(text) }
                if self.footer.statuses.len() < MAX_KEYS || self.footer.statuses.contains_key(&key) =>
            {
                self.footer.statuses.insert(key, text);
            }
            UiUpdate::Status { text: Some(_), .. } => {}
            UiUpdate::Status { key, text: None } => drop(self.footer.statuses.remove(&key)),
            UiUpdate::Widget { key, lines, place } => {
                self.close_widget_component(&key);
                let at = self.widgets.iter().position(|widget| widget.key == key);
                match (lines, at) {
                    (None, Some(at)) => drop(self.widgets.remove(at)),
                    (None, None) => {}
                    (Some(lines), at) => {
                        let place = place.unwrap_or(WidgetPlace::AboveEditor);
                        let widget = Widget { key, lines, place };
                        match at {
                            Some(at) => self.widgets[at] = widget,
                            None if self.widgets.len() < MAX_KEYS => self.widgets.push(widget),
                            None => {}
                        }
                    }
                }
            }
            UiUpdate::Title(title) => self.title = Some(title),
            UiUpdate::EditorText(text) => self.set_editor_text(&text),
            UiUpdate::EditorPaste(text) => {
                self.editor.paste(&text);
                self.completion.close();
            }
            UiUpdate::WorkingMessage(message) => self.working.message = message,
            UiUpdate::WorkingVisible(is_visible) => self.working.is_hidden = !is_visible,
            UiUpdate::WorkingIndicator(indicator) => self.working.set_indicator(indicator, &self.loader),
            UiUpdate::HiddenThinkingLabel(label) => self.set_thinking_label(label),
            UiUpdate::RedrawCall { call_id } => self.transcript.redraw_call(&call_id),
            UiUpdate::ToolsExpanded(is_expanded) => self.set_expanded(is_expanded),
            UiUpdate::Reset => {
                self.working = WorkingLook::default();
                self.set_thinking_label(None);
                self.widgets.clear();
                self.components.clear();
                self.footer.statuses.clear();
                self.title = None;
            }
            _ => {}
        }
    }

    /// Opens a dialog.
    pub(crate) fn open(&mut self, dialog: Box<dyn DialogView + Send>) {
        self.completion.close();
        self.dialogs.push(OpenDialog { dialog, reply: None });
    }

    /// Opens a dialog and sends its answer to `reply`.
    pub(crate) fn open_for(&mut self, dialog: Box<dyn DialogView + Send>, reply: oneshot::Sender<DialogAnswer>) {
        self.completion.close();
        self.dialogs.push(OpenDialog { dialog, reply: Some(reply) });
    }

    /// Closes the dialog whose answer is awaited.
    pub(crate) fn close_question(&mut self) {
        if let Some(at) = self.dialogs.iter().rposition(|open| open.reply.is_some()) {
            self.dialogs.remove(at);
        }
    }

    /// Passes news to the open dialog; a problem is shown in any case.
    pub(crate) fn tell_dialog(&mut self, news: DialogNews) {
        match (self.dialogs.last_mut(), news) {
            (Some(open), news) => open.dialog.learn(news),
            (None, DialogNews::Problem(text)) => self.error(&text),
            (None, _) => {}
        }
    }

    /// Called when a user command starts.
    pub(crate) fn bash_started(&mut self, command: &str, exclude: bool) {
        self.transcript.bash_started(command, exclude);
    }

    pub(crate) fn bash_output(&mut self, text: &str) {
        self.transcript.bash_output(text);
    }

    pub(crate) fn bash_finished(&mut self, end: &Result<UserCommand, ToolError>) {
        self.transcript.bash_finished(end);
    }
}
