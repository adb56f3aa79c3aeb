//! Properties of arbitrary operations.

use proptest::prelude::*;

use super::*;
use crate::keymap::KeyAction;

/// An operation on an editor.
#[derive(Clone, Debug)]
enum Operation {
    Type(char),
    Perform(KeyAction),
    Insert(String),
    Paste(String),
    Set(String),
    Draw(usize, usize),
    Jump(bool, char),
    Vi(char),
}

const ACTIONS: [KeyAction; 22] = [
    KeyAction::CursorUp,
    KeyAction::CursorDown,
    KeyAction::CursorLeft,
    KeyAction::CursorRight,
    KeyAction::CursorWordLeft,
    KeyAction::CursorWordRight,
    KeyAction::CursorLineStart,
    KeyAction::CursorLineEnd,
    KeyAction::PageUp,
    KeyAction::PageDown,
    KeyAction::DeleteCharBackward,
    KeyAction::DeleteCharForward,
    KeyAction::DeleteWordBackward,
    KeyAction::DeleteWordForward,
    KeyAction::DeleteToLineStart,
    KeyAction::DeleteToLineEnd,
    KeyAction::Yank,
    KeyAction::YankPop,
    KeyAction::Undo,
    KeyAction::Redo,
    KeyAction::NewLine,
    KeyAction::Yank,
];

fn text() -> impl Strategy<Value = String> + Clone {
    "([a-c .日👍🇩\u{301}\u{200d}\n\\[]|\\[paste #1 \\+12 lines\\]){0,10}"
}

/// Text that does not look like a marker.
fn prose() -> impl Strategy<Value = String> + Clone {
    "[a-c .日👍\n]{0,10}"
}

fn operation(text: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => "[a-c .日👍🇩\u{301}\u{200d}\\]]".prop_map(|text| Operation::Type(text.chars().next().unwrap())),
        16 => proptest::sample::select(&ACTIONS[..]).prop_map(Operation::Perform),
        2 => text.clone().prop_map(Operation::Insert),
        2 => (0usize..15, text.clone()).prop_map(|(n, text)| Operation::Paste("x\n".repeat(n) + &text)),
        1 => text.prop_map(Operation::Set),
        2 => (1usize..30, 1usize..6).prop_map(|(columns, height)| Operation::Draw(columns, height)),
        1 => (any::<bool>(), "[a.日\u{301}p\\[]").prop_map(|(up, text)| Operation::Jump(up, text.chars().next().unwrap())),
        1 => proptest::sample::select(&['w', 'b', 'e', 'x', 'p', '$', 'u', 'o'][..]).prop_map(Operation::Vi),
    ]
}

fn operate(editor: &mut Editor, operation: &Operation) {
    match operation {
        Operation::Type(c) => drop(editor.handle(&KeyPress::typed(*c), &Keymap::default())),
        Operation::Perform(action) => drop(editor.perform(*action)),
        Operation::Insert(text) => editor.insert(text),
        Operation::Paste(text) => editor.paste(text),
        Operation::Set(text) => editor.set_text(text),
        Operation::Draw(columns, height) => drop(drawn(editor, *columns, *height)),
        Operation::Jump(is_up, c) => {
            let direction = if *is_up { motion::JumpDirection::Backward } else { motion::JumpDirection::Forward };
            editor.jump_to(*c, direction);
        }
        Operation::Vi(c) => {
            editor.set_vi(true);
            press(editor, &format!("escape \"{c}\""));
            editor.set_vi(false);
        }
    }
}

/// Returns the possible cursor positions in a line.
fn places(editor: &Editor, line: &str) -> Vec<usize> {
    let ends = step::steps(line, 0..line.len(), &editor.markers).map(|step| step.end());
    std::iter::once(0).chain(ends).collect()
}

proptest! {
    #[test]
    fn the_cursor_is_between_characters_and_rows_are_the_text(
        operations in proptest::collection::vec(operation(text()), 0..40), columns in 1usize..30,
    ) {
        let mut editor = Editor::new();
        for operation in &operations {
            operate(&mut editor, operation);
            let TextPosition { line, byte } = editor.cursor();
            let text = editor.lines()[line].clone();
            prop_assert!(places(&editor, &text).contains(&byte), "{operation:?} {text:?} {byte}");
        }
        drawn(&mut editor, columns, 100_000);
        for (at, line) in editor.lines().to_vec().iter().enumerate() {
            let wrapped = editor.wrap.line(at, line, &editor.markers).clone();
            prop_assert_eq!(&wrapped, &wrap::WrappedLine::new(line, editor.wrap.width(), &editor.markers));
            let rows = (0..wrapped.n_rows()).map(|row| &line[wrapped.row(row, line)]);
            prop_assert_eq!(&rows.collect::<String>(), line);
        }
    }

    #[test]
    fn undoing_everything_restores_the_start_and_redoing_everything_the_end(
        start in text(), operations in proptest::collection::vec(operation(text()), 0..40),
    ) {
        let mut editor = Editor::new();
        put(&mut editor, &start);
        let before = editor.lines().to_vec();
        for operation in &operations {
            operate(&mut editor, operation);
        }
        while editor.redo() {}
        let after = editor.lines().to_vec();
        let mut texts = vec![editor.text()];
        while editor.undo() {
            texts.push(editor.text());
        }
        prop_assert_eq!(editor.lines(), &before[..]);
        while editor.redo() {
            texts.pop();
            prop_assert_eq!(Some(&editor.text()), texts.last());
        }
        prop_assert_eq!(editor.lines(), &after[..]);
    }

    #[test]
    fn a_kill_and_a_yank_leave_the_text_as_it_was(
        start in prose(), operations in proptest::collection::vec(operation(prose()), 0..20), kill in 12usize..16,
        n in 1usize..5, back in 0usize..12,
    ) {
        let mut editor = Editor::new();
        put(&mut editor, &start);
        for operation in &operations {
            operate(&mut editor, operation);
        }
        // Deleting a line break before a combining character would move the cursor past it.
        let text = editor.lines().join("\n").replace(['\u{301}', '\u{200d}', '🇩'], "");
        editor.set_text(&text);
        for _ in 0..back {
            editor.perform(KeyAction::CursorLeft);
        }
        let (before, cursor) = (editor.lines().to_vec(), editor.cursor());
        for _ in 0..n {
            editor.perform(ACTIONS[kill]);
        }
        if editor.lines() != before {
            editor.perform(KeyAction::Yank);
        }
        prop_assert_eq!(editor.lines(), &before[..], "killed from {:?}", cursor);
    }

    #[test]
    fn typing_moving_and_deleting_equals_editing_a_string(keys in "[ab\\n<>xd]{0,40}") {
        let mut editor = Editor::new();
        let (mut model, mut cursor) = (Vec::new(), 0);
        for key in keys.chars() {
            match key {
                '<' => {
                    editor.perform(KeyAction::CursorLeft);
                    cursor = usize::saturating_sub(cursor, 1);
                }
                '>' => {
                    editor.perform(KeyAction::CursorRight);
                    cursor = model.len().min(cursor + 1);
                }
                'x' => {
                    editor.perform(KeyAction::DeleteCharBackward);
                    if cursor > 0 {
                        cursor -= 1;
                        model.remove(cursor);
                    }
                }
                'd' => {
                    editor.perform(KeyAction::DeleteCharForward);
                    if cursor < model.len() {
                        model.remove(cursor);
                    }
                }
                c => {
                    editor.insert(&c.to_string());
                    model.insert(cursor, c);
                    cursor += 1;
                }
            }
            let mut expected: String = model[..cursor].iter().collect();
            expected.push('|');
            expected.extend(&model[cursor..]);
            prop_assert_eq!(shown(&editor), expected);
        }
    }

    #[test]
    fn the_drawn_cursor_is_where_the_next_character_appears(
        text in "[a-c 日]{0,40}", columns in 4usize..20, n in 0usize..20,
    ) {
        let mut editor = Editor::new();
        put(&mut editor, &text);
        for _ in 0..n {
            editor.perform(KeyAction::CursorLeft);
        }
        let theme = Palette::builtin("dark", ColorDepth::True);
        let (rows, cursor) = editor.rows(columns, 5, &theme, theme.fg(ColorRole::Border));
        let (row, column) = cursor.unwrap();
        prop_assert!(row > 0 && row < rows.len() - 1 && column < columns);
    }
}
