//! A choice of the models to cycle through.

use std::sync::Arc;

use pinch_llm::model::Model;

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::text::truncate;
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

const TITLE: &str = "Models to cycle through";

/// The dialog. Changes apply to the session immediately; saving makes them permanent.
pub(crate) struct ScopedModelDialog {
    /// All models, as `provider/id`, and their providers.
    all: Vec<(String, String)>,
    /// Enabled models in cycle order; `None`: all of them.
    enabled: Option<Vec<String>>,
    picker: Picker,
    /// Displayed models as indices into `all`: enabled ones first, in their order.
    order: Vec<usize>,
    unsaved: bool,
}

impl ScopedModelDialog {
    /// Creates a list of all models; `enabled` is empty if all are enabled.
    pub(crate) fn new(all: &[Arc<Model>], enabled: Vec<String>) -> Self {
        let all = all.iter().map(|model| (format!("{}/{}", model.provider, model.id), model.provider.to_string()));
        let mut dialog = Self {
            all: all.collect(),
            enabled: Some(enabled).filter(|enabled| !enabled.is_empty()),
            picker: Picker::new(Vec::new(), 8),
            order: Vec::new(),
            unsaved: false,
        };
        dialog.fill();
        dialog
    }

    fn is_enabled(&self, name: &str) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| enabled.iter().any(|enabled| enabled == name))
    }

    /// Fills the list and keeps the selection.
    fn fill(&mut self) {
        let selected = self.picker.selected().and_then(|at| self.order.get(at)).copied();
        let rank =
            |name: &str| self.enabled.as_ref().and_then(|enabled| enabled.iter().position(|enabled| enabled == name));
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|&at| rank(&self.all[at].0).unwrap_or(usize::MAX));
        let items = order.iter().map(|&at| {
            let name = &self.all[at].0;
            let sign = if self.is_enabled(name) { "✓" } else { "✗" };
            PickItem::new(format!("{sign} {name}")).search(name.clone())
        });
        let items = items.collect();
        self.order = order;
        self.picker.set_items(items);
        if let Some(at) = selected.and_then(|selected| self.order.iter().position(|at| *at == selected)) {
            self.picker.select(at);
        }
    }

    fn selected(&self) -> Option<&(String, String)> {
        self.picker.selected().and_then(|at| self.order.get(at)).and_then(|&at| self.all.get(at))
    }

    /// Returns the models that match the search.
    fn shown(&self) -> Vec<String> {
        self.picker
            .shown()
            .iter()
            .filter_map(|&at| self.all.get(*self.order.get(at)?))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn changed(&mut self, enabled: Option<Vec<String>>) -> DialogEvent {
        // Enabling everything is the same as no list.
        self.enabled = enabled.filter(|enabled| enabled.len() < self.all.len());
        self.unsaved = true;
        self.fill();
        DialogEvent::Do(vec![Effect::SetScope { models: self.enabled.clone().unwrap_or_default(), save: false }])
    }

    fn toggle(&mut self, names: &[String]) -> DialogEvent {
        let mut enabled = match &self.enabled {
            // The first choice out of all models starts a list.
            None => return self.changed(Some(names.to_vec())),
            Some(enabled) => enabled.clone(),
        };
        if names.iter().all(|name| enabled.contains(name)) {
            enabled.retain(|name| !names.contains(name));
        } else {
            enabled.extend(names.iter().filter(|name| !self.is_enabled(name)).cloned());
        }
        self.changed(Some(enabled))
    }

    /// Moves the selected model in the cycle.
    fn reorder(&mut self, up: bool) -> DialogEvent {
        let Some(name) = self.selected().map(|(name, _)| name.clone()) else { return DialogEvent::Ignored };
        let Some(mut enabled) = self.enabled.clone() else { return DialogEvent::Ignored };
        let Some(at) = enabled.iter().position(|enabled| *enabled == name) else { return DialogEvent::Ignored };
        let other = if up { at.checked_sub(1) } else { Some(at + 1).filter(|at| *at < enabled.len()) };
        let Some(other) = other else { return DialogEvent::Ignored };
        enabled.swap(at, other);
        self.changed(Some(enabled))
    }
}

impl DialogView for ScopedModelDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let n = self.enabled.as_ref().map_or(self.all.len(), Vec::len);
        let unsaved = if self.unsaved { " (unsaved)" } else { "" };
        let line = format!("{n}/{} enabled{unsaved}", self.all.len());
        let counts = truncate(&Row::styled(line, cx.theme.fg(ColorRole::Muted)), cx.columns, "…");
        let key = |action| cx.keymap.hint(action);
        let hints = [
            hint(&key(KeyAction::SelectConfirm), "toggle"),
            hint(&key(KeyAction::ModelsEnableAll), "all"),
            hint(&key(KeyAction::ModelsClearAll), "none"),
            hint(&key(KeyAction::ModelsToggleProvider), "provider"),
            hint(&format!("{}/{}", key(KeyAction::ModelsReorderUp), key(KeyAction::ModelsReorderDown)), "move"),
            hint(&key(KeyAction::ModelsSave), "save"),
        ];
        self.picker.fit(room(TITLE, &hints, cx).saturating_sub(1));
        let mut content = self.picker.rows(cx.columns, cx.theme);
        content.push(counts);
        (framed(TITLE, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        match cx.keymap.action(KeyContext::ScopedModels, &press.key) {
            Some(KeyAction::ModelsSave) => {
                self.unsaved = false;
                let models = self.enabled.clone().unwrap_or_default();
                return DialogEvent::Do(vec![Effect::SetScope { models, save: true }]);
            }
            Some(KeyAction::ModelsEnableAll) => {
                let shown = self.shown();
                if shown.len() == self.all.len() {
                    return self.changed(None);
                }
                let mut enabled =
                    self.enabled.clone().unwrap_or_else(|| self.all.iter().map(|(name, _)| name.clone()).collect());
                enabled.extend(shown.into_iter().filter(|name| !self.is_enabled(name)));
                return self.changed(Some(enabled));
            }
            Some(KeyAction::ModelsClearAll) => {
                let shown = self.shown();
                let all = || self.all.iter().map(|(name, _)| name.clone()).collect();
                let mut enabled = self.enabled.clone().unwrap_or_else(all);
                enabled.retain(|name| !shown.contains(name));
                return self.changed(Some(enabled));
            }
            Some(KeyAction::ModelsToggleProvider) => {
                let Some((_, provider)) = self.selected().cloned() else { return DialogEvent::Ignored };
                let names: Vec<String> =
                    self.all.iter().filter(|(_, of)| *of == provider).map(|(name, _)| name.clone()).collect();
                return self.toggle(&names);
            }
            Some(KeyAction::ModelsReorderUp) => return self.reorder(true),
            Some(KeyAction::ModelsReorderDown) => return self.reorder(false),
            _ => {}
        }
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => DialogEvent::Changed,
            PickerEvent::Cancelled => DialogEvent::Close(Vec::new()),
            PickerEvent::Chosen(_) => match self.selected().map(|(name, _)| name.clone()) {
                Some(name) => self.toggle(&[name]),
                None => DialogEvent::Ignored,
            },
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}
