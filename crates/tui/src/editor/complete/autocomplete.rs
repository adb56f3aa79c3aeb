//! Completion between the keys and an editor.

use std::time::Duration;

use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::stdx::cancel::{Cancel, CancelReason};

use super::menu::Menu;
use super::query::{CompletionQuery, CompletionToken, path_token, typed_token, written_path};
use super::sources::CompletionSources;
use crate::Row;
use crate::editor::{Editor, EditorEvent, TextPosition, ViMode};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext, Keymap};
use crate::theme::Palette;

/// How long to wait for another key before a slow lookup starts.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Default number of visible suggestions.
const VISIBLE: usize = 5;

/// A request for suggestions.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// What to complete.
    pub query: CompletionQuery,
    /// Cancelled when the answer is no longer needed.
    pub cancel: Cancel,
    token: CompletionToken,
    /// Whether the tab key made the request, so that a single suggestion is inserted immediately.
    is_explicit: bool,
    revision: u64,
    cursor: TextPosition,
}

impl CompletionRequest {
    /// Returns how long to wait before answering, since another key may make the answer useless.
    pub fn debounce(&self) -> Duration {
        match self.query {
            CompletionQuery::Mention { .. } | CompletionQuery::Hash { .. } => DEBOUNCE,
            CompletionQuery::Command { .. } | CompletionQuery::Argument { .. } | CompletionQuery::Path { .. } => {
                Duration::ZERO
            }
        }
    }

    /// Waits for the debounce time, and looks the answer up on another thread.
    pub(crate) async fn look_up(self, sources: CompletionSources) -> (Self, Vec<Completion>) {
        tokio::time::sleep(self.debounce()).await;
        let (query, cancel) = (self.query.clone(), self.cancel.clone());
        let found = tokio::task::spawn_blocking(move || sources.complete(&query, &cancel)).await;
        (self, found.unwrap_or_default())
    }
}

/// Completion for an editor: keys go through [`Autocomplete::handle`], requests come out of [`Autocomplete::take_request`], and answers go
/// to [`Autocomplete::offer`].
#[derive(Debug)]
pub struct Autocomplete {
    visible: usize,
    menu: Option<Menu>,
    request: Option<CompletionRequest>,
    /// Cancels the last request.
    asked: Cancel,
}

impl Default for Autocomplete {
    fn default() -> Self {
        Self { visible: VISIBLE, menu: None, request: None, asked: Cancel::new() }
    }
}

impl Autocomplete {
    /// Sets the number of visible suggestions: 3 to 20.
    pub fn set_visible(&mut self, n: usize) {
        self.visible = n.clamp(3, 20);
    }

    /// Returns whether suggestions are shown.
    pub fn is_open(&self) -> bool {
        self.menu.is_some()
    }

    /// Hides the suggestions, and drops the request.
    pub fn close(&mut self) {
        self.menu = None;
        self.request = None;
        self.asked.cancel(CancelReason::Superseded);
    }

    /// Takes the request that should be answered now.
    pub fn take_request(&mut self) -> Option<CompletionRequest> {
        self.request.take()
    }

    /// Returns the suggestions; no rows if there are none.
    pub fn rows(&self, columns: usize, theme: &Palette) -> Vec<Row> {
        self.menu.as_ref().map_or_else(Vec::new, |menu| menu.rows(columns, self.visible, theme))
    }

    /// Handles a key: it moves the selection, accepts a suggestion, requests suggestions, or goes to the editor.
    pub fn handle(&mut self, press: &KeyPress, keymap: &Keymap, editor: &mut Editor) -> EditorEvent {
        if self.menu.is_some()
            && press.text.is_none()
            && let Some(event) = self.menu_key(press, keymap, editor)
        {
            return event;
        }
        let is_tab = keymap.action(KeyContext::Input, &press.key) == Some(KeyAction::Tab);
        if is_tab && !editor.is_single_line && press.text.is_none() {
            let token = match typed_token_at(editor) {
                Some(token)
                    if matches!(token.query, CompletionQuery::Command { .. } | CompletionQuery::Mention { .. }) =>
                {
                    token
                }
                _ => path_token(before_cursor(editor)),
            };
            self.ask(token, editor, true);
            return EditorEvent::Moved;
        }
        let event = editor.handle(press, keymap);
        match event {
            EditorEvent::Changed => self.refresh(editor),
            EditorEvent::Moved if self.is_open() => self.refresh(editor),
            EditorEvent::Submit(_) => self.close(),
            EditorEvent::Moved | EditorEvent::Ignored => {}
        }
        event
    }

    /// Checks again what can be completed, after a change of the text that was not caused by a key.
    pub fn refresh(&mut self, editor: &Editor) {
        let is_typing =
            editor.vi_mode() != Some(ViMode::Normal) && !editor.history.is_browsing() && !editor.is_single_line;
        let open = self.menu.as_ref().map(|menu| &menu.token);
        let is_path = open.is_some_and(|token| matches!(token.query, CompletionQuery::Path { .. }));
        let token = match typed_token_at(editor) {
            None if is_path => Some(path_token(before_cursor(editor))).filter(|token| !token.query.typed().is_empty()),
            token => token,
        };
        let Some(token) = token.filter(|_| is_typing) else { return self.close() };
        let is_other = self.menu.as_ref().is_some_and(|menu| {
            let is_same_kind = std::mem::discriminant(&menu.token.query) == std::mem::discriminant(&token.query);
            !is_same_kind || menu.token.start != token.start || menu.line != editor.cursor().line
        });
        if is_other {
            self.menu = None;
        }
        self.ask(token, editor, false);
    }

    fn ask(&mut self, token: CompletionToken, editor: &Editor, is_explicit: bool) {
        self.asked.cancel(CancelReason::Superseded);
        self.asked = Cancel::new();
        self.request = Some(CompletionRequest {
            query: token.query.clone(),
            cancel: self.asked.clone(),
            token,
            is_explicit,
            revision: editor.revision(),
            cursor: editor.cursor(),
        });
    }

    /// Shows the suggestions for a request, if text and cursor are unchanged. The only suggestion for a request of the tab key is inserted
    /// immediately; if there is no such command, a path is requested.
    pub fn offer(&mut self, request: &CompletionRequest, found: Vec<Completion>, editor: &mut Editor) -> EditorEvent {
        let is_stale = editor.revision() != request.revision || editor.cursor() != request.cursor;
        if is_stale || request.cancel.is_cancelled() {
            return EditorEvent::Ignored;
        }
        let token = request.token.clone();
        if found.is_empty() && request.is_explicit && matches!(token.query, CompletionQuery::Command { .. }) {
            self.ask(path_token(before_cursor(editor)), editor, true);
            return EditorEvent::Ignored;
        }
        self.menu = Menu::new(token, request.cursor.line, found);
        if request.is_explicit && self.menu.as_ref().is_some_and(|menu| menu.n_items() == 1) {
            let has_changed = self.accept(editor);
            return if has_changed { EditorEvent::Changed } else { EditorEvent::Moved };
        }
        EditorEvent::Moved
    }

    /// Handles a key while suggestions are shown; `None` if it is for the editor.
    fn menu_key(&mut self, press: &KeyPress, keymap: &Keymap, editor: &mut Editor) -> Option<EditorEvent> {
        let is_current = self.is_current(editor);
        let menu = self.menu.as_mut()?;
        if keymap.action(KeyContext::Input, &press.key) == Some(KeyAction::Tab) {
            if !is_current {
                // The tab key makes a new request.
                self.close();
                return None;
            }
            let has_changed = self.accept(editor);
            return Some(if has_changed { EditorEvent::Changed } else { EditorEvent::Moved });
        }
        match keymap.action(KeyContext::Select, &press.key)? {
            KeyAction::SelectUp => menu.up(),
            KeyAction::SelectDown => menu.down(),
            KeyAction::SelectPageUp => menu.page(self.visible, true),
            KeyAction::SelectPageDown => menu.page(self.visible, false),
            KeyAction::SelectCancel => self.close(),
            KeyAction::SelectConfirm if !is_current => {
                self.close();
                return None;
            }
            KeyAction::SelectConfirm => {
                let is_command = matches!(menu.token.query, CompletionQuery::Command { .. });
                let has_changed = self.accept(editor);
                if is_command {
                    self.close();
                    return Some(EditorEvent::Submit(editor.submit()));
                }
                // A text that is already complete is submitted.
                return has_changed.then_some(EditorEvent::Changed);
            }
            _ => return None,
        }
        Some(EditorEvent::Moved)
    }

    /// Returns whether the suggestions are for the current text; they arrive slightly later.
    fn is_current(&self, editor: &Editor) -> bool {
        let Some(menu) = &self.menu else { return false };
        let query = match menu.token.query {
            CompletionQuery::Path { .. } => Some(path_token(before_cursor(editor)).query),
            _ => typed_token_at(editor).map(|token| token.query),
        };
        query.as_ref() == Some(&menu.token.query)
    }

    /// Inserts the selected suggestion; true if that changes the text.
    fn accept(&mut self, editor: &mut Editor) -> bool {
        let Some(menu) = self.menu.take() else { return false };
        let Some(item) = menu.selected() else { return false };
        let behind = &editor.lines()[editor.cursor().line][editor.cursor().byte..];
        let is_folder = item.value.ends_with('/');
        let (text, n_behind) = match &menu.token.query {
            CompletionQuery::Command { .. } => (format!("/{} ", item.value), 0),
            CompletionQuery::Argument { .. } => (item.value.clone(), 0),
            CompletionQuery::Hash { .. } => (format!("#{} ", item.value), 0),
            CompletionQuery::Path { is_quoted, .. } => written_path(&item.value, *is_quoted),
            CompletionQuery::Mention { is_quoted, .. } => {
                let (path, n_behind) = written_path(&item.value, *is_quoted);
                (format!("@{path}{}", if is_folder { "" } else { " " }), n_behind)
            }
        };
        // An existing closing quote is not repeated.
        let has_quote = behind.starts_with('"') && text.trim_end().ends_with('"');
        let continues = is_folder || matches!(menu.token.query, CompletionQuery::Command { .. });
        let has_changed = editor.complete(menu.token.start, usize::from(has_quote), &text, n_behind);
        self.close();
        if continues && has_changed {
            let is_path = matches!(menu.token.query, CompletionQuery::Path { .. });
            if is_path {
                self.ask(path_token(before_cursor(editor)), editor, false);
            } else {
                self.refresh(editor);
            }
        }
        has_changed
    }
}

fn before_cursor(editor: &Editor) -> &str {
    let TextPosition { line, byte } = editor.cursor();
    editor.lines().get(line).map_or("", |line| &line[..byte])
}

fn typed_token_at(editor: &Editor) -> Option<CompletionToken> {
    typed_token(before_cursor(editor), editor.cursor().line == 0)
}

impl Editor {
    /// Replaces the part of a line from `start` to `n_more` bytes after the cursor, and moves the cursor to `n_behind` bytes before the end
    /// of the new text. True if that changes the text.
    fn complete(&mut self, start: usize, n_more: usize, text: &str, n_behind: usize) -> bool {
        let TextPosition { line, byte } = self.cursor();
        let (start, end) = (TextPosition { line, byte: start }, TextPosition { line, byte: byte + n_more });
        if self.buffer.slice(start, end) == text {
            return false;
        }
        let end = self.replace(start, end, text, crate::editor::change::UndoUnit::Own);
        self.set_cursor(TextPosition { byte: end.byte - n_behind, ..end });
        true
    }
}
