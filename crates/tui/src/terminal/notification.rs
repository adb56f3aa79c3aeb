//! Desktop notifications, which terminals show for programs.

use pinch_stdx::host::Env;

use crate::text::{SanitizeMode, is_obeyed, sanitize};

/// Maximum length of a notification, in characters.
const MAX_CHARS: usize = 200;

/// How to ask a terminal to notify the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotificationKind {
    /// It rings its bell.
    #[default]
    Bell,
    /// It shows a text (OSC 9, as in iTerm2, WezTerm, Ghostty and kitty).
    Osc9,
    /// It shows a title and a text (OSC 777, as in foot, urxvt and VTE-based terminals).
    Osc777,
}

impl NotificationKind {
    /// Detects the kind supported by the terminal in this environment. Terminal multiplexers only pass on the bell.
    pub fn of(env: &Env) -> Self {
        let var = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(str::to_lowercase);
        let (term, program) = (var("TERM").unwrap_or_default(), var("TERM_PROGRAM").unwrap_or_default());
        if var("TMUX").is_some() || term.starts_with("screen") || term.starts_with("tmux") {
            Self::Bell
        } else if matches!(&*program, "iterm.app" | "wezterm" | "ghostty")
            || term.contains("kitty")
            || term.contains("ghostty")
        {
            Self::Osc9
        } else if var("VTE_VERSION").is_some() || term.starts_with("foot") || term.starts_with("rxvt-unicode") {
            Self::Osc777
        } else {
            Self::Bell
        }
    }

    /// Parses the setting `terminal.notify`: `bell`, `osc9` or `osc777`; `None` for other words.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "bell" => Some(Self::Bell),
            "osc9" => Some(Self::Osc9),
            "osc777" => Some(Self::Osc777),
            _ => None,
        }
    }

    /// Returns the control sequence. Control characters in the texts are removed, and long texts truncated.
    pub fn bytes(self, title: &str, text: &str) -> Vec<u8> {
        let clean = |text: &str| -> String {
            let text = sanitize(text, SanitizeMode::Output);
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            line.chars().filter(|c| !is_obeyed(*c)).take(MAX_CHARS).collect()
        };
        let (title, text) = (clean(title), clean(text));
        match self {
            Self::Bell => b"\x07".to_vec(),
            Self::Osc9 => format!("\x1b]9;{title}: {text}\x1b\\").into_bytes(),
            // Semicolons end a field.
            Self::Osc777 => {
                format!("\x1b]777;notify;{};{}\x1b\\", title.replace(';', ","), text.replace(';', ",")).into_bytes()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_use_the_protocol_of_the_terminal() {
        let kind = |variables: &[(&str, &str)]| NotificationKind::of(&variables.iter().copied().collect());
        assert_eq!(kind(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]), NotificationKind::Osc9);
        assert_eq!(kind(&[("TERM", "xterm-kitty")]), NotificationKind::Osc9);
        assert_eq!(kind(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]), NotificationKind::Osc777);
        assert_eq!(kind(&[("TERM", "foot")]), NotificationKind::Osc777);
        assert_eq!(kind(&[("TERM", "foot"), ("TMUX", "/tmp/x")]), NotificationKind::Bell);
        assert_eq!(kind(&[("TERM", "xterm")]), NotificationKind::Bell);
    }

    proptest::proptest! {
        #[test]
        fn nothing_of_a_text_ends_the_sequence(
            title in "[\u{0}-\u{a0}\u{200b}-\u{206f};a]{0,40}", text in "(.|[\u{0}-\u{9f}\u{2066}-\u{2069};]){0,300}"
        ) {
            let body = |kind: NotificationKind, begin: &str| {
                let bytes = String::from_utf8(kind.bytes(&title, &text)).unwrap();
                bytes.strip_prefix(begin).and_then(|body| body.strip_suffix("\x1b\\")).map(str::to_owned)
            };
            let (osc9, osc777) = (body(NotificationKind::Osc9, "\x1b]9;"), body(NotificationKind::Osc777, "\x1b]777;notify;"));
            for body in [osc9.unwrap(), osc777.clone().unwrap()] {
                let is_foreign = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
                proptest::prop_assert!(!body.contains(is_foreign), "{:?}", body);
            }
            proptest::prop_assert_eq!(osc777.unwrap().matches(';').count(), 1);
        }
    }

    #[test]
    fn texts_cannot_inject_control_sequences() {
        let text = "done\x1b\\\x1b]52;c;x\x07 a;b\n\u{9c}c";
        let text = |kind: NotificationKind| String::from_utf8(kind.bytes("pinch; x", text)).unwrap();
        assert_eq!(text(NotificationKind::Osc9), "\x1b]9;pinch; x: done a;b c\x1b\\");
        assert_eq!(text(NotificationKind::Osc777), "\x1b]777;notify;pinch, x;done a,b c\x1b\\");
        assert_eq!(text(NotificationKind::Bell), "\x07");
        let long = NotificationKind::Osc9.bytes("t", &"x".repeat(10_000));
        assert!(long.len() < 300);
    }
}
