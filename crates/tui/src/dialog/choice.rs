//! A choice of several items, each with its effects.

use super::{DialogCx, DialogEvent, DialogView, SAVE, framed, hint, room};
use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::KeyAction;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Rows of the list that take precedence over key hints, if a title leaves no room for both.
const MIN_ROWS: usize = 3;

/// The dialog.
pub(crate) struct ChoiceDialog<E = Effect> {
    title: String,
    picker: Picker,
    effects: Vec<Vec<E>>,
    /// Effects that preview each item while it is selected.
    previews: Vec<E>,
    /// Effects that choose each item and make it the default; none: this is not offered.
    saves: Vec<Vec<E>>,
    /// Effects if the dialog is closed without a choice.
    otherwise: Vec<E>,
}

impl<E: Clone> ChoiceDialog<E> {
    /// Creates a list of items and the effects of choosing them.
    pub(crate) fn new(title: &str, choices: Vec<(PickItem, Vec<E>)>) -> Self {
        let (items, effects) = choices.into_iter().unzip();
        Self {
            title: title.to_owned(),
            picker: Picker::new(items, 10),
            effects,
            previews: Vec::new(),
            saves: Vec::new(),
            otherwise: Vec::new(),
        }
    }

    /// Creates a list of few items, without a search.
    pub(crate) fn short(title: &str, choices: Vec<(PickItem, Vec<E>)>) -> Self {
        let (items, effects): (Vec<PickItem>, _) = choices.into_iter().unzip();
        let height = items.len();
        let picker = Picker::without_search(items, height);
        Self {
            title: title.to_owned(),
            picker,
            effects,
            previews: Vec::new(),
            saves: Vec::new(),
            otherwise: Vec::new(),
        }
    }

    /// Replaces the items. The search is kept, and so is the selection, if it is still there.
    pub(crate) fn set_choices(&mut self, choices: Vec<(PickItem, Vec<E>)>) {
        let (items, effects): (Vec<PickItem>, _) = choices.into_iter().unzip();
        let selected = self.picker.selected_label().map(str::to_owned);
        let at = selected.and_then(|label| items.iter().position(|item| item.label == label));
        self.picker.set_items(items);
        self.effects = effects;
        if let Some(at) = at {
            self.picker.select(at);
        }
    }

    /// Previews the selected item immediately.
    pub(crate) fn with_preview(self, previews: impl Iterator<Item = E>) -> Self {
        Self { previews: previews.collect(), ..self }
    }

    /// Offers to make an item the default, by these effects.
    pub(crate) fn with_save(self, saves: Vec<Vec<E>>) -> Self {
        Self { saves, ..self }
    }

    /// Adds an effect for closing the dialog without a choice.
    pub(crate) fn or_else(self, effect: E) -> Self {
        Self { otherwise: vec![effect], ..self }
    }
}

impl<E: Clone> DialogView<E> for ChoiceDialog<E> {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let confirm = cx.keymap.hint(KeyAction::SelectConfirm);
        let mut hints = match self.saves.is_empty() {
            true => vec![hint(&confirm, "choose")],
            false => vec![hint(&confirm, "use in this session"), hint(&SAVE.to_string(), "use and make default")],
        };
        hints.push(hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel"));
        self.picker.fit(room(&self.title, &hints, cx).max(MIN_ROWS));
        let content = self.picker.rows(cx.columns, cx.theme);
        (framed(&self.title, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent<E> {
        if press.key == SAVE && !self.saves.is_empty() {
            return match self.picker.selected().and_then(|at| self.saves.get_mut(at)) {
                Some(effects) => DialogEvent::Close(std::mem::take(effects)),
                None => DialogEvent::Ignored,
            };
        }
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

    fn line(&mut self, line: &str, _cx: DialogCx<'_>) -> Option<DialogEvent<E>> {
        match self.picker.item_of_line(line).and_then(|at| self.effects.get_mut(at)) {
            Some(effects) => Some(DialogEvent::Close(std::mem::take(effects))),
            None if self.picker.begin_line() => None,
            None => Some(DialogEvent::Ignored),
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::Keymap;
    use crate::theme::{ColorDepth, Palette};

    #[test]
    fn a_choice_can_be_made_the_default() {
        let items = || ["low", "high"].map(|name| (PickItem::new(name), vec![name])).to_vec();
        let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: 20, columns: 80, now_ms: 0 };
        let mut dialog = ChoiceDialog::new("Level", items()).with_save(vec![vec!["save low"], vec!["save high"]]);
        let rows: String = dialog.rows(cx).0.iter().map(|row| format!("{row}\n")).collect();
        assert!(rows.contains("ctrl+s use and make default"), "{rows}");
        dialog.key(&KeyPress::of("down".parse().unwrap()), cx);
        assert_eq!(dialog.key(&KeyPress::of(SAVE), cx), DialogEvent::Close(vec!["save high"]));
        let mut dialog = ChoiceDialog::new("Level", items());
        assert_eq!(dialog.key(&KeyPress::of(SAVE), cx), DialogEvent::Ignored);
    }
}
