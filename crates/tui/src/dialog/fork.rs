//! A choice of a user message to fork the session at.

use pinch_coding_agent::entry::EntryId;

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::KeyAction;
use crate::transcript::typed_prompt;
use crate::widget::{PickItem, Picker, PickerEvent};

const TITLE: &str = "Fork from a message";

/// The dialog: user messages, oldest first, with the newest selected.
pub(crate) struct ForkDialog {
    points: Vec<EntryId>,
    picker: Picker,
}

impl ForkDialog {
    /// Creates a list of messages and their texts.
    pub(crate) fn new(points: Vec<(EntryId, String)>) -> Self {
        let items = points
            .iter()
            .map(|(_, text)| PickItem::new(typed_prompt(text).split_whitespace().collect::<Vec<_>>().join(" ")));
        let mut picker = Picker::new(items.collect(), 10);
        picker.select(points.len().saturating_sub(1));
        Self { points: points.into_iter().map(|(id, _)| id).collect(), picker }
    }
}

impl DialogView for ForkDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let hints = [
            hint(&cx.keymap.hint(KeyAction::SelectConfirm), "fork before this message"),
            hint(&cx.keymap.hint(KeyAction::SelectCancel), "cancel"),
        ];
        self.picker.fit(room(TITLE, &hints, cx));
        let content = self.picker.rows(cx.columns, cx.theme);
        (framed(TITLE, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => DialogEvent::Changed,
            PickerEvent::Cancelled => DialogEvent::Close(Vec::new()),
            PickerEvent::Chosen(at) => match self.points.get(at) {
                Some(entry) => DialogEvent::close_with(Effect::Fork(entry.clone())),
                None => DialogEvent::Ignored,
            },
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}
