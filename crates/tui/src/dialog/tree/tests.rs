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
    TreeDialog::new(&log, TreeFilter::Default, 10, false, Host::builder().clock(0, 0).build())
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
    assert!(rows.contains("[begin] 27/1/15 08:00 user: second"), "{rows}");
}

#[test]
fn times_of_labels_are_as_short_as_their_age_permits() {
    let host = Host::builder().clock(0, 0).build();
    let at = ms_from_iso("2027-01-05T08:09:00.000Z").unwrap();
    let shown = |now: &str| label_time(&host, at, ms_from_iso(now).unwrap());
    assert_eq!(shown("2027-01-05T23:00:00.000Z"), "08:09");
    assert_eq!(shown("2027-12-31T23:00:00.000Z"), "1/5 08:09");
    assert_eq!(shown("2028-01-01T00:00:00.000Z"), "27/1/5 08:09");
}

#[tokio::test]
async fn the_tree_can_be_opened_at_an_entry() {
    let dialog = dialog().await;
    let first = dialog.nodes[0].id.clone();
    let rows = shown(&mut dialog.at(&first), 80, 20);
    assert!(rows.lines().any(|row| row.starts_with('→') && row.contains("first")), "{rows}");
}

#[tokio::test]
async fn branches_are_folded_and_unfolded_with_keys() {
    let host = Host::builder().clock(0, 0).build();
    let mut log = SessionLog::in_memory(&host, NewSession::in_directory("/work"));
    let root = log.append_message(Message::user("root", 0)).await.unwrap();
    for branch in ["left", "right"] {
        log.move_to(&root).unwrap();
        for part in ["begin", "end"] {
            log.append_message(Message::user(format!("{branch} {part}"), 0)).await.unwrap();
        }
    }
    let mut dialog = TreeDialog::new(&log, TreeFilter::Default, 10, false, host);
    let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
    let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: 20, columns: 80, now_ms: 0 };
    let press = |dialog: &mut TreeDialog, key: &str| {
        dialog.key(&KeyPress::of(key.parse::<Key>().unwrap()), cx);
        let rows = shown(dialog, 80, 20);
        ["left begin", "left end", "right begin", "right end"].map(|text| rows.contains(text))
    };
    // From the leaf up to the beginning of its branch, which is folded then.
    assert_eq!(press(&mut dialog, "ctrl+left"), [true; 4]);
    assert_eq!(press(&mut dialog, "ctrl+left"), [true, true, true, false]);
    assert_eq!(press(&mut dialog, "ctrl+right"), [true; 4]);
}
