//! Logging in from the chat: `pinch auth login` on the chat's terminal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinch_tui::chat::ChatError;

/// The login. Clones share its state.
#[derive(Clone, Default)]
pub(super) struct ChatLogin {
    is_running: Arc<AtomicBool>,
}

impl ChatLogin {
    /// Returns whether a login has the terminal, and therefore its Ctrl+C.
    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// Runs `pinch auth login` to its end; dropping the future ends it.
    pub(super) async fn run(&self, agent_dir: &Path, provider: Option<&str>) -> Result<(), ChatError> {
        let failed = |error: std::io::Error| ChatError::new(format!("cannot start the login: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = tokio::process::Command::new(program);
        command.args(["auth", "login", "--agent-dir"]).arg(agent_dir).arg("--").args(provider).kill_on_drop(true);
        self.is_running.store(true, Ordering::Relaxed);
        let _running = Running(&self.is_running);
        let status = command.status().await.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(ChatError::new("the login was not completed")),
        }
    }
}

/// Resets the flag when the login ends or is dropped.
struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
