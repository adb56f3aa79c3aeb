//! A choice of a model.

use std::sync::Arc;

use pinch_coding_agent::session::ScopedModel;
use pinch_llm::model::Model;
use ratatui_core::text::Span;

use super::{DialogCx, DialogEvent, DialogView, SAVE, framed, hint, room, tab};
use crate::Row;
use crate::effect::Effect;
use crate::figures::tokens;
use crate::key::{Key, KeyCode, KeyPress};
use crate::keymap::KeyAction;
use crate::text::{one_line, truncate};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

const TITLE: &str = "Model";
/// Minimum rows of the list: the search, two models and their number.
const MIN_ROWS: usize = 4;

/// The dialog: all models with credentials, or those in the scope.
pub(crate) struct ModelDialog {
    all: Vec<Arc<Model>>,
    scope: Vec<Arc<Model>>,
    shows_scope: bool,
    current: Arc<Model>,
    picker: Picker,
    problem: Option<String>,
}

fn is_same(one: &Model, other: &Model) -> bool {
    one.provider == other.provider && one.id == other.id
}

impl ModelDialog {
    /// Creates a list of usable models, initially limited to the scope if there is one. `problem`: why the list of models is incomplete.
    pub(crate) fn new(
        mut all: Vec<Arc<Model>>,
        scope: &[ScopedModel],
        current: Arc<Model>,
        search: &str,
        problem: Option<String>,
    ) -> Self {
        all.sort_by_key(|model| (!is_same(model, &current), model.provider.clone()));
        let scope: Vec<Arc<Model>> = scope.iter().map(|scoped| Arc::clone(&scoped.model)).collect();
        let shows_scope = !scope.is_empty();
        let mut dialog = Self { all, scope, shows_scope, current, picker: Picker::new(Vec::new(), 10), problem };
        dialog.fill();
        if !search.is_empty() {
            dialog.picker.set_query(search);
        }
        dialog
    }

    fn models(&self) -> &[Arc<Model>] {
        if self.shows_scope { &self.scope } else { &self.all }
    }

    fn fill(&mut self) {
        let item = |model: &Arc<Model>| {
            let (provider, id) = (&model.provider, &model.id);
            PickItem::new(id.to_string())
                .detail(format!("[{provider}]"))
                .search(format!("{id} {provider} {provider}/{id} {provider} {id}"))
                .current(is_same(model, &self.current))
        };
        let items = self.models().iter().map(item).collect();
        self.picker.set_items(items);
    }

    fn chosen(&self, at: usize, save: bool) -> DialogEvent {
        match self.models().get(at) {
            Some(model) => DialogEvent::close_with(Effect::SetModel { model: Arc::clone(model), save }),
            None => DialogEvent::Ignored,
        }
    }
}

impl ModelDialog {
    /// Describes the selected model.
    fn facts(&self, cx: DialogCx<'_>) -> Option<Row> {
        let model = self.models().get(self.picker.selected()?)?;
        let mut facts = vec![one_line(&model.name)];
        if model.context_window > 0 {
            facts.push(format!("{} tokens", tokens(model.context_window)));
        }
        if model.reasoning {
            facts.push("thinking".to_owned());
        }
        if model.images {
            facts.push("images".to_owned());
        }
        if model.rates.input > 0.0 || model.rates.output > 0.0 {
            facts.push(format!("${} in, ${} out per million tokens", model.rates.input, model.rates.output));
        }
        Some(truncate(&Row::styled(facts.join(" · "), cx.theme.fg(ColorRole::Muted)), cx.columns, "…"))
    }
}

impl DialogView for ModelDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let theme = cx.theme;
        let mut above = Vec::new();
        if self.scope.is_empty() {
            let text = "Only models of providers with credentials are listed; /login adds one";
            above.push(truncate(&Row::styled(text, theme.fg(ColorRole::Muted)), cx.columns, "…"));
        } else {
            let mut line = tab("scoped", self.shows_scope, theme);
            line.push(Span::raw("  "));
            line.extend(tab("all", !self.shows_scope, theme));
            line.push(Span::styled("  tab changes", theme.fg(ColorRole::Dim)));
            above.push(truncate(&Row::from(line), cx.columns, "…"));
        }
        if let Some(problem) = &self.problem {
            above.push(truncate(&Row::styled(one_line(problem), theme.fg(ColorRole::Error)), cx.columns, "…"));
        }
        let mut below: Vec<Row> = self.facts(cx).into_iter().collect();
        let hints = [
            hint(&cx.keymap.hint(KeyAction::SelectConfirm), "use in this session"),
            hint(&SAVE.to_string(), "use and make default"),
            hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel"),
        ];
        // On a low screen, the list comes first.
        let extra = room(TITLE, &hints, cx).saturating_sub(MIN_ROWS);
        above.truncate(extra);
        below.truncate(extra - above.len());
        self.picker.fit(room(TITLE, &hints, cx) - above.len() - below.len());
        let content = [above, self.picker.rows(cx.columns, theme), below].concat();
        (framed(TITLE, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        if press.key == SAVE {
            return self.picker.selected().map_or(DialogEvent::Ignored, |at| self.chosen(at, true));
        }
        if press.key == Key::plain(KeyCode::Tab) && !self.scope.is_empty() {
            self.shows_scope = !self.shows_scope;
            self.fill();
            return DialogEvent::Changed;
        }
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => DialogEvent::Changed,
            PickerEvent::Cancelled => DialogEvent::Close(Vec::new()),
            PickerEvent::Chosen(at) => self.chosen(at, false),
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}
