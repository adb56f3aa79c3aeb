//! Notices when the user is away, and what to notify them of.

use crate::terminal::NotificationKind;

/// Time in the background after which the user is notified, in milliseconds.
const AWAY_MS: i64 = 10_000;

/// Whether the window is in the background, and a pending notification.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attention {
    /// When the window went to the background, in Unix milliseconds; `None`: it is in the foreground, or the terminal does not report it.
    away_since: Option<i64>,
    notification: Option<&'static str>,
}

impl Attention {
    /// Handles that the window has gained or lost the focus.
    pub(crate) fn focus(&mut self, has_focus: bool, now_ms: i64) {
        self.away_since = if has_focus { None } else { self.away_since.or(Some(now_ms)) };
    }

    /// Notifies the user if the window has been in the background for a while.
    pub(crate) fn notify(&mut self, text: &'static str, now_ms: i64) {
        if self.away_since.is_some_and(|since| now_ms - since >= AWAY_MS) {
            self.notification = Some(text);
        }
    }

    /// Returns the control sequence for the pending notification about something with this name. `word`: the setting `terminal.notify`.
    pub(crate) fn take(&mut self, word: &str, usual: NotificationKind, name: &str) -> Option<Vec<u8>> {
        let text = self.notification.take()?;
        let kind = if word == "auto" { Some(usual) } else { NotificationKind::parse(word) };
        kind.map(|kind| kind.bytes("pinch", &format!("{text} ({name})")))
    }
}
