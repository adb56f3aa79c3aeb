//! Tests of each key.

use super::*;

#[test]
fn characters_are_graphemes() {
    check("a|", "left", "|a");
    check("|e\u{301}x", "right", "e\u{301}|x");
    check("👨‍👩‍👧|", "left", "|👨‍👩‍👧");
    check("🇩🇪🇫🇷|", "ctrl+b", "🇩🇪|🇫🇷");
    check("a👨‍👩‍👧|b", "backspace", "a|b");
    check("a|👨‍👩‍👧b", "delete", "a|b");
    check("e|", "\"\u{301}\"", "e\u{301}|");
    check("|\u{301}", "\"e\"", "e\u{301}|");
}

#[test]
fn left_and_right_cross_line_ends() {
    check("ab\n|cd", "left", "ab|\ncd");
    check("ab|\ncd", "right", "ab\n|cd");
    check("|ab", "left", "|ab");
    check("ab|", "right", "ab|");
}

#[test]
fn words_are_runs_of_punctuation_or_of_other_characters() {
    check("one two|", "alt+left", "one |two");
    check("one two  |", "ctrl+left", "one |two  ");
    check("foo.bar|", "alt+b", "foo.|bar");
    check("foo.|bar", "alt+b", "foo|.bar");
    check("a `x`|", "alt+b", "a `x|`");
    check("snake_case|", "alt+b", "|snake_case");
    check("日本 語|", "alt+b", "日本 |語");
    check("|one two", "alt+right", "one| two");
    check("one| two", "ctrl+right", "one two|");
    check("|foo.bar", "alt+f", "foo|.bar");
    check("foo|... bar", "alt+f", "foo...| bar");
    check("a  |", "alt+f", "a  |");
}

#[test]
fn words_end_at_line_ends() {
    check("one\n|two", "alt+b", "one|\ntwo");
    check("one|\ntwo", "alt+f", "one\n|two");
    check("one|  \ntwo", "alt+f", "one  |\ntwo");
    check("|", "alt+b alt+f", "|");
}

#[test]
fn home_and_end_move_within_the_line() {
    check("ab\ncd|\nef", "home", "ab\n|cd\nef");
    check("ab\n|cd\nef", "end", "ab\ncd|\nef");
    check("ab\nc|d", "ctrl+a", "ab\n|cd");
    check("ab\nc|d", "ctrl+e", "ab\ncd|");
}

#[test]
fn deleting_at_a_border_joins_lines() {
    check("ab\n|cd", "backspace", "ab|cd");
    check("ab|\ncd", "delete", "ab|cd");
    check("ab|\ncd", "ctrl+d", "ab|cd");
    check("|ab", "backspace", "|ab");
    check("ab|", "delete", "ab|");
}

#[test]
fn words_and_parts_of_lines_are_killed() {
    check("one two|", "ctrl+w", "one |");
    check("one two|", "alt+backspace", "one |");
    check("|one two", "alt+d", "| two");
    check("|one two", "alt+delete", "| two");
    check("ab\n|cd", "ctrl+w", "ab|cd");
    check("ab|\ncd", "alt+d", "ab|cd");
    check("ab\nc|d", "ctrl+u", "ab\n|d");
    check("ab\n|d", "ctrl+u", "ab|d");
    check("a|b\ncd", "ctrl+k", "a|\ncd");
    check("a|\ncd", "ctrl+k", "a|cd");
}

#[test]
fn consecutive_kills_are_one_entry() {
    check("one two three|", "ctrl+w ctrl+w ctrl+y", "one two three|");
    check("|one two three", "alt+d alt+d ctrl+y", "one two| three");
    check("a |b c", "ctrl+w alt+d ctrl+y", "a b| c");
    check("ab\ncd|", "ctrl+u ctrl+u ctrl+u ctrl+y", "ab\ncd|");
    check("one two|", "ctrl+w left right ctrl+w ctrl+y", "one |");
    check("one two|", "ctrl+w alt+y ctrl+w ctrl+y", "one |");
    check("one two|", "ctrl+w left right ctrl+w ctrl+y alt+y", "two|");
}

#[test]
fn yank_pop_replaces_by_older_entries_only_directly_after_a_yank() {
    check("a b c|", "ctrl+w left right ctrl+w left right ctrl+w ctrl+y", "a |");
    check("a b c|", "ctrl+w left right ctrl+w left right ctrl+w ctrl+y alt+y", "b |");
    check("a b c|", "ctrl+w left right ctrl+w left right ctrl+w ctrl+y alt+y alt+y", "c|");
    check("a b c|", "ctrl+w left right ctrl+w left right ctrl+w ctrl+y alt+y alt+y alt+y", "a |");
    check("a b|", "ctrl+w left right ctrl+w ctrl+y left right alt+y", "a |");
    check("ab|", "ctrl+w ctrl+y alt+y", "ab|");
    check("ab|", "alt+y ctrl+y", "ab|");
}

#[test]
fn each_blank_and_each_word_is_an_undo_step() {
    let mut editor = editor("|");
    press(&mut editor, "\"ab cd\"");
    for expected in ["ab |", "ab|", "|", "|"] {
        press(&mut editor, "ctrl+-");
        assert_eq!(shown(&editor), expected);
    }
    for expected in ["ab|", "ab |", "ab cd|", "ab cd|"] {
        press(&mut editor, "alt+-");
        assert_eq!(shown(&editor), expected);
    }
}

#[test]
fn other_changes_are_separate_undo_steps() {
    check("abc|", "backspace backspace ctrl+-", "ab|");
    check("a b|", "ctrl+w ctrl+w ctrl+-", "a |");
    check("a|", "shift+enter \"b\" ctrl+- ctrl+-", "a|");
    check("a b|", "ctrl+w ctrl+y ctrl+-", "a |");
    check("a b|", "ctrl+w left right ctrl+w ctrl+y alt+y ctrl+-", "a |");
    let mut editor = editor("old|");
    editor.set_text("new\r\ntext\there");
    assert_eq!(shown(&editor), "new\ntext    here|");
    editor.set_text("new\ntext    here");
    press(&mut editor, "ctrl+-");
    assert_eq!(shown(&editor), "old|");
}

#[test]
fn a_move_begins_a_new_undo_step_and_a_change_clears_the_redo_steps() {
    check("|", "\"ab\" left \"c\" ctrl+-", "a|b");
    check("|", "\"a b\" ctrl+- ctrl+- \"x\" alt+-", "ax|");
}

#[test]
fn enter_submits_and_clears_the_undo_steps() {
    let mut editor = editor(" two\nlines |");
    let EditorEvent::Submit(submission) = press(&mut editor, "enter") else { panic!() };
    assert_eq!(submission.text, "two\nlines");
    assert!(!editor.undo() && editor.is_empty());
}

#[test]
fn line_breaks_have_several_keys() {
    check("a|b", "shift+enter", "a\n|b");
    check("a|b", "ctrl+j", "a\n|b");
    check("a\\|b", "enter", "a\n|b");
    let mut editor = editor("a\\\\|");
    assert_eq!(press(&mut editor, "enter"), EditorEvent::Changed);
    assert_eq!(shown(&editor), "a\\\n|");
}

#[test]
fn enter_after_a_backslash_submits_if_shift_enter_does() {
    let (keymap, _) =
        Keymap::parse("k".as_ref(), r#"{"tui.input.submit": "shift+enter", "tui.input.newLine": "enter"}"#);
    let mut editor = editor("a\\|");
    let EditorEvent::Submit(submission) = press_with(&mut editor, "enter", &keymap) else { panic!() };
    assert_eq!(submission.text, "a");
    put(&mut editor, "a|");
    press_with(&mut editor, "enter", &keymap);
    assert_eq!(shown(&editor), "a\n|");
}

#[test]
fn jumps_go_to_the_next_occurrence_on_any_line() {
    check("|axbx", "ctrl+] \"x\"", "a|xbx");
    check("a|xbx", "ctrl+] \"x\"", "axb|x");
    check("|a\nbx", "ctrl+] \"x\"", "a\nb|x");
    check("xax|", "ctrl+alt+] \"x\"", "xa|x");
    check("xa|x", "ctrl+alt+] \"x\"", "|xax");
    check("x\na|", "ctrl+alt+] \"x\"", "|x\na");
    check("|aX", "ctrl+] \"x\"", "|aX");
    check("|e\u{301}e", "ctrl+] \"\u{301}\"", "|e\u{301}e");
}

#[test]
fn a_jump_ends_with_its_own_key_or_with_one_that_types_nothing() {
    check("|axb", "ctrl+] ctrl+] \"x\"", "x|axb");
    check("|axb", "ctrl+] right \"x\"", "ax|xb");
    check("ax|b", "ctrl+] ctrl+alt+] \"a\"", "|axb");
}

#[test]
fn up_and_down_move_by_rows_of_the_screen() {
    let mut editor = editor("one two three|\nx");
    drawn(&mut editor, 9, 5);
    for (key, expected) in [
        ("up", "one t|wo three\nx"),
        ("up", "|one two three\nx"),
        ("down", "one two |three\nx"),
        ("down", "one two three\n|x"),
        ("down", "one two three\nx|"),
    ] {
        press(&mut editor, key);
        assert_eq!(shown(&editor), expected, "{key}");
    }
}

#[test]
fn the_column_is_restored_after_shorter_rows() {
    check("abcdef|\nab\nabcdef", "down down", "abcdef\nab\nabcdef|");
    check("abcd|ef\nab\nabc\nabcdef", "down down down", "abcdef\nab\nabc\nabcd|ef");
    check("abcd|ef\nab\nabcdef", "down left down", "abcdef\nab\na|bcdef");
    check("abcdef\nab\nabcd|", "up up", "abcd|ef\nab\nabcd");
    check("ab|\nabcdef", "right down", "ab\nabcdef|");
    check("abc\nabcdef|", "right up up down", "abc\n|abcdef");
}

#[test]
fn columns_are_those_of_the_screen() {
    check("日本|語\nabcdef", "down", "日本語\nabcd|ef");
    check("abc|\n日本語", "down", "abc\n日|本語");
    check("abc|d\n日本語\nabcd", "down down", "abcd\n日本語\nabc|d");
}

#[test]
fn vertical_moves_from_the_first_and_last_row_go_to_the_line_ends() {
    check("ab|c", "up", "|abc");
    check("ab|c", "down", "abc|");
}

#[test]
fn pages_are_as_high_as_the_visible_part() {
    let text: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let mut editor = editor(&text.join("\n"));
    drawn(&mut editor, 20, 7);
    press(&mut editor, "pageUp");
    assert_eq!(editor.cursor().line, 22);
    press(&mut editor, "pageUp pageUp pageUp pageUp");
    assert_eq!(editor.cursor().line, 0);
    press(&mut editor, "pageDown");
    assert_eq!(editor.cursor().line, 7);
    assert_eq!(
        [3, 5, 12].map(|part| Editor::visible_rows(part * 10 / 3)),
        [3, 5, 12].map(|n| if n == 3 { 3 } else { n })
    );
}

#[test]
fn unbound_keys_are_ignored_and_never_typed() {
    let mut editor = editor("a|");
    for key in ["ctrl+q", "alt+q", "f5", "tab", "ctrl+c", "escape", "insert"] {
        assert_eq!(press(&mut editor, key), EditorEvent::Ignored, "{key}");
    }
    assert_eq!(shown(&editor), "a|");
    assert_eq!(press(&mut editor, "left"), EditorEvent::Moved);
    assert_eq!(press(&mut editor, "\"É\""), EditorEvent::Changed);
    assert_eq!(shown(&editor), "É|a");
}

#[test]
fn chords_are_supported() {
    let (keymap, _) = Keymap::parse("k".as_ref(), r#"{"tui.editor.undo": "ctrl+x u"}"#);
    let mut editor = editor("|");
    press_with(&mut editor, "\"ab\" ctrl+x \"u\"", &keymap);
    assert_eq!(shown(&editor), "|");
    assert_eq!(press_with(&mut editor, "\"u\" ctrl+x \"a\"", &keymap), EditorEvent::Moved);
    assert_eq!(shown(&editor), "u|", "keys of a binding that does not exist mean nothing");
}

#[test]
fn a_single_line_editor_has_no_line_breaks_and_ignores_vertical_keys() {
    let mut editor = Editor::single_line();
    editor.paste("a\nb\tc");
    editor.insert("\nd");
    assert_eq!(shown(&editor), "ab    cd|");
    for key in ["up", "down", "pageUp", "pageDown", "shift+enter", "tab"] {
        assert_eq!(press(&mut editor, key), EditorEvent::Ignored, "{key}");
    }
    editor.paste(&"x".repeat(2000));
    assert_eq!(editor.lines()[0].len(), 2008, "nothing becomes a marker");
    put(&mut editor, "a\\|");
    assert!(matches!(press(&mut editor, "enter"), EditorEvent::Submit(submission) if submission.text == "a\\"));
}

#[test]
fn a_masked_editor_stores_nothing() {
    let mut editor = Editor::masked();
    press(&mut editor, "\"secret\"");
    assert!(!format!("{editor:?}").contains("secret"));
    press(&mut editor, "ctrl+u ctrl+y");
    assert_eq!(editor.text(), "");
    press(&mut editor, "\"secret\"");
    let submission = editor.submit();
    editor.remember(&submission);
    editor.add_history("secret");
    assert!(!editor.recall_older());
}

#[test]
fn shell_commands_begin_with_an_exclamation_mark() {
    for (text, expected) in [("!ls", true), ("  !!ls", true), ("\n !ls", true), ("ls!", false), ("", false)] {
        assert_eq!(editor(text).is_shell_command(), expected, "{text:?}");
    }
}
