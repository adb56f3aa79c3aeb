//! Tests of drawing.

use insta::assert_snapshot;

use super::*;

#[test]
fn text_is_between_two_rules() {
    assert_snapshot!(drawn(&mut editor("hello\nwor|ld"), 20, 5), @r"
    ────────────────────
    hello
    wor|ld
    ────────────────────
    ");
}

#[test]
fn rows_that_are_not_visible_are_counted() {
    let text: Vec<String> = (1..=12).map(|n| format!("line {n}")).collect();
    let mut editor = editor(&text.join("\n"));
    assert_snapshot!(drawn(&mut editor, 24, 3), @r"
    ─── ↑ 9 more ───────────
    line 10
    line 11
    line 12|
    ────────────────────────
    ");
    editor.move_to(TextPosition { line: 5, byte: 2 });
    assert_snapshot!(drawn(&mut editor, 24, 3), @r"
    ─── ↑ 5 more ───────────
    li|ne 6
    line 7
    line 8
    ─── ↓ 4 more ───────────
    ");
    // The view moves no further than necessary.
    editor.move_to(TextPosition { line: 6, byte: 0 });
    assert_snapshot!(drawn(&mut editor, 24, 3), @r"
    ─── ↑ 5 more ───────────
    line 6
    |line 7
    line 8
    ─── ↓ 4 more ───────────
    ");
    editor.move_to(TextPosition::default());
    assert_snapshot!(drawn(&mut editor, 24, 3), @r"
    ────────────────────────
    |line 1
    line 2
    line 3
    ─── ↓ 9 more ───────────
    ");
    assert_snapshot!(drawn(&mut editor, 10, 3), @r"
    ──────────
    |line 1
    line 2
    line 3
    ─── ↓ 9 mo
    ");
}

#[test]
fn long_lines_are_wrapped_and_the_cursor_has_a_column_after_full_rows() {
    assert_snapshot!(drawn(&mut editor("the quick brown fox jumps over|"), 20, 5), @r"
    ────────────────────
    the quick brown fox
    jumps over|
    ────────────────────
    ");
    assert_snapshot!(drawn(&mut editor("0123456789012345678|"), 20, 5), @r"
    ────────────────────
    0123456789012345678|
    ────────────────────
    ");
    assert_snapshot!(drawn(&mut editor("0123456789012345678| x"), 20, 5), @r"
    ────────────────────
    0123456789012345678|
    x
    ────────────────────
    ");
}

#[test]
fn padding_is_free_on_both_sides() {
    assert_snapshot!(drawn(&mut editor("the quick brown fox jumps|").with_padding(2), 20, 5), @r"
    ────────────────────
      the quick brown
      fox jumps|
    ────────────────────
    ");
    drawn(&mut editor("日本語|").with_padding(9), 3, 5);
    drawn(&mut editor("日本語|"), 1, 1);
}

#[test]
fn wide_characters_are_never_split() {
    assert_snapshot!(drawn(&mut editor("日本語のテキストを折り返|す"), 20, 5), @r"
    ────────────────────
    日本語のテキストを
    折り返|す
    ────────────────────
    ");
    assert_snapshot!(drawn(&mut editor("日本|"), 2, 5), @r"
    ──
    …
    …|
    ──
    ");
}

#[test]
fn markers_wrap_as_a_whole_and_are_truncated_if_necessary() {
    let mut editor = editor("look at this |");
    editor.paste(&"line\n".repeat(1233));
    editor.insert(" please");
    assert_snapshot!(drawn(&mut editor, 40, 5), @r"
    ────────────────────────────────────────
    look at this [paste #1 +1234 lines]
    please|
    ────────────────────────────────────────
    ");
    assert_snapshot!(drawn(&mut editor, 20, 5), @r"
    ────────────────────
    look at this
    [paste #1 +1234 li…
    please|
    ────────────────────
    ");
}

#[test]
fn an_empty_editor_shows_its_placeholder() {
    let mut editor = Editor::new().with_placeholder("Type a message, / for commands");
    assert_snapshot!(drawn(&mut editor, 40, 5), @r"
    ────────────────────────────────────────
    |Type a message, / for commands
    ────────────────────────────────────────
    ");
    assert_snapshot!(drawn(&mut editor, 20, 5), @r"
    ────────────────────
    |Type a message, / …
    ────────────────────
    ");
    editor.insert("x");
    assert_snapshot!(drawn(&mut editor, 20, 5), @r"
    ────────────────────
    x|
    ────────────────────
    ");
}

#[test]
fn a_single_line_scrolls_sideways_and_keeps_the_cursor_in_the_middle_half() {
    let mut editor = Editor::single_line().with_placeholder("Search");
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> |Search");
    editor.insert("abcdefghijklmnopqrstuvwxyz");
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> jklmnopqrstuvwxyz|");
    editor.move_to(TextPosition { line: 0, byte: 15 });
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> jklmno|pqrstuvwxyz");
    editor.move_to(TextPosition { line: 0, byte: 9 });
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> fghi|jklmnopqrstuv");
    editor.move_to(TextPosition { line: 0, byte: 0 });
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> |abcdefghijklmnopq");
    editor.set_text("日本語のテキストを折り返す");
    assert_snapshot!(drawn(&mut editor, 20, 5), @">  キストを折り返す|");
    for columns in 1..6 {
        drawn(&mut editor, columns, 1);
    }
}

#[test]
fn a_masked_line_shows_dots() {
    let mut editor = Editor::masked();
    editor.insert("sk-日👨‍👩‍👧");
    assert_snapshot!(drawn(&mut editor, 20, 5), @"> •••••|");
}
