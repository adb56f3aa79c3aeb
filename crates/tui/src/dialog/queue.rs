//! The waiting messages, each of which can be edited or removed.

use pinch_agent_core::queue::QueueKind;

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::effect::{Effect, WaitingMessage};
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::widget::{PickItem, Picker, PickerEvent};

const TITLE: &str = "Queued messages";

/// The dialog.
pub(crate) struct QueueDialog {
    messages: Vec<WaitingMessage>,
    picker: Picker,
}

impl QueueDialog {
    /// Creates a list of messages in delivery order.
    pub(crate) fn new(messages: Vec<WaitingMessage>) -> Self {
        let mut dialog = Self { messages, picker: Picker::new(Vec::new(), 8) };
        dialog.fill();
        dialog
    }

    fn fill(&mut self) {
        let items = self.messages.iter().map(|message| {
            let kind = match message.kind {
                QueueKind::Steering => "Steering",
                QueueKind::FollowUp => "Follow-up",
            };
            let text = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
            PickItem::new(format!("{kind}: {text}"))
        });
        self.picker.set_items(items.collect());
    }
}

impl DialogView for QueueDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let hints = [
            hint(&cx.keymap.hint(KeyAction::SelectConfirm), "edit"),
            hint(&cx.keymap.hint(KeyAction::DeleteCharForward), "remove"),
            hint(&cx.keymap.hint(KeyAction::SelectCancel), "close"),
        ];
        self.picker.fit(room(TITLE, &hints, cx));
        let content = self.picker.rows(cx.columns, cx.theme);
        (framed(TITLE, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        if cx.keymap.action(KeyContext::Editor, &press.key) == Some(KeyAction::DeleteCharForward) {
            let Some(at) = self.picker.selected() else { return DialogEvent::Ignored };
            let effect = Effect::Unqueue { message: self.messages.remove(at), edit: false };
            self.fill();
            self.picker.select(at.min(self.messages.len().saturating_sub(1)));
            return match self.messages.is_empty() {
                true => DialogEvent::close_with(effect),
                false => DialogEvent::Do(vec![effect]),
            };
        }
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => DialogEvent::Changed,
            PickerEvent::Cancelled => DialogEvent::Close(Vec::new()),
            PickerEvent::Chosen(at) => match self.messages.get(at) {
                Some(message) => DialogEvent::close_with(Effect::Unqueue { message: message.clone(), edit: true }),
                None => DialogEvent::Ignored,
            },
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::keymap::Keymap;
    use crate::theme::{ColorDepth, Palette};

    #[test]
    fn one_message_is_removed_or_edited_and_the_others_stay() {
        let message = |id, kind, text: &str| WaitingMessage { id, kind, text: text.to_owned() };
        let all = vec![
            message(Some(4), QueueKind::Steering, "turn\n left"),
            message(Some(5), QueueKind::FollowUp, "then test"),
            message(None, QueueKind::FollowUp, "and commit"),
        ];
        let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: 20, columns: 60, now_ms: 0 };
        let mut dialog = QueueDialog::new(all.clone());
        let mut press = |key: &str| dialog.key(&KeyPress::of(key.parse::<Key>().unwrap()), cx);
        press("down");
        let removed = Effect::Unqueue { message: all[1].clone(), edit: false };
        assert_eq!(press("delete"), DialogEvent::Do(vec![removed]));
        let rows: String = dialog.rows(cx).0.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect();
        insta::assert_snapshot!(rows);
        let mut press = |key: &str| dialog.key(&KeyPress::of(key.parse::<Key>().unwrap()), cx);
        let edited = Effect::Unqueue { message: all[2].clone(), edit: true };
        assert_eq!(press("enter"), DialogEvent::close_with(edited));
        press("up");
        press("delete");
        let last = Effect::Unqueue { message: all[2].clone(), edit: false };
        assert_eq!(press("ctrl+d"), DialogEvent::close_with(last), "nothing is left");
    }
}
