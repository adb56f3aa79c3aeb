use pinch_coding_agent::session_log::NewSession;
use pinch_llm::message::Message;
use pinch_stdx::host::Host;

use super::*;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::theme::ColorDepth;

/// Returns the tree of a session with two messages.
async fn dialog() -> TreeDialog {
    let mut log = SessionLog::in_memory(&Host::builder().clock(0, 0).build(), NewSession::in_directory("/work"));
    for text in ["first", "second"] {
        log.append_message(Message::user(text, 0)).await.unwrap();
    }
    TreeDialog::new(&log, TreeFilter::Default, 10, false)
}

fn shown(dialog: &mut TreeDialog, columns: usize, max_rows: usize) -> String {
    let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
    let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows, columns, now_ms: 0 };
    dialog.rows(cx).0.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect()
}

#[tokio::test]
async fn key_hints_are_wrapped_if_there_is_room_for_them() {
    let mut dialog = dialog().await;
    insta::assert_snapshot!(
        [(80, 20), (40, 20), (40, 8)].map(|(columns, rows)| shown(&mut dialog, columns, rows)).join("\n")
    );
}

#[tokio::test]
async fn a_new_label_has_the_time_at_which_it_was_saved() {
    let mut dialog = dialog().await;
    let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
    let now_ms = 1_800_000_000_000;
    let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: 20, columns: 80, now_ms };
    let mut press = |key: &str| dialog.key(&KeyPress::of(key.parse::<Key>().unwrap()), cx);
    press("shift+t");
    press("shift+l");
    dialog.paste("begin");
    let event = dialog.key(&KeyPress::of("enter".parse::<Key>().unwrap()), cx);
    let DialogEvent::Do(effects) = event else { panic!("{event:?}") };
    let [Effect::Label { target, label }] = &effects[..] else { panic!("{effects:?}") };
    dialog.learn(DialogNews::Label { target: target.clone(), label: label.clone() });
    let rows = shown(&mut dialog, 80, 20);
    assert!(rows.contains("[begin] 2027-01-15 08:00 user: second"), "{rows}");
}
