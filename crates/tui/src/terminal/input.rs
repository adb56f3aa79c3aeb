//! Terminal input: keys, pasted text, mouse events, and reports, parsed from bytes.

use termina::Event;
use termina::escape::csi::{
    Csi, Cursor as CsiCursor, DecModeSetting, DecPrivateMode, DecPrivateModeCode, Device, Keyboard, Mode,
};
use termina::escape::osc::{ColorOrQuery, DynamicColorNumber, Osc};
use termina::event::{KeyCode as Code, KeyEvent, KeyEventKind, Modifiers, MouseButton, MouseEventKind};

use super::Size;
use crate::key::{Key, KeyCode, KeyPress};

/// An input from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key was pressed.
    Key(KeyPress),
    /// A text was pasted, as the terminal sent it.
    Paste(String),
    /// A line was typed on a terminal that edits lines itself.
    Line(String),
    /// A mouse event, in fullscreen mode.
    Mouse(Mouse),
    /// The size of the terminal changed.
    Resized(Size),
    /// The window gained (true) or lost the focus.
    Focus(bool),
    /// An answer to a query.
    Report(Report),
    /// The terminal is gone.
    Closed,
}

/// A report of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It supports kitty's keyboard protocol.
    Keyboard,
    /// Whether it supports synchronized output.
    Synchronized(bool),
    /// Its background colour.
    Background([u8; 3]),
    /// Its actual size: the answer to [`SIZE_QUERY`](super::SIZE_QUERY).
    Corner(Size),
    /// No more reports follow.
    Done,
}

/// A mouse event; coordinates start at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What happened.
    pub kind: MouseKind,
    /// The column.
    pub column: u16,
    /// The row.
    pub row: u16,
}

/// Kind of a mouse event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button was pressed.
    Down,
    /// The mouse was moved with the left button held.
    Drag,
    /// The left button was released.
    Up,
    /// The wheel was turned up.
    WheelUp,
    /// The wheel was turned down.
    WheelDown,
}

/// Converts an event; `None` for events without a meaning here, such as the release of a key.
pub fn from_event(event: Event) -> Option<TerminalInput> {
    match event {
        Event::Key(key) => key_press(key).map(TerminalInput::Key),
        Event::Paste(text) => Some(TerminalInput::Paste(text)),
        Event::WindowResized(size) => Some(TerminalInput::Resized(Size::new(size.cols, size.rows))),
        Event::FocusIn => Some(TerminalInput::Focus(true)),
        Event::FocusOut => Some(TerminalInput::Focus(false)),
        Event::Mouse(mouse) => {
            let kind = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => MouseKind::Down,
                MouseEventKind::Drag(MouseButton::Left) => MouseKind::Drag,
                MouseEventKind::Up(MouseButton::Left) => MouseKind::Up,
                MouseEventKind::ScrollUp => MouseKind::WheelUp,
                MouseEventKind::ScrollDown => MouseKind::WheelDown,
                _ => return None,
            };
            Some(TerminalInput::Mouse(Mouse { kind, column: mouse.column, row: mouse.row }))
        }
        Event::Csi(Csi::Keyboard(Keyboard::ReportFlags(_))) => Some(TerminalInput::Report(Report::Keyboard)),
        Event::Csi(Csi::Mode(Mode::ReportDecPrivateMode { mode, setting })) => {
            let is_asked = matches!(mode, DecPrivateMode::Code(DecPrivateModeCode::SynchronizedOutput));
            let can = matches!(setting, DecModeSetting::Set | DecModeSetting::Reset);
            is_asked.then_some(TerminalInput::Report(Report::Synchronized(can)))
        }
        Event::Csi(Csi::Cursor(CsiCursor::ActivePositionReport { line, col })) => {
            let corner = Size::new(col.get(), line.get());
            Some(TerminalInput::Report(Report::Corner(corner)))
        }
        Event::Csi(Csi::Device(Device::DeviceAttributes(()))) => Some(TerminalInput::Report(Report::Done)),
        Event::Osc(Osc::ChangeDynamicColors(DynamicColorNumber::TextBackgroundColor, colors)) => match colors.first() {
            Some(ColorOrQuery::Color(color)) => {
                Some(TerminalInput::Report(Report::Background([color.red, color.green, color.blue])))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Converts a key. Releases are dropped, and repeats count as presses.
fn key_press(event: KeyEvent) -> Option<KeyPress> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let held = |modifier| event.modifiers.contains(modifier);
    let (ctrl, alt, shift) = (held(Modifiers::CONTROL), held(Modifiers::ALT), held(Modifiers::SHIFT));
    let meta = held(Modifiers::SUPER) || held(Modifiers::META);
    let key = |code| Key { code, ctrl, alt, shift, meta };
    let code = match event.code {
        Code::Char(c) => return Some(character(c, Key { code: KeyCode::Char(c), ctrl, alt, shift, meta })),
        Code::BackTab => return Some(KeyPress::of(Key { shift: true, ..key(KeyCode::Tab) })),
        Code::Enter => KeyCode::Enter,
        Code::Backspace => KeyCode::Backspace,
        Code::Tab => KeyCode::Tab,
        Code::Escape => KeyCode::Escape,
        Code::Left => KeyCode::Left,
        Code::Right => KeyCode::Right,
        Code::Up => KeyCode::Up,
        Code::Down => KeyCode::Down,
        Code::Home => KeyCode::Home,
        Code::End => KeyCode::End,
        Code::PageUp => KeyCode::PageUp,
        Code::PageDown => KeyCode::PageDown,
        Code::Insert => KeyCode::Insert,
        Code::Delete => KeyCode::Delete,
        Code::KeypadBegin => KeyCode::Clear,
        Code::Null => return Some(KeyPress::of(Key { ctrl: true, ..key(KeyCode::Space) })),
        Code::Function(n @ 1..=12) => KeyCode::F(n),
        _ => return None,
    };
    Some(KeyPress::of(key(code)))
}

/// Converts a character key.
fn character(c: char, held: Key) -> KeyPress {
    if !held.ctrl && !held.alt && !held.meta {
        // In kitty's protocol, a shifted letter is reported in lower case with the modifier.
        let typed = match held.shift && c.is_lowercase() {
            true => c.to_uppercase().next().filter(|_| c.to_uppercase().count() == 1).unwrap_or(c),
            false => c,
        };
        return KeyPress::typed(typed);
    }
    let c = c.to_lowercase().next().filter(|_| c.to_lowercase().count() == 1).unwrap_or(c);
    let code = match latin(c) {
        ' ' => KeyCode::Space,
        // Ctrl+underscore sends the same byte as Ctrl+minus, Ctrl+7 and Ctrl+slash.
        '_' | '7' | '/' if held.ctrl && !held.alt && !held.shift => KeyCode::Char('-'),
        '5' if held.ctrl && !held.alt => KeyCode::Char(']'),
        c => KeyCode::Char(c),
    };
    let shift = held.shift && matches!(code, KeyCode::Char(c) if c.is_lowercase());
    KeyPress::of(Key { code, shift, ..held })
}

/// Returns the Latin letter on the key of a letter in another script, which bindings refer to. Latin letters are returned unchanged,
/// wherever they are.
fn latin(c: char) -> char {
    const LAYOUTS: [(&str, &str); 3] = [
        ("йцукенгшщзхъфывапролджэячсмитьбю", "qwertyuiop[]asdfghjkl;'zxcvbnm,."),
        ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
        ("קראטוןםפשדגכעיחלךזסבהנמצתץ", "ertyuiopasdfghjklzxcvbnm,."),
    ];
    if c.is_ascii() {
        return c;
    }
    let found = LAYOUTS.iter().find_map(|(from, to)| from.chars().zip(to.chars()).find(|(letter, _)| *letter == c));
    found.map_or(c, |(_, key)| key)
}

#[cfg(test)]
mod tests {
    use termina::Parser;

    use super::*;

    fn read(bytes: &str) -> Vec<TerminalInput> {
        let mut parser = Parser::default();
        parser.parse(bytes.as_bytes(), false);
        std::iter::from_fn(|| parser.pop()).filter_map(from_event).collect()
    }

    /// Returns the name of the only key in these bytes, and what it types.
    fn key(bytes: &str) -> String {
        match &read(bytes)[..] {
            [TerminalInput::Key(press)] => match press.text {
                Some(c) => format!("{} types {c}", press.key),
                None => press.key.to_string(),
            },
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn all_encodings_of_a_key_are_the_same_key() {
        for (bytes, expected) in [
            ("a", "a types a"),
            ("A", "shift+a types A"),
            (" ", "space types  "),
            ("é", "é types é"),
            ("\r", "enter"),
            ("\n", "ctrl+j"),
            ("\t", "tab"),
            ("\x1b", "escape"),
            ("\x7f", "backspace"),
            ("\x03", "ctrl+c"),
            ("\x1f", "ctrl+-"),
            ("\x1d", "ctrl+]"),
            ("\x00", "ctrl+space"),
            ("\x1b[Z", "shift+tab"),
            ("\x1b\r", "alt+enter"),
            ("\x1bb", "alt+b"),
            ("\x1b\x7f", "alt+backspace"),
            ("\x1b[A", "up"),
            ("\x1b[1;3A", "alt+up"),
            ("\x1b[1;5C", "ctrl+right"),
            ("\x1b[3~", "delete"),
            ("\x1b[5~", "pageUp"),
            // Kitty's protocol; the newer format of xterm's modifyOtherKeys is the same.
            ("\x1b[99;5u", "ctrl+c"),
            ("\x1b[97;2u", "shift+a types A"),
            ("\x1b[13;2u", "shift+enter"),
            ("\x1b[112;6u", "ctrl+shift+p"),
            ("\x1b[1089;5u", "ctrl+c"),
            ("\x1b[127;2u", "shift+backspace"),
            ("\x1b[3;2~", "shift+delete"),
            // Windows Terminal and conhost; what the byte 0x08 means is decided later.
            ("\x08", "ctrl+h"),
            ("\x1b\x08", "ctrl+alt+h"),
            ("\x1b[127;5u", "ctrl+backspace"),
            ("\x1b[3;5~", "ctrl+delete"),
            ("\x1b[1;6A", "ctrl+shift+up"),
            ("\x1b[15;5~", "ctrl+f5"),
            ("\x1bOP", "f1"),
        ] {
            assert_eq!(key(bytes), expected, "{bytes:?}");
        }
    }

    /// The parser does not know the older format of xterm's modifyOtherKeys. If this test fails, the decoder need not translate it.
    #[test]
    fn the_older_format_of_modify_other_keys_is_a_gap_of_the_parser() {
        assert_eq!(read("\x1b[27;5;99~"), []);
    }

    /// Records of console events (`CSI ? 9001 h`) are not supported, so they must not be enabled.
    #[test]
    fn the_records_of_windows_terminal_are_a_known_gap() {
        assert_eq!(read("\x1b[67;46;3;1;8;1_"), []);
    }

    #[test]
    fn releases_are_dropped_and_repeats_are_presses() {
        assert_eq!(read("\x1b[97;1:3u"), []);
        assert_eq!(key("\x1b[97;1:2u"), "a types a");
    }

    #[test]
    fn reports_of_the_terminal_are_not_keys() {
        assert_eq!(
            read("\x1b[12;80R\x1b[?1u\x1b[?2026;2$y\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?62;4c"),
            [
                TerminalInput::Report(Report::Corner(Size::new(80, 12))),
                TerminalInput::Report(Report::Keyboard),
                TerminalInput::Report(Report::Synchronized(true)),
                TerminalInput::Report(Report::Background([0x1e, 0x1e, 0x2e])),
                TerminalInput::Report(Report::Done),
            ]
        );
        assert_eq!(read("\x1b[?2026;0$y"), [TerminalInput::Report(Report::Synchronized(false))]);
    }

    #[test]
    fn pasted_text_arrives_in_one_piece() {
        assert_eq!(read("\x1b[200~a\r\nb\x1b[201~"), [TerminalInput::Paste("a\r\nb".to_owned())]);
        assert_eq!(read("\x1b[I"), [TerminalInput::Focus(true)]);
    }
}
