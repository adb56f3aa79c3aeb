//! What the terminal can do, and a test of its keys.

use pinch_stdx::host::Env;
use ratatui_core::text::Span;

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::key::{Key, KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyChord, Keymap};
use crate::terminal::{NotificationKind, TerminalCapabilities};
use crate::text::{one_line, wrap};
use crate::theme::{ColorDepth, ColorRole};

const TITLE: &str = "Terminal";
/// Number of keys that are shown.
const MAX_KEYS: usize = 3;
/// Text whose bars are aligned if the font and the terminal have the widths that rows are laid out with.
const WIDTHS: [&str; 2] = [
    "→ ✓ • ─ ⠋ 日本語 é 👩\u{200d}💻 | The bars are below each other",
    "> v * - % ABCDEF e ab | if characters have the right width",
];

/// What is known about the terminal.
pub(crate) struct TerminalReport {
    facts: Vec<(&'static str, String)>,
    /// What to change, one sentence each.
    remedies: Vec<String>,
}

impl TerminalReport {
    /// Describes a terminal. `tmux`: the problem with keys in tmux.
    pub(crate) fn new(terminal: &TerminalCapabilities, env: &Env, tmux: Option<String>) -> Self {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let kind = [env.non_empty("TERM"), env.non_empty("TERM_PROGRAM")].into_iter().flatten().collect::<Vec<_>>();
        let depth = match terminal.depth {
            ColorDepth::None => "none",
            ColorDepth::Ansi16 => "16",
            ColorDepth::Ansi256 => "256",
            ColorDepth::True => "24 bits",
        };
        let background = match terminal.light_background {
            Some(true) => "light",
            Some(false) => "dark",
            None => "unknown",
        };
        let notification = match terminal.notification {
            NotificationKind::Bell => "bell",
            _ => "desktop",
        };
        let facts = vec![
            ("Kind", kind.join(", ")),
            ("Colors", format!("{depth}, {background} background")),
            ("Keys with modifiers", yes(terminal.keyboard)),
            ("Synchronized output", yes(terminal.synchronized)),
            ("Images", terminal.images.map_or("no".to_owned(), |protocol| format!("{protocol:?}"))),
            ("Links", yes(terminal.hyperlinks)),
            ("Notifications", notification.to_owned()),
            ("Multiplexer, remote", format!("{}, {}", yes(terminal.multiplexer), yes(terminal.remote))),
        ];
        let mut remedies: Vec<String> = tmux.into_iter().collect();
        if env.get("TERM_PROGRAM") == Some("vscode") && !terminal.keyboard {
            remedies.push(
                "For shift+enter, add to keybindings.json of VS Code: {\"key\": \"shift+enter\", \"command\": \
                 \"workbench.action.terminal.sendSequence\", \"args\": {\"text\": \"\\u001b[13;2u\"}, \"when\": \
                 \"terminalFocus\"}"
                    .to_owned(),
            );
        }
        Self { facts, remedies }
    }
}

/// The dialog.
pub(crate) struct DoctorDialog {
    report: TerminalReport,
    /// The last keys, and what they do.
    keys: Vec<String>,
}

impl DoctorDialog {
    pub(crate) fn new(report: TerminalReport) -> Self {
        Self { report, keys: Vec::new() }
    }
}

/// Describes a key: its name in `keybindings.json`, what it types, and the actions that it is bound to.
fn described(press: &KeyPress, keymap: &Keymap) -> String {
    let mut text = press.key.to_string();
    if let Some(c) = press.text.filter(|c| *c != ' ') {
        text.push_str(&format!(" types {}", one_line(&c.to_string())));
    }
    let chord = KeyChord::from(press.key);
    let bound = KeyAction::ALL.iter().filter(|action| keymap.keys(**action).contains(&chord));
    let bound: Vec<&str> = bound.map(|action| action.id()).collect();
    if !bound.is_empty() {
        text.push_str(&format!(": {}", bound.join(", ")));
    }
    text
}

impl DialogView for DoctorDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let text = |text: &str, role| wrap(&[Span::styled(text.to_owned(), cx.theme.fg(role))], cx.columns);
        let mut keys = Vec::new();
        match self.keys.is_empty() {
            true => keys.extend(text("Press keys to see how they arrive", ColorRole::Muted)),
            false => self.keys.iter().for_each(|key| keys.extend(text(key, ColorRole::Accent))),
        }
        let mut content = Vec::new();
        for remedy in &self.report.remedies {
            content.extend(text(remedy, ColorRole::Warning));
        }
        for (name, value) in &self.report.facts {
            content.extend(text(&format!("{name}: {}", one_line(value)), ColorRole::Text));
        }
        for line in WIDTHS {
            content.extend(text(line, ColorRole::Muted));
        }
        let hints = [hint("escape", "close")];
        content.truncate(room(TITLE, &hints, cx).saturating_sub(keys.len()));
        content.extend(keys);
        (framed(TITLE, content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        if press.key == Key::plain(KeyCode::Escape) {
            return DialogEvent::Close(Vec::new());
        }
        self.keys.push(described(press, cx.keymap));
        let too_many = self.keys.len().saturating_sub(MAX_KEYS);
        self.keys.drain(..too_many);
        DialogEvent::Changed
    }

    fn paste(&mut self, text: &str) {
        self.keys = vec![format!("paste of {} characters", text.chars().count())];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Palette;

    fn dialog(vars: &[(&str, &str)], tmux: Option<&str>) -> DoctorDialog {
        let env = Env::default().with(vars.iter().copied());
        let capabilities = TerminalCapabilities::of(&env);
        DoctorDialog::new(TerminalReport::new(&capabilities, &env, tmux.map(str::to_owned)))
    }

    fn shown(dialog: &mut DoctorDialog, columns: usize, max_rows: usize) -> String {
        let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows, columns, now_ms: 0 };
        let rows = dialog.rows(cx).0;
        assert!(rows.len() <= max_rows, "{rows:?}");
        rows.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect()
    }

    #[test]
    fn the_terminal_is_described_and_keys_are_tested() {
        let vars = [("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode"), ("COLORTERM", "truecolor")];
        let mut dialog = dialog(&vars, None);
        let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: 24, columns: 80, now_ms: 0 };
        insta::assert_snapshot!(
            [(80, 22), (40, 8)].map(|(columns, rows)| shown(&mut dialog, columns, rows)).join("\n")
        );
        for key in ["ctrl+j", "shift+enter", "f7", "alt+up"] {
            assert_eq!(dialog.key(&KeyPress::of(key.parse().unwrap()), cx), DialogEvent::Changed);
        }
        let rows = shown(&mut dialog, 80, 24);
        assert!(!rows.contains("ctrl+j") && rows.contains("shift+enter: tui.input.newLine\nf7\nalt+up: "), "{rows}");
        dialog.key(&KeyPress::typed('Q'), cx);
        assert!(shown(&mut dialog, 80, 24).contains("shift+q types Q"), "{}", shown(&mut dialog, 80, 24));
        assert_eq!(dialog.key(&KeyPress::of(Key::plain(KeyCode::Escape)), cx), DialogEvent::Close(Vec::new()));
    }

    #[test]
    fn the_bars_are_aligned() {
        let before = WIDTHS.map(|line| crate::text::width(line.split_once('|').unwrap().0));
        assert_eq!(before[0], before[1]);
    }

    #[test]
    fn remedies_come_first() {
        let mut dialog = dialog(&[("TERM", "tmux-256color")], Some("Set an option of tmux"));
        assert!(shown(&mut dialog, 40, 8).contains("Terminal\nSet an option of tmux\n"));
    }
}
