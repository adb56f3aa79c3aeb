//! Doing what extensions ask for, by whoever has the session.

use pinch_stdx::cancel::Cancel;

use super::errands::Errand;
use super::tell::Listener;
use super::{AgentSession, CompactRequest, ForkAt, ForkError, NavigateError, Navigation, SessionError};
use crate::compaction::CompactError;
use crate::extension::ExtensionError;
use crate::extension::actions::{Act, Acted};
use crate::store::SessionRef;

impl AgentSession {
    /// Does one thing that extensions asked for; false when there was none.
    pub(super) async fn run_errand(&mut self, tell: &dyn Listener, cancel: &Cancel) -> bool {
        let Some(Errand { act, reply }) = self.control.share(|state| state.errands.take_errand()) else {
            return false;
        };
        let is_wanted = !reply.is_closed() || matches!(act, Act::Compact { wait: false, .. });
        if is_wanted {
            let done = self.do_errand(act, tell, cancel).await;
            // Who asked may have given up meanwhile.
            drop(reply.send(done));
        }
        true
    }

    async fn do_errand(&mut self, act: Act, tell: &dyn Listener, cancel: &Cancel) -> Result<Acted, ExtensionError> {
        let left = |text| Acted::Left { cancelled: false, text };
        let stayed = || Acted::Left { cancelled: true, text: None };
        match act {
            Act::Compact { focus, .. } => {
                let request = CompactRequest { cancel: cancel.child(), ..CompactRequest::manual(focus) };
                let done = self.compact_telling(request, tell).await.map_err(ExtensionError::refused)?;
                Ok(Acted::Compacted { summary: done.summary, tokens_before: done.tokens_before })
            }
            Act::NewSession { parent } => match self.begin_new(parent).await {
                Ok(()) => Ok(left(None)),
                Err(SessionError::Stayed) => Ok(stayed()),
                Err(error) => Err(ExtensionError::refused(error)),
            },
            Act::Fork { entry, before } => {
                let place = if before { ForkAt::Before } else { ForkAt::Entry };
                match self.fork(&entry, place).await {
                    Ok(text) => Ok(left(text)),
                    Err(ForkError::Session(SessionError::Stayed)) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            Act::Switch { path } => {
                let opened = self.log.open_beside(&SessionRef::Path(path)).await.map_err(ExtensionError::refused)?;
                let log =
                    opened.ok_or_else(|| ExtensionError::refused("This session has no store to open others from"))?;
                match self.switch_to(log).await {
                    Ok(()) => Ok(left(None)),
                    Err(SessionError::Stayed) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            Act::Navigate(to) => {
                let navigation = Navigation {
                    target: to.target,
                    summarise: to.summarise,
                    focus: to.focus,
                    replace_instructions: to.replace_instructions,
                    label: to.label,
                    cancel: cancel.child(),
                };
                match self.navigate_telling(navigation, tell).await {
                    Ok(done) => Ok(Acted::Left { cancelled: done.cancelled, text: done.editor_text }),
                    Err(NavigateError::Summary(CompactError::Cancelled)) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            // Everything else is done without the session.
            _ => Ok(Acted::Done),
        }
    }
}
