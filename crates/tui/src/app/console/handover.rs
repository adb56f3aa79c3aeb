//! Handing the terminal to other programs, and texts to the clipboard.

use super::Console;
use crate::Row;
use crate::{clipboard, external};

impl Console {
    pub(super) async fn copy(&mut self) {
        let Some(text) = self.app.last_answer() else {
            return self.app.warning("There is no answer to copy yet");
        };
        match self.copy_text(&text).await {
            true => self.app.status("Copied the last answer to the clipboard"),
            false => self
                .app
                .warning("The answer is too long for the terminal's clipboard, and no clipboard program was found"),
        }
    }

    /// Copies a selected text.
    pub(super) async fn copy_selected(&mut self, text: &str) {
        let n = text.chars().count();
        let note = match self.copy_text(text).await {
            true if n == 1 => "Copied 1 character".to_owned(),
            true => format!("Copied {n} characters"),
            false => "Too long for the terminal's clipboard, and no clipboard program was found".to_owned(),
        };
        self.app.note(note, self.host.now_ms());
    }

    /// Copies a text through the terminal and, if it is local, with a desktop program. Returns whether either succeeded.
    async fn copy_text(&mut self, text: &str) -> bool {
        let through_terminal = clipboard::osc52(text);
        if let Some(bytes) = &through_terminal {
            let done = self.front.write(bytes);
            self.check(done);
        }
        let is_remote = self.front.capabilities().remote;
        let copied = !is_remote && clipboard::copy(text, self.host.env()).await;
        copied || through_terminal.is_some()
    }

    /// Enables mouse reporting in fullscreen mode, or disables it.
    pub(super) fn set_mouse(&mut self, on: bool) {
        let done = self.front.set_mouse(on);
        self.check(done);
        self.app.status(match on {
            true => "Mouse support is on in fullscreen mode; /mouse off turns it off",
            false => "Mouse support is off; /mouse on turns it on in fullscreen mode",
        });
    }

    /// Stops the program until the shell continues it.
    pub(super) fn suspend(&mut self) {
        let done = self.front.leave(&[]);
        self.check(done);
        external::suspend();
        let done = self.front.enter();
        self.check(done);
        self.app.repaint();
    }

    pub(super) fn edit_externally(&mut self) {
        let left = self.front.leave(&[]);
        self.check(left);
        let command = external::command(self.app.external_editor().as_deref(), self.host.env());
        let edited = external::edit(&command, &self.app.editor_text(), self.host.temp());
        let entered = self.front.enter();
        self.check(entered);
        self.app.repaint();
        match edited {
            Ok(Some(text)) => self.app.set_editor_text(&text),
            Ok(None) => {}
            Err(why) => self.app.warning(&why),
        }
    }

    /// Restores the terminal for good; `last` replaces the live area.
    pub(in crate::app) fn leave(&mut self, last: &[Row]) {
        if self.gone {
            return;
        }
        // Finished rows stay on the screen.
        self.draw();
        let on = self.front.set_fullscreen(false);
        self.check(on);
        self.draw();
        let left = self.front.leave(last);
        self.check(left);
    }
}
