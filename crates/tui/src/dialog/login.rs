//! Logging in to a provider: what is to be done in the browser, and what is asked for.

use pinch_coding_agent::login::LoginQuestion;
use pinch_llm::oauth::SignInPage;
use ratatui_core::text::Span;

use super::{Dialog, DialogCx, DialogEvent, framed, hint};
use crate::Row;
use crate::editor_line::LineEditor;
use crate::effect::{Answer, Effect};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{Strictness, sanitize, truncate, wrap};
use crate::theme::Token;
use crate::widget::{PickItem, Picker, PickerEvent};

/// The dialog. It is made anew when the login has something else to show or to ask.
pub(crate) struct LoginView {
    title: String,
    page: Option<SignInPage>,
    progress: Option<String>,
    field: Field,
}

enum Field {
    Nothing,
    Line { about: String, line: LineEditor },
    Choice { picker: Picker, ids: Vec<String>, about: String },
}

impl LoginView {
    /// What a login has shown and asks.
    pub(crate) fn new(
        provider: &str,
        page: Option<SignInPage>,
        progress: Option<String>,
        question: Option<&LoginQuestion>,
    ) -> Self {
        let field = match question {
            None => Field::Nothing,
            Some(LoginQuestion::Text(prompt)) => Field::Line {
                about: prompt.message.clone(),
                line: if prompt.is_secret { LineEditor::masked() } else { LineEditor::new("") },
            },
            Some(LoginQuestion::Choice(choice)) => {
                let items = choice.options.iter().map(|option| PickItem::new(option.label.clone())).collect();
                let ids = choice.options.iter().map(|option| option.id.clone()).collect();
                Field::Choice { picker: Picker::without_search(items, 10), ids, about: choice.message.clone() }
            }
            Some(LoginQuestion::Paste) => Field::Line {
                about: "If the browser runs on another computer, paste the address it ends at, or the code:".to_owned(),
                line: LineEditor::new(""),
            },
        };
        Self { title: format!("Log in to {provider}"), page, progress, field }
    }
}

impl Dialog for LoginView {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let theme = cx.theme;
        let mut content = Vec::new();
        let text = |text: &str, token: Token| {
            let mut rows = Vec::new();
            for line in sanitize(text, Strictness::Output).lines() {
                rows.extend(wrap(&[Span::styled(line.to_owned(), theme.fg(token))], cx.columns));
            }
            rows
        };
        if let Some(page) = &self.page {
            // The whole address, so that it can be copied.
            content.extend(text(&page.url, Token::MdLink));
            if let Some(instructions) = &page.instructions {
                content.extend(text(instructions, Token::Text));
            }
            if let Some(code) = &page.user_code {
                content.extend(text(&format!("Code: {code}"), Token::Accent));
            }
        }
        if let Some(progress) = &self.progress {
            content.extend(text(progress, Token::Muted));
        }
        let title_rows = 2;
        let mut cursor = None;
        match &mut self.field {
            Field::Nothing => {}
            Field::Line { about, line } => {
                content.extend(text(about, Token::Text));
                let (row, column) = line.row(cx.columns, theme);
                cursor = Some((title_rows + content.len(), column));
                content.push(row);
            }
            Field::Choice { picker, about, .. } => {
                content.extend(text(about, Token::Text));
                content.extend(picker.rows(cx.columns, theme));
            }
        }
        let mut hints = vec![hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel")];
        if !matches!(self.field, Field::Nothing) {
            hints.insert(0, hint(&cx.keymap.hint(KeyAction::SelectConfirm), "continue"));
        }
        let title = truncate(&Row::from(self.title.clone()), cx.columns, "…").to_string();
        (framed(&title, content, &hints, cx), cursor)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        let answered = |answer| DialogEvent::close_with(Effect::Answer(answer));
        let action = cx.keymap.action(KeyContext::Select, &press.key);
        if action == Some(KeyAction::SelectCancel) {
            return answered(Answer::Dismissed);
        }
        match &mut self.field {
            Field::Nothing => DialogEvent::Ignored,
            Field::Line { line, .. } if action == Some(KeyAction::SelectConfirm) => answered(Answer::Text(line.text())),
            Field::Line { line, .. } => {
                line.key(press, cx.keymap);
                DialogEvent::Changed
            }
            Field::Choice { picker, ids, .. } => match picker.key(press, cx.keymap) {
                PickerEvent::Chosen(at) => {
                    ids.get(at).cloned().map_or(DialogEvent::Ignored, |id| answered(Answer::Text(id)))
                }
                PickerEvent::Changed => DialogEvent::Changed,
                PickerEvent::Cancelled => answered(Answer::Dismissed),
                PickerEvent::Ignored => DialogEvent::Ignored,
            },
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.field {
            Field::Line { line, .. } => line.paste(text.trim()),
            Field::Choice { picker, .. } => picker.paste(text),
            Field::Nothing => {}
        }
    }
}
