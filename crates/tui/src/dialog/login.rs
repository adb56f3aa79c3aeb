//! Login to a provider: instructions for the browser, and questions.

use pinch_coding_agent::login::LoginQuestion;
use pinch_llm::oauth::SignInPage;
use ratatui_core::text::Span;

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::editor_line::LineEditor;
use crate::effect::{DialogAnswer, Effect};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{SanitizeMode, sanitize, truncate, wrap};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Minimum number of options that are shown.
const MIN_CHOICES: usize = 3;

/// The dialog. It is recreated when the login shows or asks something else.
pub(crate) struct LoginView {
    title: String,
    page: Option<SignInPage>,
    progress: Option<String>,
    field: LoginField,
    is_secret: bool,
}

enum LoginField {
    Nothing,
    Line { about: String, line: LineEditor },
    Choice { picker: Picker, ids: Vec<String>, about: String },
}

impl LoginView {
    /// Creates a dialog from what a login has shown and asks.
    pub(crate) fn new(
        provider: &str,
        page: Option<SignInPage>,
        progress: Option<String>,
        question: Option<&LoginQuestion>,
    ) -> Self {
        let field = match question {
            None => LoginField::Nothing,
            Some(LoginQuestion::Text(prompt)) => LoginField::Line {
                about: prompt.message.clone(),
                line: if prompt.is_secret { LineEditor::masked() } else { LineEditor::new("") },
            },
            Some(LoginQuestion::Choice(choice)) => {
                let items = choice.options.iter().map(|option| PickItem::new(option.label.clone())).collect();
                let ids = choice.options.iter().map(|option| option.id.clone()).collect();
                LoginField::Choice { picker: Picker::without_search(items, 10), ids, about: choice.message.clone() }
            }
            Some(LoginQuestion::Paste) => LoginField::Line {
                about: "If the browser runs on another computer, paste the address it ends at, or the code:".to_owned(),
                line: LineEditor::new(""),
            },
        };
        let is_secret = matches!(question, Some(LoginQuestion::Text(prompt)) if prompt.is_secret);
        Self { title: format!("Log in to {provider}"), page, progress, field, is_secret }
    }
}

impl LoginView {
    /// Returns the texts above the field, in at most so many rows. If there is not enough room, the less important ones are left out.
    fn texts(&self, max_rows: usize, cx: DialogCx<'_>) -> Vec<Row> {
        let text = |text: &str, token: ColorRole| {
            let mut rows = Vec::new();
            for line in sanitize(text, SanitizeMode::Output).lines() {
                rows.extend(wrap(&[Span::styled(line.to_owned(), cx.theme.fg(token))], cx.columns));
            }
            rows
        };
        let mut blocks = Vec::new();
        if let Some(page) = &self.page {
            // The whole URL, so that it can be copied.
            blocks.push((TextImportance::Needed, text(&page.url, ColorRole::MdLink)));
            if let Some(instructions) = &page.instructions {
                blocks.push((TextImportance::Helpful, text(instructions, ColorRole::Text)));
            }
            if let Some(code) = &page.user_code {
                blocks.push((TextImportance::Needed, text(&format!("Code: {code}"), ColorRole::Accent)));
            }
        }
        if let Some(progress) = &self.progress {
            blocks.push((TextImportance::Minor, text(progress, ColorRole::Muted)));
        }
        match &self.field {
            LoginField::Nothing => {}
            LoginField::Line { about, .. } | LoginField::Choice { about, .. } => {
                blocks.push((TextImportance::Helpful, text(about, ColorRole::Text)));
            }
        }
        for importance in [TextImportance::Minor, TextImportance::Helpful] {
            while blocks.iter().map(|(_, rows)| rows.len()).sum::<usize>() > max_rows
                && let Some(at) = blocks.iter().position(|(one, _)| *one == importance)
            {
                blocks.remove(at);
            }
        }
        let mut rows: Vec<Row> = blocks.into_iter().flat_map(|(_, rows)| rows).collect();
        rows.truncate(max_rows);
        rows
    }
}

/// How important a text is on a low screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextImportance {
    Minor,
    Helpful,
    Needed,
}

impl DialogView for LoginView {
    fn is_secret(&self) -> bool {
        self.is_secret
    }

    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let theme = cx.theme;
        let title = truncate(&Row::from(self.title.clone()), cx.columns, "…").to_string();
        let mut hints = vec![hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel")];
        if !matches!(self.field, LoginField::Nothing) {
            hints.insert(0, hint(&cx.keymap.hint(KeyAction::SelectConfirm), "continue"));
        }
        let field_rows = match &self.field {
            LoginField::Nothing => 0,
            LoginField::Line { .. } => 1,
            LoginField::Choice { ids, .. } => ids.len().min(MIN_CHOICES),
        };
        let room = room(&title, &hints, cx);
        let mut content = self.texts(room.saturating_sub(field_rows), cx);
        let mut cursor = None;
        match &mut self.field {
            LoginField::Nothing => {}
            LoginField::Line { line, .. } => {
                let (row, column) = line.row(cx.columns, theme);
                cursor = Some((2 + content.len(), column));
                content.push(row);
            }
            LoginField::Choice { picker, .. } => {
                picker.fit(room.saturating_sub(content.len()));
                content.extend(picker.rows(cx.columns, theme));
            }
        }
        (framed(&title, content, &hints, cx), cursor)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        let answered = |answer| DialogEvent::close_with(Effect::DialogAnswer(answer));
        let action = cx.keymap.action(KeyContext::Select, &press.key);
        if action == Some(KeyAction::SelectCancel) {
            return answered(DialogAnswer::Dismissed);
        }
        match &mut self.field {
            LoginField::Nothing => DialogEvent::Ignored,
            LoginField::Line { line, .. } if action == Some(KeyAction::SelectConfirm) => {
                answered(DialogAnswer::Text(line.text()))
            }
            LoginField::Line { line, .. } => {
                line.key(press, cx.keymap);
                DialogEvent::Changed
            }
            LoginField::Choice { picker, ids, .. } => match picker.key(press, cx.keymap) {
                PickerEvent::Chosen(at) => {
                    ids.get(at).cloned().map_or(DialogEvent::Ignored, |id| answered(DialogAnswer::Text(id)))
                }
                PickerEvent::Changed => DialogEvent::Changed,
                PickerEvent::Cancelled => answered(DialogAnswer::Dismissed),
                PickerEvent::Ignored => DialogEvent::Ignored,
            },
        }
    }

    fn line(&mut self, line: &str, _cx: DialogCx<'_>) -> Option<DialogEvent> {
        let LoginField::Choice { picker, ids, .. } = &self.field else { return None };
        Some(match picker.item_of_line(line).and_then(|at| ids.get(at)) {
            Some(id) => DialogEvent::close_with(Effect::DialogAnswer(DialogAnswer::Text(id.clone()))),
            None => DialogEvent::Ignored,
        })
    }

    fn paste(&mut self, text: &str) {
        match &mut self.field {
            LoginField::Line { line, .. } => line.paste(text.trim()),
            LoginField::Choice { picker, .. } => picker.paste(text),
            LoginField::Nothing => {}
        }
    }
}
