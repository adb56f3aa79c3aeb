//! Capabilities of a terminal: first from the environment, then from its own reports.

use pinch_stdx::host::Env;

use super::input::{Report, TerminalInput};
use super::notification::NotificationKind;
use super::status::ProgramStatus;
use crate::image::ImageProtocol;
use crate::key::{Key, KeyCode, KeyPress};
use crate::theme::ColorDepth;

/// Capabilities of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCapabilities {
    /// Colour depth.
    pub depth: ColorDepth,
    /// Whether frames can be shown atomically (DEC mode 2026). Only reported by the terminal itself, since some pass the codes on to one
    /// that does not support it.
    pub synchronized: bool,
    /// Whether keys are reported with all their modifiers (kitty's protocol).
    pub keyboard: bool,
    /// Whether it is Windows Terminal, which sends byte 0x08 for Ctrl+Backspace.
    pub windows_terminal: bool,
    /// Whether rows are rewrapped when the width changes.
    pub reflows: bool,
    /// Whether the terminal is a multiplexer, which reports a resize late.
    pub multiplexer: bool,
    /// Whether the background is light; `None`: unknown.
    pub light_background: Option<bool>,
    /// How to notify the user.
    pub notification: NotificationKind,
    /// Whether the status of the program is reported (OSC 7501).
    pub status: bool,
    /// Whether links in texts can be clicked (OSC 8).
    pub hyperlinks: bool,
    /// Whether the program runs on another computer than the terminal.
    pub remote: bool,
    /// Image protocol, if any.
    pub images: Option<ImageProtocol>,
    /// Whether output is written in plain lines, one below the other, and input read line by line: for screen readers.
    pub plain: bool,
}

/// Queries everything that only the terminal knows: keyboard protocol, synchronized output, background colour. Every terminal answers the
/// last query, so that there is no need to wait for answers that never come.
pub const QUERIES: &[u8] = b"\x1b[?u\x1b[?2026$p\x1b]11;?\x1b\\\x1b[c";

/// Queries the position of the bottom right corner, and with it the actual size of the screen: a terminal multiplexer can have resized it
/// long before it reports so. The cursor is restored.
pub const SIZE_QUERY: &[u8] = b"\x1b7\x1b[9999;9999H\x1b[6n\x1b8";

impl TerminalCapabilities {
    /// Detects capabilities from the environment.
    pub fn of(env: &Env) -> Self {
        let var = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(|value| value.to_lowercase());
        let term = var("TERM").unwrap_or_default();
        let program = var("TERM_PROGRAM").unwrap_or_default();
        let has = |name: &str| var(name).is_some();
        let truecolor = matches!(var("COLORTERM").as_deref(), Some("truecolor" | "24bit"));
        Self {
            depth: depth(&term, &program, truecolor || has("WT_SESSION"), has("NO_COLOR")),
            synchronized: false,
            keyboard: false,
            windows_terminal: has("WT_SESSION"),
            // xterm, the Linux console and GNU screen truncate rows instead.
            reflows: !(has("XTERM_VERSION") || term == "linux" || (term.starts_with("screen") && !has("TMUX"))),
            multiplexer: ["TMUX", "STY", "ZELLIJ"].into_iter().any(has)
                || ["tmux", "screen"].iter().any(|name| term.starts_with(name)),
            light_background: var("COLORFGBG").and_then(|colors| {
                let background: u8 = colors.rsplit(';').next()?.parse().ok()?;
                Some(matches!(background, 7 | 9..=15))
            }),
            hyperlinks: hyperlinks(env),
            notification: NotificationKind::of(env),
            status: ProgramStatus::is_safe(env),
            remote: has("SSH_CONNECTION") || has("SSH_TTY"),
            images: ImageProtocol::of(env),
            plain: false,
        }
    }

    /// Returns the capabilities for plain output, whatever the terminal supports.
    pub fn plain(env: &Env) -> Self {
        Self {
            depth: ColorDepth::None,
            reflows: false,
            light_background: None,
            hyperlinks: false,
            images: None,
            plain: true,
            ..Self::of(env)
        }
    }

    /// Corrects what the parser cannot know: without kitty's protocol, Ctrl+H is byte 0x08, which some terminals send for Backspace, and
    /// Windows Terminal for Ctrl+Backspace.
    pub fn corrected(&self, input: TerminalInput) -> TerminalInput {
        match input {
            TerminalInput::Key(press)
                if !self.keyboard && press.key == (Key { alt: press.key.alt, ..Key::ctrl('h') }) =>
            {
                TerminalInput::Key(KeyPress::of(Key {
                    ctrl: self.windows_terminal,
                    code: KeyCode::Backspace,
                    ..press.key
                }))
            }
            input => input,
        }
    }

    /// Applies a report of the terminal. Returns whether anything changed.
    pub fn apply_report(&mut self, report: &Report) -> bool {
        let before = self.clone();
        match report {
            Report::Keyboard => self.keyboard = true,
            Report::Synchronized(can) => self.synchronized = *can,
            Report::Background([red, green, blue]) => {
                let luminance = 299 * u32::from(*red) + 587 * u32::from(*green) + 114 * u32::from(*blue);
                self.light_background = Some(luminance > 127_500);
            }
            Report::Corner(_) | Report::Done => {}
        }
        *self != before
    }
}

/// Returns whether the terminal in this environment is known to support links. A terminal multiplexer may be too old for them.
fn hyperlinks(env: &Env) -> bool {
    let var = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(str::to_lowercase);
    let has = |name: &str| var(name).is_some();
    let at_least =
        |name: &str, version: u32| var(name).and_then(|value| value.parse().ok()).is_some_and(|n: u32| n >= version);
    let (term, program) = (var("TERM").unwrap_or_default(), var("TERM_PROGRAM").unwrap_or_default());
    if has("TMUX") || has("STY") || term.starts_with("tmux") || term.starts_with("screen") || term == "dumb" {
        return false;
    }
    const PROGRAMS: [&str; 8] =
        ["kitty", "ghostty", "wezterm", "iterm.app", "vscode", "alacritty", "rio", "warpterminal"];
    const VARIABLES: [&str; 5] =
        ["KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "ITERM_SESSION_ID", "WT_SESSION"];
    PROGRAMS.contains(&&*program)
        || VARIABLES.into_iter().any(has)
        || ["kitty", "ghostty", "alacritty"].iter().any(|name| term.contains(name))
        || term.starts_with("foot")
        || at_least("KONSOLE_VERSION", 220_400)
        || at_least("VTE_VERSION", 5_000)
}

fn depth(term: &str, program: &str, truecolor: bool, no_color: bool) -> ColorDepth {
    match term {
        _ if no_color => ColorDepth::None,
        "dumb" => ColorDepth::None,
        _ if truecolor => ColorDepth::True,
        "linux" | "vt100" | "vt220" | "ansi" => ColorDepth::Ansi16,
        "" => ColorDepth::Ansi256,
        _ if term.starts_with("screen") || program == "apple_terminal" => ColorDepth::Ansi256,
        _ => ColorDepth::True,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> TerminalCapabilities {
        TerminalCapabilities::of(&vars.iter().copied().collect())
    }

    #[test]
    fn capabilities_are_detected_from_the_environment() {
        assert!(of(&[("TERM", "tmux-256color"), ("TMUX", "x")]).reflows);
        assert!(of(&[("TERM", "screen-256color")]).multiplexer);
        assert!(!of(&[("TERM", "xterm-256color")]).multiplexer);
        assert!(!of(&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(379)")]).reflows);
        for (vars, depth) in [
            (&[("TERM", "linux")][..], ColorDepth::Ansi16),
            (&[("TERM", "screen-256color")], ColorDepth::Ansi256),
            (&[("TERM", "xterm-256color")], ColorDepth::True),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], ColorDepth::None),
            (&[("TERM", "dumb")], ColorDepth::None),
        ] {
            assert_eq!(of(vars).depth, depth, "{vars:?}");
        }
    }

    #[test]
    fn links_are_used_only_if_known_to_work() {
        for (vars, expected) in [
            (&[("TERM", "xterm-256color")][..], false),
            (&[("TERM", "xterm-kitty")], true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], false),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "6003")], true),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "4600")], false),
            (&[("TERM", "xterm-256color"), ("KONSOLE_VERSION", "211202")], false),
            (&[("TERM", "foot"), ("TMUX", "/tmp/x")], false),
            (&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "tmux"), ("VTE_VERSION", "6003")], false),
            (&[("TERM", "screen.xterm-256color"), ("WT_SESSION", "x")], false),
        ] {
            assert_eq!(of(vars).hyperlinks, expected, "{vars:?}");
        }
    }

    #[test]
    fn reports_of_the_terminal_are_applied() {
        let mut capabilities = of(&[("TERM", "xterm")]);
        assert!(capabilities.apply_report(&Report::Synchronized(true)));
        assert!(!capabilities.apply_report(&Report::Synchronized(true)));
        assert!(capabilities.apply_report(&Report::Background([250, 250, 240])));
        assert_eq!(capabilities.light_background, Some(true));
    }

    #[test]
    fn byte_08_is_backspace_unless_the_terminal_reports_all_keys() {
        let ctrl_h = TerminalInput::Key(KeyPress::of(Key::ctrl('h')));
        let name = |capabilities: &TerminalCapabilities| match capabilities.corrected(ctrl_h.clone()) {
            TerminalInput::Key(press) => press.key.to_string(),
            input => format!("{input:?}"),
        };
        let mut capabilities = of(&[("TERM", "xterm")]);
        assert_eq!(name(&capabilities), "backspace");
        capabilities.apply_report(&Report::Keyboard);
        assert_eq!(name(&capabilities), "ctrl+h");
        assert_eq!(name(&of(&[("WT_SESSION", "1")])), "ctrl+backspace");
    }
}
