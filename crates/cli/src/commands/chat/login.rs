//! Logging in from the chat: `pinch auth login` on the chat's terminal.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinch_tui::chat::ChatError;

/// How long after its end a login still owns Ctrl+C. The Ctrl+C that ends a login reaches the chat too, possibly
/// only after the chat has noticed that the login is over.
const AFTER: Duration = Duration::from_secs(1);

/// The login. Clones share its state.
#[derive(Clone, Default)]
pub(super) struct ChatLogin {
    phase: Arc<Mutex<Phase>>,
}

#[derive(Clone, Copy, Default)]
enum Phase {
    #[default]
    Never,
    Running,
    Ended(Instant),
}

impl ChatLogin {
    /// Returns whether a Ctrl+C that arrives now belongs to a login, because the login has the terminal or has just
    /// given it back.
    pub(super) fn owns_interrupt(&self) -> bool {
        match *self.phase.lock().unwrap_or_else(PoisonError::into_inner) {
            Phase::Never => false,
            Phase::Running => true,
            Phase::Ended(at) => at.elapsed() < AFTER,
        }
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Runs `pinch auth login` to its end; dropping the future ends it.
    pub(super) async fn run(&self, agent_dir: &Path, provider: Option<&str>) -> Result<(), ChatError> {
        let failed = |error: std::io::Error| ChatError::new(format!("cannot start the login: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = tokio::process::Command::new(program);
        command.args(["auth", "login", "--agent-dir"]).arg(agent_dir).arg("--").args(provider).kill_on_drop(true);
        self.enter(Phase::Running);
        let _running = Running(self);
        let status = command.status().await.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(ChatError::new("the login was not completed")),
        }
    }
}

/// Notes the end of the login, also if it is dropped.
struct Running<'a>(&'a ChatLogin);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Ended(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_has_just_ended_still_owns_its_interrupt() {
        let login = ChatLogin::default();
        assert!(!login.owns_interrupt());
        login.enter(Phase::Running);
        let running = Running(&login);
        assert!(login.owns_interrupt());
        drop(running);
        assert!(login.owns_interrupt());
        login.enter(Phase::Ended(Instant::now().checked_sub(AFTER).unwrap()));
        assert!(!login.owns_interrupt());
    }
}
