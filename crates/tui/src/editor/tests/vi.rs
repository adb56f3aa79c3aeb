//! Tests of the vi keys.

use super::*;

#[track_caller]
fn check_vi(before: &str, keys: &str, after: &str) {
    let mut editor = Editor::new();
    editor.set_vi(true);
    press(&mut editor, "escape");
    put(&mut editor, before);
    press(&mut editor, keys);
    assert_eq!(shown(&editor), after, "{before:?} and {keys}");
}

#[test]
fn commands_move_by_characters_and_lines() {
    check_vi("ab|c\nd", "\"h\"", "a|bc\nd");
    check_vi("|ab\nd", "\"h\"", "|ab\nd");
    check_vi("|abc", "\"llll\"", "ab|c");
    check_vi("ab|c\ndef", "\"j\"", "abc\nde|f");
    check_vi("abc\nde|f", "\"k\"", "ab|c\ndef");
    check_vi("ab|c", "\"0\"", "|abc");
    check_vi("|abc", "\"$\"", "ab|c");
    check_vi("a|b\nc", "\"$j\"", "ab\n|c");
}

#[test]
fn operators_delete_and_change_what_a_motion_passes_over() {
    check_vi("one |two three", "\"de\"", "one | three");
    check_vi("one t|wo", "\"db\"", "one |wo");
    check_vi("  one |two", "\"d0\"", "|two");
    check_vi("  one |two", "\"d^\"", "  |two");
    check_vi("one |two three", "\"d$\"", "one| ");
    check_vi("one |two three\nfour", "\"D\"", "one| \nfour");
    check_vi("one |two three", "\"cwX\"", "one X| three");
    check_vi("one |two three", "\"CX\"", "one X|");
    check_vi("one |two\nthree", "\"ccX\"", "X|\nthree");
    check_vi("  one |two", "\"^\"", "  |one two");
    check_vi("one |two", "\"cz\"", "one |two");
}

#[test]
fn commands_move_by_words() {
    check_vi("|one two", "\"w\"", "one |two");
    check_vi("|foo.bar", "\"w\"", "foo|.bar");
    check_vi("on|e\n\n two", "\"w\"", "one\n|\n two");
    check_vi("one\n|\n  two", "\"w\"", "one\n\n  |two");
    check_vi("one |two", "\"w\"", "one tw|o");
    check_vi("one tw|o", "\"b\"", "one |two");
    check_vi("one |two", "\"b\"", "|one two");
    check_vi("one\n  |two", "\"b\"", "|one\n  two");
    check_vi("|one two", "\"e\"", "on|e two");
    check_vi("on|e two", "\"e\"", "one tw|o");
    check_vi("on|e\n two", "\"e\"", "one\n tw|o");
}

#[test]
fn text_is_deleted_and_put() {
    check_vi("a|bc", "\"x\"", "a|c");
    check_vi("ab|c", "\"x\"", "a|b");
    check_vi("a|bc", "\"xp\"", "ac|b");
    check_vi("|one two", "\"dw\"", "|two");
    check_vi("one |two\nx", "\"dw\"", "one| \nx");
    check_vi("a\nb|b\nc", "\"dd\"", "a\n|c");
    check_vi("a\nb|b", "\"dd\"", "|a");
    check_vi("a|b", "\"dd\"", "|");
    check_vi("|a\nb\nc", "\"ddp\"", "b\n|a\nc");
    check_vi("a|b", "\"ddp\"", "\n|ab");
    check_vi("a|b", "\"dx\"", "a|b");
    check_vi("a|bc", "\"xu\"", "a|bc");
    check_vi("a|bc", "\"d\" escape \"x\"", "a|c");
}

#[test]
fn commands_enter_insert_mode() {
    check_vi("a|b", "\"ix\"", "ax|b");
    check_vi("a|b", "\"ax\"", "abx|");
    check_vi("|ab", "\"Ax\"", "abx|");
    check_vi("  a|b", "\"Ix\"", "  x|ab");
    check_vi("|ab\nc", "\"ox\"", "ab\nx|\nc");
    check_vi("a\nb|c", "\"Ox\"", "a\nx|\nbc");
    check_vi("a|b", "\"ixy\" escape", "ax|yb");
    check_vi("|", "\"ix\" escape \"x\"", "|");
}

#[test]
fn other_characters_type_nothing_and_other_keys_keep_their_effects() {
    check_vi("a|b", "\"zq5é \"", "a|b");
    check_vi("a|b", "ctrl+k", "|a");
    check_vi("a|bc", "right right right", "ab|c");
    let mut editor = editor("text|");
    editor.set_vi(true);
    assert_eq!((editor.vi_mode(), editor.wants_escape()), (Some(ViMode::Insert), true));
    assert_eq!(press(&mut editor, "escape"), EditorEvent::Moved);
    assert_eq!((editor.vi_mode(), editor.wants_escape()), (Some(ViMode::Normal), false));
    assert_eq!(press(&mut editor, "escape"), EditorEvent::Ignored, "the application may want it");
    assert!(drawn(&mut editor, 20, 3).ends_with("─── normal ─────────"));
    assert!(matches!(press(&mut editor, "enter"), EditorEvent::Submit(_)));
    editor.set_vi(false);
    press(&mut editor, "\"x\"");
    assert_eq!(editor.text(), "x");
}
