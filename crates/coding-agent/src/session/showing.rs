//! Showing a session to those who want to look at it while a run has it borrowed.

use super::control::SessionControl;
use super::look::{Look, SessionView};

impl SessionControl {
    /// Looks at the session as soon as the run under way comes to a wait or to its next event. While nothing runs, look at
    /// [`super::AgentSession::view`] itself; what still waits when a run ends is for [`super::AgentSession::answer_looks`].
    pub fn look(&self, look: impl FnOnce(&SessionView<'_>) + Send + 'static) {
        self.push_look(Look::new(look));
    }

    /// Shows the session to those who want to look at it.
    pub(super) fn show(&self, view: &SessionView<'_>) {
        self.take_looks().into_iter().for_each(|look| look.at(view));
    }

    /// Does something that takes time, and shows the session meanwhile.
    pub(super) async fn showing<T>(&self, view: &SessionView<'_>, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.has_looks() => self.show(view),
            }
        }
    }
}
