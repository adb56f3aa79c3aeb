//! The question whether a tool may run a command.

use ratatui_core::text::Span;

use super::backend::{CommandDecision, CommandQuestion};
use super::effect::ChatChoice;
use crate::Row;
use crate::dialog::{DialogCx, DialogEvent, DialogView, framed, hint};
use crate::key::KeyPress;
use crate::keymap::KeyAction;
use crate::text::{SanitizeMode, sanitize, truncate, wrap};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Time during which a new question ignores keys, so that typing ahead does not allow a command, in milliseconds.
const TYPED_AHEAD_MS: i64 = 400;
/// With fewer rows than this, the decisions share one row, so that more of the command is visible.
const LOW: usize = 12;
/// The decisions and their keys, in display order.
const DECISIONS: [(CommandDecision, char); 3] =
    [(CommandDecision::Once, 'y'), (CommandDecision::Always, 'a'), (CommandDecision::Deny, 'n')];

/// The dialog.
pub(super) struct QuestionDialog {
    question: CommandQuestion,
    /// Whether it belongs to the session on display.
    is_here: bool,
    /// When it was first drawn.
    shown_ms: Option<i64>,
    picker: Picker,
}

impl QuestionDialog {
    pub(super) fn new(question: CommandQuestion, is_here: bool) -> Self {
        let item = |(decision, key): (CommandDecision, char)| {
            let about = match decision {
                CommandDecision::Once => "Allow it once",
                CommandDecision::Always => "Always allow it, with these arguments in this directory",
                CommandDecision::Deny => "Deny it",
            };
            PickItem::new(format!("{key}  {about}"))
        };
        let picker = Picker::without_search(DECISIONS.map(item).to_vec(), DECISIONS.len());
        Self { question, is_here, shown_ms: None, picker }
    }

    /// Returns the decisions in one row.
    fn choices_row(&self, cx: DialogCx<'_>) -> Row {
        let selected = self.picker.selected();
        let choice = |(at, (decision, key)): (usize, &(CommandDecision, char))| {
            let sign = if selected == Some(at) { "→" } else { " " };
            format!("{sign}{key} {decision}")
        };
        let choices: Vec<String> = DECISIONS.iter().enumerate().map(choice).collect();
        truncate(&Row::styled(choices.join("  "), cx.theme.fg(ColorRole::Accent)), cx.columns, "…")
    }

    /// Returns whether the user has had the time to read the question, which only a denial does not need.
    fn accepts(&self, decision: CommandDecision, cx: DialogCx<'_>) -> bool {
        let was_seen = self.shown_ms.is_some_and(|shown| cx.now_ms - shown >= TYPED_AHEAD_MS);
        decision == CommandDecision::Deny || was_seen
    }

    fn decided(&self, decision: CommandDecision) -> DialogEvent<ChatChoice> {
        DialogEvent::Close(vec![ChatChoice::Decide { question: self.question.clone(), decision }])
    }
}

impl DialogView<ChatChoice> for QuestionDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let theme = cx.theme;
        self.shown_ms.get_or_insert(cx.now_ms);
        let CommandQuestion { session_key, command, cwd, reason, .. } = &self.question;
        let mut title = "May this command run?".to_owned();
        if let Some(session) = session_key.as_ref().filter(|_| !self.is_here) {
            title.push_str(&format!(" ({session})"));
        }
        let is_low = cx.max_rows < LOW;
        let choices = if is_low { vec![self.choices_row(cx)] } else { self.picker.rows(cx.columns, theme) };
        let hints = [hint(&cx.keymap.hint(KeyAction::SelectCancel), "deny")];
        let hints = if is_low { &[][..] } else { &hints };
        let mut about = Vec::new();
        let texts = [
            (format!("$ {command}"), theme.bold(ColorRole::ToolTitle)),
            (format!("in {cwd}"), theme.fg(ColorRole::Muted)),
            (reason.clone(), theme.fg(ColorRole::Muted)),
        ];
        for (text, style) in texts.iter().filter(|(text, _)| !text.trim().is_empty()) {
            for line in sanitize(text, SanitizeMode::Output).lines() {
                about.extend(wrap(&[Span::styled(line.to_owned(), *style)], cx.columns));
            }
        }
        let around = framed(&title, Vec::new(), hints, cx).len() + choices.len();
        let room = cx.max_rows.saturating_sub(around).max(1);
        if about.len() > room {
            // The user must be able to see that there is more.
            about.truncate(room.saturating_sub(1));
            about.push(Row::styled("… the command is longer than the screen", theme.fg(ColorRole::Warning)));
            about = about.iter().map(|row| truncate(row, cx.columns, "…")).collect();
        }
        about.extend(choices);
        (framed(&title, about, hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent<ChatChoice> {
        let typed = press.text.map(|c| c.to_ascii_lowercase());
        let by_letter = DECISIONS.iter().find(|(_, key)| typed == Some(*key)).map(|(decision, _)| *decision);
        let event = self.picker.key(press, cx.keymap);
        let decision = match (by_letter, event) {
            (Some(decision), _) => decision,
            (None, PickerEvent::Chosen(at)) => {
                DECISIONS.get(at).map_or(CommandDecision::Deny, |(decision, _)| *decision)
            }
            (None, PickerEvent::Cancelled) => CommandDecision::Deny,
            (None, PickerEvent::Changed) => return DialogEvent::Changed,
            (None, PickerEvent::Ignored) => return DialogEvent::Ignored,
        };
        if !self.accepts(decision, cx) {
            return DialogEvent::Ignored;
        }
        self.decided(decision)
    }

    fn line(&mut self, line: &str, cx: DialogCx<'_>) -> Option<DialogEvent<ChatChoice>> {
        let line = line.trim().to_lowercase();
        // Only the whole line decides: a sentence that begins with one of the letters must not allow a command.
        let named = DECISIONS.iter().enumerate().find(|(at, (decision, key))| {
            line == (at + 1).to_string() || line == key.to_string() || line == decision.as_str()
        });
        Some(match named {
            Some((_, (decision, _))) if self.accepts(*decision, cx) => self.decided(*decision),
            _ => DialogEvent::Ignored,
        })
    }
}
