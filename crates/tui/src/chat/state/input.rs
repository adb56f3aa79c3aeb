//! Handles keys, pasted text and typed lines.

use pinch_coding_agent::extension::Completion;

use super::{ActiveChatRun, ChatApp, OpenChatDialog, ShellPermission};
use crate::chat::backend::{OutgoingMessage, Verbosity};
use crate::chat::commands::{self, APP_KEYS};
use crate::chat::effect::{ChatChoice, ChatEffect};
use crate::compose;
use crate::dialog::{DialogCx, DialogEvent};
use crate::editor::complete::{CompletionRequest, CompletionSources};
use crate::editor::{EditorEvent, Submission};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext, KeyMatch};
use crate::slash;
use crate::terminal::{ProgramStatus, Report, Size, TerminalCapabilities, TerminalInput};
use crate::theme::Palette;
use crate::typed_line::{self, DialogLine, LineStep, UNHANDLED_LINE, UnhandledLine};

/// Maximum time between the presses of a double press, in milliseconds.
pub(super) const DOUBLE_PRESS_MS: i64 = 1_000;

impl ChatApp {
    /// Handles a report of the terminal.
    pub(crate) fn learn(&mut self, report: &Report, capabilities: &TerminalCapabilities) {
        if capabilities.light_background != self.light_background || capabilities.depth != self.depth {
            self.depth = capabilities.depth;
            self.light_background = capabilities.light_background;
            let links = self.links.1.then(|| self.links.0.clone());
            self.theme = Palette::builtin(Palette::name_for(self.light_background), self.depth).with_links(links);
            self.transcript.invalidate();
        }
        if *report == Report::Done {
            self.colors_due_ms = None;
        }
    }

    /// Handles an input.
    pub(crate) fn input(&mut self, input: &TerminalInput, size: Size, now_ms: i64) -> Vec<ChatEffect> {
        match input {
            TerminalInput::Key(press) => {
                self.outcome = ProgramStatus::Idle;
                self.key(press, size, now_ms)
            }
            TerminalInput::Paste(text) => {
                match self.dialogs.last_mut() {
                    Some(open) => open.dialog.paste(text),
                    None => {
                        self.editor.paste(text);
                        self.completion.refresh(&self.editor);
                    }
                }
                Vec::new()
            }
            TerminalInput::Line(line) => self.line(line, size, now_ms),
            TerminalInput::Focus(has_focus) => {
                self.attention.focus(*has_focus, now_ms);
                Vec::new()
            }
            TerminalInput::Mouse(_) | TerminalInput::Resized(_) | TerminalInput::Report(_) | TerminalInput::Closed => {
                Vec::new()
            }
        }
    }

    /// Handles a line typed on a terminal that edits lines itself: for the dialog, or as a message. A line that ends with a backslash
    /// continues on the next one.
    fn line(&mut self, line: &str, size: Size, now_ms: i64) -> Vec<ChatEffect> {
        self.clear_at = None;
        if self.dialogs.is_empty() {
            if let Some(before) = line.strip_suffix('\\') {
                self.editor.paste(&format!("{before}\n"));
                return Vec::new();
            }
            self.editor.paste(line);
            let is_shell = self.editor.lines().first().is_some_and(|line| line.starts_with('!'));
            let submission = self.editor.submit();
            return self.submitted(&submission, is_shell, now_ms);
        }
        let done = typed_line::answer(line, |input| {
            let n_open = self.dialogs.len();
            let mut is_refused = false;
            let done = self.dialog_event(size, now_ms, |open, cx| match input {
                DialogLine::Line(line) => {
                    let done = open.dialog.line(line, cx);
                    is_refused = done == Some(DialogEvent::Ignored);
                    done
                }
                DialogLine::Key(press) => Some(open.dialog.key(press, cx)).filter(|done| *done != DialogEvent::Ignored),
            });
            match done {
                None => LineStep::Ignored,
                Some(_) if is_refused => LineStep::Refused,
                Some(effects) if self.dialogs.len() < n_open => LineStep::Closed(effects),
                Some(effects) => LineStep::Taken(effects),
            }
        });
        done.unwrap_or_else(|UnhandledLine| {
            self.warning(UNHANDLED_LINE);
            Vec::new()
        })
    }

    /// Lets the dialog handle an input; `None` if there is none, or it does not.
    fn dialog_event(
        &mut self,
        size: Size,
        now_ms: i64,
        handle: impl FnOnce(&mut OpenChatDialog, DialogCx<'_>) -> Option<DialogEvent<ChatChoice>>,
    ) -> Option<Vec<ChatEffect>> {
        let mut open = self.dialogs.pop()?;
        let height = if self.is_plain() { size.height().max(compose::MIN_PLAIN_ROWS) } else { size.height() };
        let cx = DialogCx {
            theme: &self.theme,
            keymap: &self.keymap,
            max_rows: height.saturating_sub(4),
            columns: size.width(),
            now_ms,
        };
        Some(match handle(&mut open, cx) {
            None => {
                self.dialogs.push(open);
                return None;
            }
            Some(DialogEvent::Ignored | DialogEvent::Changed) => {
                self.dialogs.push(open);
                Vec::new()
            }
            Some(DialogEvent::Do(choices)) => {
                self.dialogs.push(open);
                choices.into_iter().flat_map(|choice| self.chosen(choice)).collect()
            }
            Some(DialogEvent::Close(choices)) => choices.into_iter().flat_map(|choice| self.chosen(choice)).collect(),
        })
    }

    fn key(&mut self, press: &KeyPress, size: Size, now_ms: i64) -> Vec<ChatEffect> {
        if !self.dialogs.is_empty() {
            let done = self.dialog_event(size, now_ms, |open, cx| Some(open.dialog.key(press, cx)));
            return done.unwrap_or_default();
        }
        if self.keymap.action(KeyContext::Chat, &press.key) != Some(KeyAction::Clear) {
            self.clear_at = None;
        }
        self.pending_keys.push(press.key);
        let found = self.keymap.resolve(KeyContext::Chat, &self.pending_keys);
        if found == KeyMatch::Prefix {
            return Vec::new();
        }
        let n_keys = std::mem::take(&mut self.pending_keys).len();
        if let KeyMatch::Action(action) = found
            && let Some(effects) = self.action(action, now_ms)
        {
            return effects;
        }
        if n_keys > 1 {
            return Vec::new();
        }
        let is_shell = self.editor.lines().first().is_some_and(|line| line.starts_with('!'));
        match self.completion.handle(press, &self.keymap, &mut self.editor) {
            EditorEvent::Submit(submission) => self.submitted(&submission, is_shell, now_ms),
            _ => Vec::new(),
        }
    }

    /// Performs the action bound to a key; `None`: the key is for the editor.
    fn action(&mut self, action: KeyAction, now_ms: i64) -> Option<Vec<ChatEffect>> {
        if action.context() == KeyContext::App && !APP_KEYS.contains(&action) {
            return None;
        }
        match action {
            KeyAction::Interrupt if self.completion.is_open() || self.editor.wants_escape() => None,
            KeyAction::Interrupt => Some(self.stop()),
            KeyAction::Clear => Some(self.clear(now_ms)),
            KeyAction::Exit if self.editor.is_empty() => Some(vec![ChatEffect::Exit]),
            KeyAction::Suspend => Some(vec![ChatEffect::Suspend]),
            KeyAction::ThinkingToggle => {
                self.toggle_thinking();
                Some(Vec::new())
            }
            KeyAction::ToolsExpand => {
                self.toggle_tools();
                Some(Vec::new())
            }
            KeyAction::ToolsExpandOne => {
                self.transcript.toggle_last();
                Some(Vec::new())
            }
            KeyAction::MessageDequeue => {
                let withdrawn = self.withdraw();
                if withdrawn.is_empty() {
                    self.status("There are no queued messages");
                }
                Some(withdrawn)
            }
            KeyAction::PasteExpand => {
                self.editor.expand_marker();
                Some(Vec::new())
            }
            KeyAction::Redraw => Some(vec![ChatEffect::Redraw]),
            KeyAction::ChatAgents => Some(vec![ChatEffect::Agents]),
            KeyAction::ChatSessions => Some(vec![ChatEffect::Sessions { agent: self.agent.clone() }]),
            KeyAction::ChatModels => Some(vec![ChatEffect::Models { agent: self.agent.clone() }]),
            _ => None,
        }
    }

    /// Stops the current activity.
    pub(super) fn stop(&mut self) -> Vec<ChatEffect> {
        // Waiting messages would immediately start another run.
        let mut effects = self.withdraw();
        let has_withdrawn = !effects.is_empty();
        if let Some(run) = self.runs.get_mut(&self.session) {
            run.is_aborting = true;
            effects.push(ChatEffect::Abort { session: self.session.clone() });
        } else if has_withdrawn {
            // Nothing else can be stopped.
        } else if self.compacting.take().is_some() {
            self.status("Compaction cancelled");
            effects.push(ChatEffect::StopCompaction);
        } else if self.transcript.runs_bash() {
            effects.push(ChatEffect::StopShell);
        }
        effects
    }

    /// Withdraws the session's messages that no run has read.
    fn withdraw(&mut self) -> Vec<ChatEffect> {
        let session = self.session.clone();
        let (mine, others) =
            self.queued.drain(..).partition(|message: &OutgoingMessage| message.session_key == session);
        self.queued = others;
        if mine.is_empty() {
            return Vec::new();
        }
        let texts = mine.iter().map(|message| message.text.clone()).collect();
        let moved = compose::give_back(texts, &mut self.editor);
        self.completion.close();
        self.status(&moved);
        vec![ChatEffect::Withdraw(mine.into_iter().map(|message| message.id).collect())]
    }

    /// Ctrl+C: clears the editor, stops a run, and exits when pressed again.
    fn clear(&mut self, now_ms: i64) -> Vec<ChatEffect> {
        if self.clear_at.is_some_and(|at| now_ms - at < DOUBLE_PRESS_MS) {
            return vec![ChatEffect::Exit];
        }
        if !self.editor.is_empty() {
            self.editor.set_text("");
            self.completion.close();
            return Vec::new();
        }
        self.clear_at = Some(now_ms);
        self.stop()
    }

    fn submitted(&mut self, submission: &Submission, is_shell: bool, now_ms: i64) -> Vec<ChatEffect> {
        self.completion.close();
        let text = submission.text.clone();
        if text.is_empty() {
            return Vec::new();
        }
        self.editor.remember(submission);
        if let Some(command) = commands::parse(&text, &self.facts.thinking_levels) {
            return self.command(command, now_ms);
        }
        if is_shell && let Some(command) = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            return self.shell_command(command.to_owned());
        }
        if self.unconfirmed.take().as_ref() != Some(&text)
            && let Some(unknown) = commands::unknown(&text)
        {
            self.warning(&slash::unknown_warning(&unknown));
            self.editor.set_text(&text);
            self.unconfirmed = Some(text);
            return Vec::new();
        }
        self.send(text, now_ms)
    }

    /// Sends a message of the user; while a run is active, the engine decides what happens to it.
    pub(super) fn send(&mut self, text: String, now_ms: i64) -> Vec<ChatEffect> {
        self.n_sent += 1;
        let message = OutgoingMessage {
            id: format!("{}-{}", self.id_prefix, self.n_sent),
            session_key: self.session.clone(),
            text,
            thinking: self.thinking,
            timeout: self.setup.timeout,
            queue: self.facts.queue,
            elevated: self.facts.elevated,
            deliver: self.delivers && self.facts.channel.is_some(),
            shows_tools: self.verbosity() != Verbosity::Off,
        };
        if self.is_busy() {
            self.queued.push(message.clone());
        } else {
            self.transcript.user(&message.text);
            let run = ActiveChatRun { message: Some(message.id.clone()), ..ActiveChatRun::new(now_ms) };
            self.runs.insert(self.session.clone(), run);
        }
        vec![ChatEffect::Send(message)]
    }

    fn shell_command(&mut self, command: String) -> Vec<ChatEffect> {
        if !self.setup.has_shell {
            self.warning("No shell is available to run commands");
            return Vec::new();
        }
        match self.shell {
            ShellPermission::Unknown => {
                self.ask_for_shell(command);
                Vec::new()
            }
            ShellPermission::Declined => {
                self.warning("Shell commands are off until the chat is restarted");
                Vec::new()
            }
            ShellPermission::Allowed => self.run_shell(command),
        }
    }

    pub(super) fn run_shell(&mut self, command: String) -> Vec<ChatEffect> {
        if self.transcript.runs_bash() {
            self.warning("A command is running; wait for it to finish, or cancel it");
            self.editor.set_text(&format!("!{command}"));
            return Vec::new();
        }
        self.transcript.bash_started(&command, true);
        vec![ChatEffect::Shell(command)]
    }

    /// Takes the pending completion request, if any.
    pub(crate) fn take_completion(&mut self) -> Option<CompletionRequest> {
        self.completion.take_request()
    }

    /// Sets the listed files of the working directory.
    pub(crate) fn set_files(&mut self, files: std::sync::Arc<crate::editor::complete::PathIndex>) {
        self.sources.files = Some(files);
        self.completion.refresh(&self.editor);
    }

    pub(crate) fn completion_sources(&self) -> &CompletionSources {
        &self.sources
    }

    /// Offers completions that were found.
    pub(crate) fn offer(&mut self, request: &CompletionRequest, found: Vec<Completion>) {
        // A single suggestion is inserted immediately; this submits nothing.
        let _event = self.completion.offer(request, found, &mut self.editor);
    }
}
