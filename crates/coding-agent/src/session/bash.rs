//! The user's own shell commands, which the model sees with the next prompt.

use super::{AgentSession, SessionError};
use crate::session_log::roles::BashExecution;
use crate::tools::bash::UserCommand;

impl UserCommand {
    /// Converts a finished command into a record, hidden from the model if `exclude` is set. `now` is in Unix milliseconds.
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
    /// Records a command that the user ran. During a prompt, use [`super::SessionControl::change`] instead.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub async fn record_bash(&mut self, ran: BashExecution) -> Result<(), SessionError> {
        self.log.append_message(ran.into_message()).await?;
        self.reload();
        Ok(())
    }
}
