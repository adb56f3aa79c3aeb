//! Choosing one of several things, each of which does something.

use super::{DialogCx, DialogEvent, DialogView, framed, hint};
use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::KeyAction;
use crate::widget::{PickItem, Picker, PickerEvent};

/// The dialog.
pub(crate) struct ChoiceDialog {
    title: String,
    picker: Picker,
    effects: Vec<Vec<Effect>>,
    /// What shows an item while it is selected.
    previews: Vec<Effect>,
    /// What is done when the dialog is left without a choice.
    otherwise: Vec<Effect>,
}

impl ChoiceDialog {
    /// A list of items and what choosing them does.
    pub(crate) fn new(title: &str, choices: Vec<(PickItem, Vec<Effect>)>) -> Self {
        let (items, effects) = choices.into_iter().unzip();
        Self {
            title: title.to_owned(),
            picker: Picker::new(items, 10),
            effects,
            previews: Vec::new(),
            otherwise: Vec::new(),
        }
    }

    /// The same, where the selected item is shown at once.
    pub(crate) fn with_preview(self, previews: impl Iterator<Item = Effect>) -> Self {
        Self { previews: previews.collect(), ..self }
    }

    /// The same, which does something when it is left.
    pub(crate) fn or_else(self, effect: Effect) -> Self {
        Self { otherwise: vec![effect], ..self }
    }
}

impl DialogView for ChoiceDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let content = self.picker.rows(cx.columns, cx.theme);
        let hints = [
            hint(&cx.keymap.hint(KeyAction::SelectConfirm), "choose"),
            hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel"),
        ];
        (framed(&self.title, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => match self.picker.selected().and_then(|at| self.previews.get(at)) {
                Some(preview) => DialogEvent::Do(vec![preview.clone()]),
                None => DialogEvent::Changed,
            },
            PickerEvent::Cancelled => DialogEvent::Close(std::mem::take(&mut self.otherwise)),
            PickerEvent::Chosen(at) => match self.effects.get_mut(at) {
                Some(effects) => DialogEvent::Close(std::mem::take(effects)),
                None => DialogEvent::Ignored,
            },
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}
