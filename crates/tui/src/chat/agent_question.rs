//! Questions of an agent: options to choose from, or a free-form answer.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::backend::{AgentAnswer, AgentQuestion, AgentQuestions};
use super::effect::ChatChoice;
use crate::Row;
use crate::dialog::{DialogCx, DialogEvent, DialogView, framed, hint};
use crate::editor_line::LineEditor;
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{SanitizeMode, one_line, sanitize, truncate, wrap};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Time during which a new question ignores keys, so that typing ahead does not answer it, in milliseconds.
const TYPED_AHEAD_MS: i64 = 400;
/// With fewer rows than this, each option takes one row.
const LOW: usize = 14;
/// Choices after the options.
const OWN: &str = "Other: type an answer";
const DONE: &str = "Done";

/// The dialog, which shows one question after another.
pub(super) struct AgentQuestionDialog {
    asked: AgentQuestions,
    /// Whether it belongs to the session on display.
    is_here: bool,
    /// Whether the output is plain lines, which show no countdown.
    is_plain: bool,
    /// Answers to the questions before the current one.
    answers: Vec<AgentAnswer>,
    picker: Picker,
    /// Which options are chosen, in a multiple-choice question.
    chosen: Vec<bool>,
    /// A free-form answer being typed.
    own: Option<LineEditor>,
    /// When the question was first drawn.
    shown_ms: Option<i64>,
    /// Time left for an answer when the question was first drawn.
    limit: Option<String>,
}

impl AgentQuestionDialog {
    pub(super) fn new(asked: AgentQuestions, is_here: bool, is_plain: bool) -> Self {
        let mut dialog = Self {
            asked,
            is_here,
            is_plain,
            answers: Vec::new(),
            picker: Picker::without_search(Vec::new(), 1),
            chosen: Vec::new(),
            own: None,
            shown_ms: None,
            limit: None,
        };
        dialog.begin();
        dialog
    }

    fn question(&self) -> Option<&AgentQuestion> {
        self.asked.questions.get(self.answers.len())
    }

    /// Moves to the next unanswered question.
    fn begin(&mut self) {
        self.chosen = self.question().map(|question| vec![false; question.options.len()]).unwrap_or_default();
        (self.own, self.shown_ms) = (None, None);
        self.offer(0);
    }

    /// Shows the options, with one of them selected.
    fn offer(&mut self, selected: usize) {
        let Some(question) = self.question() else { return };
        let option =
            |(option, chosen): (&super::backend::AnswerOption, &bool)| PickItem::new(&option.label).current(*chosen);
        let mut items: Vec<PickItem> = question.options.iter().zip(&self.chosen).map(option).collect();
        items.push(PickItem::new(OWN));
        if question.is_multiple {
            items.push(PickItem::new(DONE));
        }
        self.picker = Picker::without_search(items.clone(), items.len());
        self.picker.select(selected);
    }

    /// Handles the choice of an item.
    fn choose(&mut self, at: usize) -> DialogEvent<ChatChoice> {
        let Some(question) = self.question() else { return DialogEvent::Ignored };
        let (n, is_multiple) = (question.options.len(), question.is_multiple);
        match question.options.get(at) {
            Some(option) if !is_multiple => {
                let values = vec![option.label.clone()];
                self.answer(values)
            }
            Some(_) => {
                if let Some(chosen) = self.chosen.get_mut(at) {
                    *chosen = !*chosen;
                }
                self.offer(at);
                DialogEvent::Changed
            }
            None if at == n => {
                self.own = Some(LineEditor::new(""));
                DialogEvent::Changed
            }
            // Nothing is chosen yet.
            None if !self.chosen.contains(&true) => DialogEvent::Ignored,
            None => {
                let values = self.labels();
                self.answer(values)
            }
        }
    }

    /// Returns the chosen options of a multiple-choice question.
    fn labels(&self) -> Vec<String> {
        let options = self.question().map(|question| question.options.as_slice()).unwrap_or_default();
        let chosen = options.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen);
        chosen.map(|(option, _)| option.label.clone()).collect()
    }

    /// Answers with the typed text, in addition to the chosen options.
    fn answer_own(&mut self, text: &str) -> DialogEvent<ChatChoice> {
        let text = text.trim();
        if text.is_empty() {
            return DialogEvent::Ignored;
        }
        let mut values = self.labels();
        values.push(text.to_owned());
        self.answer(values)
    }

    fn answer(&mut self, values: Vec<String>) -> DialogEvent<ChatChoice> {
        let Some(question) = self.question() else { return DialogEvent::Ignored };
        let answer = AgentAnswer { question: question.id.clone(), values };
        self.answers.push(answer);
        if self.question().is_some() {
            self.begin();
            return DialogEvent::Changed;
        }
        let answers = Some(std::mem::take(&mut self.answers));
        DialogEvent::Close(vec![ChatChoice::Answer { asked: self.asked.clone(), answers }])
    }

    fn was_seen(&self, now_ms: i64) -> bool {
        self.shown_ms.is_some_and(|shown| now_ms - shown >= TYPED_AHEAD_MS)
    }

    /// Returns the title above the question.
    fn title(&mut self, now_ms: i64) -> String {
        let header = self.question().map(|question| question.header.clone()).unwrap_or_default();
        let mut title =
            if header.is_empty() { "The agent asks".to_owned() } else { format!("The agent asks: {header}") };
        let n = self.asked.questions.len();
        if n > 1 {
            title.push_str(&format!(" ({} of {n})", self.answers.len() + 1));
        }
        if let Some(session) = self.asked.session_key.as_ref().filter(|_| !self.is_here) {
            title.push_str(&format!(" ({session})"));
        }
        let left = duration(self.asked.expires_ms - now_ms);
        let limit = self.limit.get_or_insert_with(|| left.clone());
        match self.is_plain {
            true => title.push_str(&format!(" - answer within {limit}")),
            false => title.push_str(&format!(" - {left} left")),
        }
        title
    }

    /// Returns the list, with descriptions of the options if there is room.
    fn option_rows(&self, cx: DialogCx<'_>) -> Vec<Row> {
        let items = self.picker.rows(cx.columns, cx.theme);
        let options = self.question().map(|question| question.options.as_slice()).unwrap_or_default();
        let mut rows = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            rows.push(item);
            let about = options.get(at).and_then(|option| option.description.as_deref());
            if let Some(about) = about.filter(|_| self.is_plain || cx.max_rows >= LOW) {
                let about = one_line(about);
                let lines = wrap(&[Span::styled(about, cx.theme.fg(ColorRole::Muted))], cx.columns.saturating_sub(4));
                rows.extend(lines.into_iter().map(indented));
            }
        }
        rows
    }
}

/// Indents a row by four columns.
fn indented(row: Row) -> Row {
    let mut spans = vec![Span::styled("    ", Style::new())];
    spans.extend(row.spans);
    Row::from(spans)
}

/// Formats a duration.
fn duration(ms: i64) -> String {
    let seconds = u64::try_from(ms).unwrap_or(0).div_ceil(1_000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m {seconds}s"),
    }
}

impl DialogView<ChatChoice> for AgentQuestionDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        self.shown_ms.get_or_insert(cx.now_ms);
        let title = self.title(cx.now_ms);
        let text = self.question().map(|question| question.text.clone()).unwrap_or_default();
        let cancel = cx.keymap.hint(KeyAction::SelectCancel);
        let confirm = cx.keymap.hint(KeyAction::SelectConfirm);
        let (below, hints, column) = match &mut self.own {
            Some(line) => {
                let (row, column) = line.row(cx.columns, cx.theme);
                let about = Row::styled("Your answer:", cx.theme.fg(ColorRole::Muted));
                let hints = [hint(&confirm, "answer"), hint(&cancel, "back to the options")];
                (vec![truncate(&about, cx.columns, "…"), row], hints, Some(column))
            }
            None => {
                let is_multiple = self.question().is_some_and(|question| question.is_multiple);
                let confirms = if is_multiple { "choose several, then Done" } else { "answer" };
                (self.option_rows(cx), [hint(&confirm, confirms), hint(&cancel, "do not answer")], None)
            }
        };
        let mut content = Vec::new();
        for line in sanitize(&text, SanitizeMode::Output).lines() {
            content.extend(wrap(&[Span::raw(line.to_owned())], cx.columns));
        }
        let above = framed(&title, Vec::new(), &[], cx).len() - 1;
        let around = framed(&title, Vec::new(), &hints, cx).len() + below.len();
        let room = cx.max_rows.saturating_sub(around).max(1);
        if content.len() > room && !self.is_plain {
            content.truncate(room.saturating_sub(1));
            let more = Row::styled("… the question is longer than the screen", cx.theme.fg(ColorRole::Warning));
            content.push(truncate(&more, cx.columns, "…"));
        }
        let at = above + content.len() + below.len() - 1;
        content.extend(below);
        (framed(&title, content, &hints, cx), column.map(|column| (at, column)))
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent<ChatChoice> {
        if let Some(line) = &mut self.own {
            return match cx.keymap.action(KeyContext::Select, &press.key) {
                Some(KeyAction::SelectConfirm) => {
                    let text = line.text();
                    self.answer_own(&text)
                }
                Some(KeyAction::SelectCancel) => {
                    self.own = None;
                    DialogEvent::Changed
                }
                _ => {
                    line.key(press, cx.keymap);
                    DialogEvent::Changed
                }
            };
        }
        let was_seen = self.was_seen(cx.now_ms);
        match (press.text, self.picker.key(press, cx.keymap)) {
            (_, PickerEvent::Changed) => DialogEvent::Changed,
            (_, PickerEvent::Cancelled | PickerEvent::Chosen(_)) if !was_seen => DialogEvent::Ignored,
            (_, PickerEvent::Cancelled) => {
                DialogEvent::Close(vec![ChatChoice::Answer { asked: self.asked.clone(), answers: None }])
            }
            (_, PickerEvent::Chosen(at)) => self.choose(at),
            (Some(' '), PickerEvent::Ignored) => match self.picker.selected().filter(|at| *at < self.chosen.len()) {
                Some(at) if was_seen && self.question().is_some_and(|question| question.is_multiple) => self.choose(at),
                _ => DialogEvent::Ignored,
            },
            (_, PickerEvent::Ignored) => DialogEvent::Ignored,
        }
    }

    fn line(&mut self, line: &str, cx: DialogCx<'_>) -> Option<DialogEvent<ChatChoice>> {
        if self.own.is_some() {
            return Some(self.answer_own(line));
        }
        // A line that was meant for something else must not answer.
        let named = self.picker.item_of_line(line).filter(|_| self.was_seen(cx.now_ms));
        Some(match named.map(|at| self.choose(at)) {
            None | Some(DialogEvent::Ignored) => DialogEvent::Do(vec![ChatChoice::NameAnOption]),
            Some(done) => done,
        })
    }

    fn paste(&mut self, text: &str) {
        if let Some(line) = &mut self.own {
            line.paste(text);
        }
    }

    fn counts_down(&self) -> bool {
        !self.is_plain
    }
}
