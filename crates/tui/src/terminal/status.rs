//! The status of the program, which some terminals show on their tabs (OSC 7501). Others ignore it.

use pinch_stdx::host::Env;

/// Status of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramStatus {
    /// Nothing happens.
    #[default]
    Idle,
    /// A run is active.
    Working,
    /// A question waits for the user.
    Blocked,
    /// A run has ended, and the user has done nothing since.
    Done,
    /// A run has failed, and the user has done nothing since.
    Failed,
}

impl ProgramStatus {
    /// Removes the status.
    pub const CLEAR: &[u8] = b"\x1b]7501;state=clear\x1b\\";

    /// Returns the control sequence that reports the status.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Idle => b"\x1b]7501;state=idle:app=pinch\x1b\\",
            Self::Working => b"\x1b]7501;state=working:app=pinch\x1b\\",
            Self::Blocked => b"\x1b]7501;state=blocked:kind=question:app=pinch\x1b\\",
            Self::Done => b"\x1b]7501;state=done:app=pinch\x1b\\",
            Self::Failed => b"\x1b]7501;state=error:app=pinch\x1b\\",
        }
    }

    /// Returns whether the terminal in this environment ignores unknown control sequences of this kind. Consoles may print them.
    pub fn is_safe(env: &Env) -> bool {
        let term = env.get("TERM").unwrap_or_default().to_lowercase();
        !["", "dumb", "linux", "ansi", "cons25"].contains(&&*term)
            && !term.starts_with("vt")
            && !term.starts_with("eterm")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_are_sent_no_status() {
        let is_safe = |term: &str| ProgramStatus::is_safe(&[("TERM", term)].into_iter().collect());
        assert!(is_safe("xterm-256color") && is_safe("tmux-256color") && is_safe("xterm-ghostty"));
        assert!(!is_safe("linux") && !is_safe("vt220") && !is_safe("eterm-color") && !is_safe("dumb"));
    }
}
