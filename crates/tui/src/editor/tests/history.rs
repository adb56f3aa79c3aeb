//! Tests of the history.

use super::*;

fn with_history(entries: &[&str]) -> Editor {
    let mut editor = Editor::new();
    entries.iter().for_each(|entry| editor.add_history(entry));
    editor
}

#[track_caller]
fn check_history(keys: &str, after: &str) {
    let mut editor = with_history(&["first", "two\nlines", "third"]);
    press(&mut editor, keys);
    assert_eq!(shown(&editor), after, "{keys}");
}

#[test]
fn up_in_an_empty_editor_recalls_older_entries_and_down_newer_ones() {
    check_history("up", "third|");
    check_history("up up", "two\nlines|");
    check_history("up up up", "two|\nlines");
    check_history("up up up up", "first|");
    check_history("up up up up up", "first|");
    check_history("up up down", "third|");
    check_history("up down", "|");
    check_history("down", "|");
}

#[test]
fn a_changed_entry_is_no_longer_a_history_entry() {
    check_history("up \"!\" up", "|third!");
    check_history("up left up", "two\nlines|");
}

#[test]
fn a_draft_is_restored_after_the_newest_entry() {
    check_history("\"dra ft\" left up up", "third|");
    check_history("\"dra ft\" left up up down", "|dra ft");
}

#[test]
fn recalling_is_one_undo_step() {
    check_history("\"draft\" home up up ctrl+-", "|draft");
    check_history("up down up up up ctrl+-", "|");
    check_history("up ctrl+- alt+-", "third|");
}

#[test]
fn entries_are_trimmed_and_consecutive_duplicates_dropped() {
    let mut editor = with_history(&["a", " a ", "b", "a", "", " \n"]);
    let mut seen = Vec::new();
    while editor.recall_older() {
        seen.push(editor.text());
    }
    assert_eq!(seen, ["a", "b", "a"]);
}

#[test]
fn a_hundred_entries_are_kept() {
    let mut editor = Editor::new();
    (0..150).for_each(|n| editor.add_history(&n.to_string()));
    while editor.recall_older() {}
    assert_eq!(editor.text(), "50");
}

#[test]
fn the_history_can_be_searched() {
    let (keymap, _) = Keymap::parse("k".as_ref(), r#"{"tui.editor.historySearch": "ctrl+r"}"#);
    let entries = ["cargo test", "git push", "cargo build", "Cargo fmt"];
    for (keys, expected) in [
        ("ctrl+r", "draft|"),
        ("ctrl+r \"cargo\"", "Cargo fmt|"),
        ("ctrl+r \"cargo\" ctrl+r", "cargo build|"),
        ("ctrl+r \"cargo\" ctrl+r ctrl+r", "cargo test|"),
        ("ctrl+r \"cargo\" ctrl+r ctrl+r ctrl+r", "cargo test|"),
        ("ctrl+r \"cargo\" ctrl+r \" t\"", "cargo test|"),
        ("ctrl+r \"cargo t\" backspace backspace", "Cargo fmt|"),
        ("ctrl+r \"g\" backspace", "draft|"),
        ("ctrl+r \"git\" escape", "draft|"),
        ("ctrl+r \"git\" enter \"!\"", "git push!|"),
        ("ctrl+r \"git\" left \"x\"", "git pusx|h"),
        ("ctrl+r \"git\" left \"x\" ctrl+- ctrl+-", "draft|"),
        ("ctrl+r \"zzz\"", "draft|"),
        ("ctrl+r \"git\" enter down down down", "draft|"),
        ("ctrl+r enter up", "|draft"),
    ] {
        let mut editor = with_history(&entries);
        editor.insert("draft");
        press_with(&mut editor, keys, &keymap);
        assert_eq!(shown(&editor), expected, "{keys}");
    }
    let mut editor = with_history(&entries);
    press_with(&mut editor, "ctrl+r \"zz\"", &keymap);
    assert!(editor.wants_escape());
    assert!(drawn(&mut editor, 30, 3).contains("─── no match: zz ──"));
    press_with(&mut editor, "escape", &keymap);
    assert!(!editor.wants_escape());
}

#[test]
fn older_submissions_precede_those_of_the_session_without_duplicates() {
    let mut editor = Editor::new();
    editor.add_history("mine");
    assert!(editor.recall_older());
    editor.add_older_history(vec!["old".to_owned(), "mine".to_owned(), " older\r\nlines ".to_owned()]);
    for expected in ["older\nlines", "old"] {
        assert!(editor.recall_older(), "the browsed entry keeps its position");
        assert_eq!(editor.text(), expected);
    }
    assert!(!editor.recall_older());
    for _ in 0..3 {
        editor.recall_newer();
    }
    assert_eq!(editor.text(), "");
    let mut masked = Editor::masked();
    masked.add_older_history(vec!["secret".to_owned()]);
    assert!(!masked.recall_older());
}
