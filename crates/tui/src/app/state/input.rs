//! Handles keys, pasted text, typed lines and the mouse.

use pinch_coding_agent::session::CycleDirection;
use pinch_coding_agent::settings::values::DoubleEscape;

use super::scroll::page;
use super::{App, OpenDialog, SessionActivity};
use crate::app::commands::{self, ParsedCommand, ShownText};
use crate::compose;
use crate::dialog::{DialogCx, DialogEvent};
use crate::editor::{EditorEvent, image_path};
use crate::effect::{DialogAnswer, DialogName, Effect, SubmittedMessage};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext, KeyMatch};
use crate::slash;
use crate::terminal::{ProgramStatus, Report, Size, TerminalCapabilities, TerminalInput};
use crate::theme::Palette;
use crate::transcript::Scroll;
use crate::typed_line::{self, DialogLine, LineStep, UNHANDLED_LINE, UnhandledLine};

/// Maximum time between the presses of a double press, in milliseconds.
const DOUBLE_PRESS_MS: i64 = 500;

impl App {
    /// Handles a report of the terminal.
    pub(crate) fn learn(&mut self, report: &Report, capabilities: &TerminalCapabilities) {
        self.depth = capabilities.depth;
        if capabilities.light_background != self.light_background {
            self.light_background = capabilities.light_background;
            if self.chosen_theme().is_none() {
                let name = Palette::name_for(self.light_background);
                self.use_palette(Palette::builtin(name, self.depth));
            }
        }
        if *report == Report::Done {
            self.colors_due_ms = None;
        }
    }

    /// Handles an input.
    pub(crate) fn input(&mut self, input: &TerminalInput, size: Size, now_ms: i64) -> Vec<Effect> {
        match input {
            TerminalInput::Key(press) => {
                self.outcome = ProgramStatus::Idle;
                self.key(press, size, now_ms)
            }
            TerminalInput::Paste(text) => {
                match self.focused_dialog() {
                    Some(at) => self.dialogs[at].dialog.paste(text),
                    None if self.search.is_some() => self.search_paste(text),
                    None if self.editor_component_paste(text) => {}
                    None => return self.pasted(text),
                }
                Vec::new()
            }
            TerminalInput::Line(line) => self.line(line, size, now_ms),
            TerminalInput::Mouse(mouse) => self.mouse(*mouse, now_ms),
            TerminalInput::Focus(has_focus) => {
                self.attention.focus(*has_focus, now_ms);
                Vec::new()
            }
            TerminalInput::Resized(_) | TerminalInput::Report(_) | TerminalInput::Closed => Vec::new(),
        }
    }

    /// Returns the dialog that gets the keys.
    fn focused_dialog(&self) -> Option<usize> {
        self.dialogs.iter().rposition(|open| open.dialog.takes_keys())
    }

    /// Handles text pasted into the editor.
    pub(super) fn pasted(&mut self, text: &str) -> Vec<Effect> {
        match image_path(text) {
            Some(path) => return vec![Effect::InsertImage { path, pasted: text.to_owned() }],
            None => self.paste(text),
        }
        Vec::new()
    }

    fn key(&mut self, press: &KeyPress, size: Size, now_ms: i64) -> Vec<Effect> {
        if self.focused_dialog().is_some() {
            return self.dialog_key(press, size, now_ms);
        }
        if self.search.is_some() {
            self.search_key(press, size);
            return Vec::new();
        }
        if self.editor_component_key(press, now_ms) {
            return Vec::new();
        }
        self.own_key(press, size, now_ms)
    }

    /// Handles a key that no dialog and no component takes.
    pub(super) fn own_key(&mut self, press: &KeyPress, size: Size, now_ms: i64) -> Vec<Effect> {
        let is_clear = self.keymap.action(KeyContext::App, &press.key) == Some(KeyAction::Clear);
        if !is_clear {
            self.clear_at = None;
        }
        if self.pending_keys.is_empty() && self.shortcut(press.key).is_some() {
            return vec![Effect::Shortcut(press.key)];
        }
        self.pending_keys.push(press.key);
        let found = self.keymap.resolve(KeyContext::App, &self.pending_keys);
        let n_keys = self.pending_keys.len();
        match found {
            KeyMatch::Prefix => return Vec::new(),
            KeyMatch::Action(action) => {
                self.pending_keys.clear();
                if let Some(effects) = self.app_action(action, size, now_ms) {
                    return effects;
                }
            }
            KeyMatch::None => {
                self.pending_keys.clear();
                if n_keys > 1 {
                    return Vec::new();
                }
            }
        }
        if self.scroll_key(press, size) {
            return Vec::new();
        }
        self.escape_at = None;
        match self.completion.handle(press, &self.keymap, &mut self.editor) {
            EditorEvent::Submit(submission) => {
                let text = submission.text.clone();
                self.submitted(text, &submission, false)
            }
            _ => Vec::new(),
        }
    }

    fn dialog_key(&mut self, press: &KeyPress, size: Size, now_ms: i64) -> Vec<Effect> {
        self.dialog_event(size, now_ms, |open, cx| Some(open.dialog.key(press, cx))).unwrap_or_default()
    }

    /// Lets the dialog handle an input; `None` if it does not.
    fn dialog_event(
        &mut self,
        size: Size,
        now_ms: i64,
        handle: impl FnOnce(&mut OpenDialog, DialogCx<'_>) -> Option<DialogEvent>,
    ) -> Option<Vec<Effect>> {
        let at = self.focused_dialog()?;
        let mut open = self.dialogs.remove(at);
        let height = if self.is_plain() { size.height().max(compose::MIN_PLAIN_ROWS) } else { size.height() };
        let cx = DialogCx {
            theme: &self.theme,
            keymap: &self.keymap,
            max_rows: height.saturating_sub(4),
            columns: size.width(),
            now_ms,
        };
        let Some(event) = handle(&mut open, cx) else {
            self.dialogs.insert(at, open);
            return None;
        };
        Some(match event {
            DialogEvent::Ignored | DialogEvent::Changed => {
                self.dialogs.insert(at, open);
                Vec::new()
            }
            DialogEvent::Do(effects) => {
                self.dialogs.insert(at, open);
                effects
            }
            DialogEvent::Close(effects) => {
                let mut left = Vec::new();
                for effect in effects {
                    match (effect, open.reply.take()) {
                        (Effect::DialogAnswer(answer), Some(reply)) => {
                            // The asker may be gone.
                            drop(reply.send(answer));
                        }
                        (effect, reply) => {
                            open.reply = reply;
                            left.push(effect);
                        }
                    }
                }
                left
            }
        })
    }

    /// Handles a line typed on a terminal that edits lines itself: for the dialog, or as a message. A line that ends with a backslash
    /// continues on the next one.
    fn line(&mut self, line: &str, size: Size, now_ms: i64) -> Vec<Effect> {
        self.clear_at = None;
        if self.dialogs.is_empty() {
            if let Some(before) = line.strip_suffix('\\') {
                self.editor.paste(&format!("{before}\n"));
                return Vec::new();
            }
            self.editor.paste(line);
            let submission = self.editor.submit();
            let text = submission.text.clone();
            return self.submitted(text, &submission, false);
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

    /// Answers the open question.
    pub(crate) fn answer(&mut self, answer: DialogAnswer) {
        if let Some(at) = self.dialogs.iter().rposition(|open| open.reply.is_some())
            && let Some(reply) = self.dialogs.remove(at).reply
        {
            drop(reply.send(answer));
        }
    }

    /// Performs the application action bound to a key; `None`: the key is for the editor.
    fn app_action(&mut self, action: KeyAction, size: Size, now_ms: i64) -> Option<Vec<Effect>> {
        let one = |effect| Some(vec![effect]);
        match action {
            KeyAction::Interrupt if self.completion.is_open() || self.editor.wants_escape() => None,
            KeyAction::Interrupt => Some(self.interrupt(now_ms)),
            KeyAction::Clear => Some(self.clear(now_ms)),
            KeyAction::Exit if self.editor.is_empty() => one(Effect::Exit),
            KeyAction::Exit => None,
            KeyAction::Suspend => one(Effect::Suspend),
            KeyAction::ThinkingCycle => one(Effect::CycleThinking),
            KeyAction::ThinkingToggle => {
                let hide = !self.transcript.options.hide_thinking;
                self.transcript.options.hide_thinking = hide;
                self.transcript.invalidate();
                self.status(if hide { "Thinking is hidden" } else { "Thinking is shown" });
                one(Effect::Set { key: "hideThinkingBlock", value: hide.into() })
            }
            KeyAction::ModelCycleForward => one(Effect::CycleModel(CycleDirection::Forward)),
            KeyAction::ModelCycleBackward => one(Effect::CycleModel(CycleDirection::Backward)),
            KeyAction::ModelSelect => one(Effect::Open(DialogName::Models { search: String::new() })),
            KeyAction::ToolsExpand => Some(self.toggle_output(size, now_ms)),
            KeyAction::ToolsExpandOne => Some(self.toggle_last_output(size, now_ms)),
            KeyAction::ExternalEditor => one(Effect::ExternalEditor),
            KeyAction::MessageFollowUp => {
                let submission = self.editor.submit();
                let text = submission.text.clone();
                Some(self.submitted(text, &submission, true))
            }
            KeyAction::MessageCopy => one(Effect::Copy),
            KeyAction::MessageDequeue => one(Effect::Dequeue),
            KeyAction::QueueEdit => one(Effect::Open(DialogName::Queue)),
            KeyAction::PasteExpand => {
                self.editor.expand_marker();
                Some(Vec::new())
            }
            KeyAction::SessionNew => one(Effect::NewSession),
            KeyAction::SessionTree => one(Effect::Open(DialogName::Tree { at: None })),
            KeyAction::SessionFork => one(Effect::Open(DialogName::Fork)),
            KeyAction::SessionResume => one(Effect::Open(DialogName::Sessions)),
            KeyAction::Debug => one(Effect::WriteDebugLog),
            KeyAction::Transcript => one(Effect::ToggleFullscreen),
            KeyAction::TranscriptSearch => Some(self.open_search()),
            KeyAction::TranscriptPageUp => self.scroll(Scroll::Rows(-page(size))),
            KeyAction::TranscriptPageDown => self.scroll(Scroll::Rows(page(size))),
            KeyAction::TranscriptTop => self.scroll(Scroll::Top),
            KeyAction::TranscriptEnd => self.scroll(Scroll::End),
            KeyAction::Redraw => one(Effect::Redraw),
            KeyAction::PasteImage => one(Effect::PasteImage),
            _ => None,
        }
    }

    /// Escape: stops the current activity, or counts towards a double press.
    fn interrupt(&mut self, now_ms: i64) -> Vec<Effect> {
        if self.transcript.unselect() {
            return Vec::new();
        }
        if self.transcript.is_scrolled() {
            self.transcript.scroll(Scroll::End);
            return Vec::new();
        }
        if self.activity() != SessionActivity::Idle || self.transcript.runs_bash() {
            return vec![Effect::Abort];
        }
        if self.editor.is_shell_command() {
            self.editor.set_text("");
            return Vec::new();
        }
        if !self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let is_double = self.escape_at.is_some_and(|at| now_ms - at < DOUBLE_PRESS_MS);
        self.escape_at = (!is_double).then_some(now_ms);
        let action = self.interface.as_ref().map_or(DoubleEscape::Tree, |interface| interface.double_escape);
        match action {
            DoubleEscape::Tree if is_double => vec![Effect::Open(DialogName::Tree { at: None })],
            DoubleEscape::Fork if is_double => vec![Effect::Open(DialogName::Fork)],
            _ => Vec::new(),
        }
    }

    /// Ctrl+C: clears the editor, stops a run, and exits when pressed again.
    fn clear(&mut self, now_ms: i64) -> Vec<Effect> {
        if self.clear_at.is_some_and(|at| now_ms - at < 2 * DOUBLE_PRESS_MS) {
            return vec![Effect::Exit];
        }
        if !self.editor.is_empty() {
            self.editor.set_text("");
            self.completion.close();
            return Vec::new();
        }
        self.clear_at = Some(now_ms);
        if self.activity() != SessionActivity::Idle || self.transcript.runs_bash() {
            return vec![Effect::Abort];
        }
        Vec::new()
    }

    /// Handles a submitted text.
    pub(super) fn submitted(
        &mut self,
        text: String,
        submission: &crate::editor::Submission,
        follow_up: bool,
    ) -> Vec<Effect> {
        self.completion.close();
        self.transcript.scroll(Scroll::End);
        if text.is_empty() {
            return Vec::new();
        }
        self.editor.remember(submission);
        let mut effects = self.keeps_history().then(|| Effect::Remember(text.clone())).into_iter().collect::<Vec<_>>();
        match commands::parse(&text) {
            Some(ParsedCommand::Effects(more)) => {
                effects.extend(more);
                return effects;
            }
            Some(ParsedCommand::Show(shown)) => {
                let text = match shown {
                    ShownText::Changelog => self.changelog(),
                    shown => {
                        commands::text(shown, &self.keymap, &self.commands) + &self.extension_keys() + &self.tmux_note()
                    }
                };
                self.transcript.markdown(&text);
                return effects;
            }
            Some(ParsedCommand::Problem(text)) => {
                self.warning(&text);
                return effects;
            }
            None => {}
        }
        if let Some((mut command, exclude)) = shell_command(&text) {
            for image in &submission.images {
                let path = image.path.display().to_string().replace('\'', "'\\''");
                command = command.replace(&image.label, &format!("'{path}'"));
            }
            effects.push(Effect::Bash { command, exclude });
            return effects;
        }
        // Commands of extensions, templates and skills are not known before there is a session: see [`Self::is_held_back`].
        if self.unconfirmed.take().as_ref() != Some(&text)
            && self.interface.is_some()
            && let Some(unknown) = commands::unknown(&text, self.commands.iter().map(String::as_str))
        {
            self.warning(&slash::unknown_warning(&unknown));
            self.editor.restore(&text);
            self.unconfirmed = Some(text);
            return effects;
        }
        let message = SubmittedMessage { text, images: submission.images.clone() };
        if !message.images.is_empty()
            && let Some(model) = self.model_without_images()
        {
            self.status(&format!("{model} does not accept images; a note replaces them in its requests"));
        }
        effects.push(if follow_up { Effect::FollowUp(message) } else { Effect::Submit(message) });
        effects
    }

    /// Gives a message back to the editor that was submitted before there was a session, if it looks like an unknown command. Returns
    /// whether it did.
    pub(crate) fn is_held_back(&mut self, message: &SubmittedMessage) -> bool {
        let Some(unknown) = commands::unknown(&message.text, self.commands.iter().map(String::as_str)) else {
            return false;
        };
        self.warning(&slash::unknown_warning(&unknown));
        if self.editor.is_empty() {
            self.editor.restore(&message.text);
            self.unconfirmed = Some(message.text.clone());
        } else {
            self.edit_waiting(&message.text);
        }
        true
    }

    /// Takes the pending completion request, if any.
    pub(crate) fn take_completion(&mut self) -> Option<crate::editor::complete::CompletionRequest> {
        self.completion.take_request()
    }

    /// Returns the sources of completions.
    pub(crate) fn completion_sources(&self) -> crate::editor::complete::CompletionSources {
        self.sources.clone()
    }

    /// Sets the listed files of the working directory.
    pub(crate) fn set_files(&mut self, files: std::sync::Arc<crate::editor::complete::PathIndex>) {
        self.sources.files = Some(files);
        self.completion.refresh(&self.editor);
    }

    /// Offers completions that were found.
    pub(crate) fn offer(
        &mut self,
        request: &crate::editor::complete::CompletionRequest,
        found: Vec<pinch_coding_agent::extension::Completion>,
    ) {
        // A single suggestion is inserted immediately; this submits nothing.
        let _event = self.completion.offer(request, found, &mut self.editor);
    }
}

/// Parses a text as a shell command, and returns whether it is hidden from the model.
fn shell_command(text: &str) -> Option<(String, bool)> {
    let rest = text.strip_prefix('!')?;
    let (rest, exclude) = rest.strip_prefix('!').map_or((rest, false), |rest| (rest, true));
    let command = rest.trim();
    (!command.is_empty()).then(|| (command.to_owned(), exclude))
}
