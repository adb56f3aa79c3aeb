//! Questions of extensions and of the interface itself.

use std::time::Duration;

use pinch_coding_agent::extension::ui::{Dialog as Question, DialogKind};

use super::{DialogCx, DialogEvent, DialogView, framed, hint, hint_rows};
use crate::Row;
use crate::editor::{Editor, EditorEvent};
use crate::editor_line::LineEditor;
use crate::effect::{DialogAnswer, Effect};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{SanitizeMode, one_line, sanitize, wrap};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Time during which a new question ignores keys, so that typing ahead does not answer it, in milliseconds.
const TYPED_AHEAD_MS: i64 = 400;

/// A question to the user.
pub(crate) struct Ask {
    title: String,
    /// Details of the question.
    message: String,
    field: AskField,
    options: Vec<String>,
    /// When it appeared, in Unix milliseconds, and how long it stays.
    since_ms: i64,
    timeout: Option<Duration>,
    /// Whether confirming requires a moment, because the answer has consequences.
    guarded: bool,
}

enum AskField {
    Choice(Picker),
    /// The first option means yes.
    Confirm(Picker),
    Line {
        line: LineEditor,
        placeholder: String,
    },
    Text(Box<Editor>),
}

impl Ask {
    /// Creates a question of an extension. `now_ms` is in Unix milliseconds.
    pub(crate) fn new(question: &Question, now_ms: i64) -> Self {
        let (field, message, options) = match &question.kind {
            DialogKind::Select { options } => {
                let items = options.iter().map(PickItem::new).collect();
                let picker = if options.len() > 9 { Picker::new(items, 10) } else { Picker::without_search(items, 10) };
                (AskField::Choice(picker), String::new(), options.clone())
            }
            DialogKind::Confirm { message } => {
                let items = vec![PickItem::new("Yes"), PickItem::new("No")];
                (AskField::Confirm(Picker::without_search(items, 2)), message.clone(), Vec::new())
            }
            DialogKind::Input { placeholder } => {
                let placeholder = placeholder.clone().unwrap_or_default();
                (AskField::Line { line: LineEditor::new(""), placeholder }, String::new(), Vec::new())
            }
            DialogKind::Editor { prefill } => {
                let mut editor = Editor::default();
                editor.set_text(prefill.as_deref().unwrap_or_default());
                (AskField::Text(Box::new(editor)), String::new(), Vec::new())
            }
            _ => (AskField::Line { line: LineEditor::new(""), placeholder: String::new() }, String::new(), Vec::new()),
        };
        let (title, timeout) = (question.title.clone(), question.timeout);
        Self { title, message, field, options, since_ms: now_ms, timeout, guarded: false }
    }

    /// Protects the question against typing ahead.
    pub(crate) fn guarded(self) -> Self {
        Self { guarded: true, ..self }
    }

    fn remaining(&self, now_ms: i64) -> Option<u64> {
        let elapsed = u64::try_from(now_ms - self.since_ms).unwrap_or(0);
        let timeout = u64::try_from(self.timeout?.as_millis()).unwrap_or(u64::MAX);
        Some(timeout.saturating_sub(elapsed).div_ceil(1000))
    }
}

fn answered(answer: DialogAnswer) -> DialogEvent {
    DialogEvent::close_with(Effect::DialogAnswer(answer))
}

impl DialogView for Ask {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let mut title = self.title.clone();
        if let Some(seconds) = self.remaining(cx.now_ms) {
            title.push_str(&format!(" ({seconds}s)"));
        }
        let title_rows = framed(&title, Vec::new(), &[], cx).len() - 1;
        let mut content = Vec::new();
        for line in sanitize(&self.message, SanitizeMode::Output).lines() {
            content.extend(wrap(&[line.to_owned().into()], cx.columns));
        }
        let confirm = match self.field {
            AskField::Text(_) => cx.keymap.hint(KeyAction::Submit),
            _ => cx.keymap.hint(KeyAction::SelectConfirm),
        };
        let hints = [hint(&confirm, "answer"), hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel")];
        let room = cx.max_rows.saturating_sub(title_rows + 3 + hint_rows(&hints, cx).len()).max(1);
        content.truncate(room.max(3) - 2);
        let mut cursor = None;
        match &mut self.field {
            AskField::Choice(picker) | AskField::Confirm(picker) => {
                picker.fit((room + 2).saturating_sub(content.len()));
                content.extend(picker.rows(cx.columns, cx.theme));
            }
            AskField::Line { line, placeholder } => {
                let (mut row, column) = line.row(cx.columns, cx.theme);
                if line.text().is_empty() && !placeholder.is_empty() {
                    let text = one_line(placeholder);
                    row.push_span(ratatui_core::text::Span::styled(text, cx.theme.fg(ColorRole::Dim)));
                    row = crate::text::truncate(&row, cx.columns, "…");
                }
                cursor = Some((title_rows + content.len(), column));
                content.push(row);
            }
            AskField::Text(editor) => {
                let (rows, at) = editor.rows(cx.columns, room, cx.theme, cx.theme.fg(ColorRole::BorderMuted));
                cursor = at.map(|(row, column)| (title_rows + content.len() + row, column));
                content.extend(rows);
            }
        }
        (framed(&title, content, &hints, cx), cursor)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        let action = cx.keymap.action(KeyContext::Select, &press.key);
        let confirms = action == Some(KeyAction::SelectConfirm) || press.text.is_some_and(|c| c.is_ascii_digit());
        if self.guarded && confirms && cx.now_ms - self.since_ms < TYPED_AHEAD_MS {
            return DialogEvent::Ignored;
        }
        match &mut self.field {
            AskField::Choice(picker) => match picker.key(press, cx.keymap) {
                PickerEvent::Ignored => DialogEvent::Ignored,
                PickerEvent::Changed => DialogEvent::Changed,
                PickerEvent::Cancelled => answered(DialogAnswer::Dismissed),
                PickerEvent::Chosen(at) => match self.options.get(at) {
                    Some(option) => answered(DialogAnswer::Text(option.clone())),
                    None => DialogEvent::Ignored,
                },
            },
            AskField::Confirm(picker) => match (press.text, picker.key(press, cx.keymap)) {
                (Some('y' | 'Y'), _) if !self.guarded => answered(DialogAnswer::Yes(true)),
                (Some('n' | 'N'), _) => answered(DialogAnswer::Yes(false)),
                (_, PickerEvent::Changed) => DialogEvent::Changed,
                (_, PickerEvent::Cancelled) => answered(DialogAnswer::Dismissed),
                (_, PickerEvent::Chosen(at)) => answered(DialogAnswer::Yes(at == 0)),
                (_, PickerEvent::Ignored) => DialogEvent::Ignored,
            },
            AskField::Line { line, .. } => match action {
                Some(KeyAction::SelectConfirm) => answered(DialogAnswer::Text(line.text())),
                Some(KeyAction::SelectCancel) => answered(DialogAnswer::Dismissed),
                _ => {
                    line.key(press, cx.keymap);
                    DialogEvent::Changed
                }
            },
            AskField::Text(editor) => match action {
                Some(KeyAction::SelectCancel) => answered(DialogAnswer::Dismissed),
                _ => match editor.handle(press, cx.keymap) {
                    EditorEvent::Submit(submission) => answered(DialogAnswer::Text(submission.text)),
                    EditorEvent::Ignored => DialogEvent::Ignored,
                    _ => DialogEvent::Changed,
                },
            },
        }
    }

    fn line(&mut self, line: &str, cx: DialogCx<'_>) -> Option<DialogEvent> {
        let (AskField::Choice(picker) | AskField::Confirm(picker)) = &mut self.field else { return None };
        let Some(at) = picker.item_of_line(line) else {
            return (!picker.begin_line()).then_some(DialogEvent::Ignored);
        };
        if self.guarded && cx.now_ms - self.since_ms < TYPED_AHEAD_MS {
            return Some(DialogEvent::Changed);
        }
        match &self.field {
            AskField::Confirm(_) => Some(answered(DialogAnswer::Yes(at == 0))),
            _ => self.options.get(at).map(|option| answered(DialogAnswer::Text(option.clone()))),
        }
    }

    fn counts_down(&self) -> bool {
        self.timeout.is_some()
    }

    fn paste(&mut self, text: &str) {
        match &mut self.field {
            AskField::Choice(picker) | AskField::Confirm(picker) => picker.paste(text),
            AskField::Line { line, .. } => line.paste(text),
            AskField::Text(editor) => editor.paste(text),
        }
    }
}
