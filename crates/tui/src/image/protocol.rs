//! Protocols for images in terminals.

use pinch_stdx::host::Env;

/// A protocol for showing images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProtocol {
    /// Kitty's, with placeholders in the text: kitty and Ghostty. PNG only.
    KittyPlaceholders,
    /// Kitty's without placeholders, drawn at the cursor: Konsole. PNG only.
    Kitty,
    /// iTerm2's, drawn at the cursor: iTerm2, WezTerm, Warp, mintty.
    Iterm2,
}

/// First version of Konsole with image support: 22.04.
const KONSOLE: u32 = 220_400;

impl ImageProtocol {
    /// Detects the protocol from the environment; `None` inside terminal multiplexers, which do not pass images on.
    pub fn of(env: &Env) -> Option<Self> {
        let var = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(|value| value.to_lowercase());
        let has = |name: &str| var(name).is_some();
        let term = var("TERM").unwrap_or_default();
        let program = var("TERM_PROGRAM").unwrap_or_default();
        let in_multiplexer = has("TMUX") || has("STY") || has("ZELLIJ");
        if in_multiplexer || ["tmux", "screen", "dumb"].iter().any(|name| term.starts_with(name)) {
            return None;
        }
        match &*program {
            "kitty" | "ghostty" => return Some(Self::KittyPlaceholders),
            // WezTerm supports kitty's protocol, but not its placeholders.
            "wezterm" | "iterm.app" | "warpterminal" | "mintty" => return Some(Self::Iterm2),
            "vscode" | "alacritty" | "apple_terminal" => return None,
            _ => {}
        }
        let is_kitty = has("KITTY_WINDOW_ID") || term == "xterm-kitty";
        if is_kitty || has("GHOSTTY_RESOURCES_DIR") || term.contains("ghostty") {
            Some(Self::KittyPlaceholders)
        } else if has("WEZTERM_PANE") || has("ITERM_SESSION_ID") {
            Some(Self::Iterm2)
        } else {
            let konsole: Option<u32> = var("KONSOLE_VERSION").and_then(|version| version.parse().ok());
            konsole.filter(|version| *version >= KONSOLE).map(|_| Self::Kitty)
        }
    }

    /// Returns the protocol for a setting: `auto`, `kitty`, `iterm2` or `off`. Other words count as `auto`, which selects `detected`.
    pub fn chosen(setting: &str, detected: Option<Self>) -> Option<Self> {
        match (setting, detected) {
            ("off", _) => None,
            ("iterm2", _) => Some(Self::Iterm2),
            ("kitty", Some(Self::Iterm2 | Self::Kitty)) => Some(Self::Kitty),
            ("kitty", _) => Some(Self::KittyPlaceholders),
            (_, detected) => detected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_protocol_is_detected_from_the_environment() {
        use ImageProtocol::{Iterm2, Kitty, KittyPlaceholders};
        for (vars, expected) in [
            (&[("TERM", "xterm-kitty")][..], Some(KittyPlaceholders)),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], Some(KittyPlaceholders)),
            (&[("TERM", "xterm-ghostty")], Some(KittyPlaceholders)),
            (&[("TERM_PROGRAM", "ghostty")], Some(KittyPlaceholders)),
            (&[("TERM_PROGRAM", "WezTerm"), ("WEZTERM_PANE", "0")], Some(Iterm2)),
            (&[("TERM_PROGRAM", "iTerm.app")], Some(Iterm2)),
            (&[("TERM_PROGRAM", "WarpTerminal")], Some(Iterm2)),
            (&[("TERM_PROGRAM", "mintty")], Some(Iterm2)),
            (&[("KONSOLE_VERSION", "220401")], Some(Kitty)),
            (&[("KONSOLE_VERSION", "211203")], None),
            (&[("KONSOLE_VERSION", "new")], None),
            (&[("TERM", "xterm-256color")], None),
            (&[("TERM_PROGRAM", "vscode"), ("KITTY_WINDOW_ID", "1")], None),
            // Variables of the outer terminal do not apply inside.
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], None),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], None),
            (&[("TERM", "screen.xterm-256color"), ("ITERM_SESSION_ID", "1")], None),
            (&[], None),
        ] {
            assert_eq!(ImageProtocol::of(&vars.iter().copied().collect()), expected, "{vars:?}");
        }
    }

    #[test]
    fn a_setting_overrides_the_environment() {
        use ImageProtocol::{Iterm2, Kitty, KittyPlaceholders};
        for (setting, detected, expected) in [
            ("auto", Some(Iterm2), Some(Iterm2)),
            ("auto", None, None),
            ("nonsense", Some(Kitty), Some(Kitty)),
            ("off", Some(Iterm2), None),
            ("kitty", None, Some(KittyPlaceholders)),
            ("kitty", Some(Iterm2), Some(Kitty)),
            ("iterm2", None, Some(Iterm2)),
        ] {
            assert_eq!(ImageProtocol::chosen(setting, detected), expected, "{setting}");
        }
    }
}
