//! Commands that the user ran: the model sees them with the next prompt.

use super::{AgentSession, SessionError};
use crate::session_log::roles::BashExecution;
use crate::tools::bash::UserCommand;

impl UserCommand {
    /// The record of a command that was run; the model is not to see it when `exclude` is set. `now` is in Unix milliseconds.
    pub fn into_record(self, command: &str, exclude: bool, now: i64) -> BashExecution {
        BashExecution {
            command: command.to_owned(),
            output: self.output,
            exit_code: self.exit_code,
            cancelled: self.cancelled,
            truncated: self.truncated,
            full_output_path: self.full_output_path.map(|path| path.to_string_lossy().into_owned()),
            timestamp: now,
            exclude_from_context: exclude,
        }
    }
}

impl AgentSession {
    /// Keeps a command that the user ran. While a prompt runs, give it to [`super::SessionControl::change`] instead.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn record_bash(&mut self, ran: BashExecution) -> Result<(), SessionError> {
        self.log.append_message(ran.into_message()).await?;
        self.reload();
        Ok(())
    }
}
