mod history;
mod laws;
mod look;
mod markers;
mod rules;
mod vi;

use super::*;
use crate::key::KeyPress;
use crate::keymap::Keymap;
use crate::theme::{ColorDepth, ColorRole, Palette};

/// Creates an editor with a text in which `|` is the cursor.
fn editor(text: &str) -> Editor {
    let mut editor = Editor::new();
    put(&mut editor, text);
    editor
}

fn put(editor: &mut Editor, text: &str) {
    let (before, behind) = text.split_once('|').unwrap_or((text, ""));
    editor.set_text(&format!("{before}{behind}"));
    let line = before.matches('\n').count();
    let byte = before.rsplit('\n').next().unwrap_or_default().len();
    editor.move_to(TextPosition { line, byte });
    editor.undo.clear();
}

/// Returns the displayed text, with `|` for the cursor.
fn shown(editor: &Editor) -> String {
    let mut lines = editor.lines().to_vec();
    lines[editor.cursor().line].insert(editor.cursor().byte, '|');
    lines.join("\n")
}

/// Presses keys: names of keys, or `"text"` to type.
fn press(editor: &mut Editor, keys: &str) -> EditorEvent {
    press_with(editor, keys, &Keymap::default())
}

fn press_with(editor: &mut Editor, keys: &str, keymap: &Keymap) -> EditorEvent {
    let mut event = EditorEvent::Ignored;
    let mut rest = keys.trim_start();
    while !rest.is_empty() {
        if let Some(typed) = rest.strip_prefix('"') {
            let (text, tail) = typed.split_once('"').unwrap();
            for c in text.chars() {
                event = editor.handle(&KeyPress::typed(c), keymap);
            }
            rest = tail.trim_start();
        } else {
            let (key, tail) = rest.split_once(' ').unwrap_or((rest, ""));
            event = editor.handle(&KeyPress::of(key.parse().unwrap()), keymap);
            rest = tail.trim_start();
        }
    }
    event
}

#[track_caller]
fn check(before: &str, keys: &str, after: &str) {
    let mut editor = editor(before);
    press(&mut editor, keys);
    assert_eq!(shown(&editor), after, "{before:?} and {keys}");
}

/// Rows as text, with `|` for the cursor.
fn drawn(editor: &mut Editor, columns: usize, height: usize) -> String {
    let theme = Palette::builtin("dark", ColorDepth::True);
    let (rows, cursor) = editor.rows(columns, height, &theme, theme.fg(ColorRole::Border));
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        assert!(crate::text::row_width(row) <= columns, "{row}");
        let mut text = row.to_string();
        if let Some((_, column)) = cursor.filter(|(row, _)| *row == at) {
            let missing = column.saturating_sub(crate::text::width(&text));
            text.push_str(&" ".repeat(missing));
            let mut used = 0;
            let byte = text.char_indices().find(|(_, c)| {
                let is_here = used >= column;
                used += crate::text::width(c.encode_utf8(&mut [0; 4]));
                is_here
            });
            text.insert(byte.map_or(text.len(), |(byte, _)| byte), '|');
        }
        lines.push(text.trim_end().to_owned());
    }
    lines.join("\n")
}
