//! Performing the requests of extensions that need the session.

use pinch_stdx::cancel::Cancel;

use super::emitter::EventListener;
use super::requests::PendingRequest;
use super::{AgentSession, CompactRequest, ForkAt, ForkError, NavigateError, Navigation, SessionError};
use crate::compaction::CompactError;
use crate::extension::ExtensionError;
use crate::extension::actions::{ActionOutcome, SessionAction};
use crate::store::SessionRef;

impl AgentSession {
    /// Performs one pending request. Returns false if there is none.
    pub(super) async fn run_request(&mut self, emitter: &dyn EventListener, cancel: &Cancel) -> bool {
        let Some(PendingRequest { act, reply }) = self.control.share(|state| state.requests.take_request()) else {
            return false;
        };
        let is_wanted = !reply.is_closed() || matches!(act, SessionAction::Compact { wait: false, .. });
        if is_wanted {
            let done = self.do_request(act, emitter, cancel).await;
            // The extension may have given up meanwhile.
            drop(reply.send(done));
        }
        true
    }

    async fn do_request(
        &mut self,
        act: SessionAction,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<ActionOutcome, ExtensionError> {
        let left = |text| ActionOutcome::Replaced { cancelled: false, text };
        let stayed = || ActionOutcome::Replaced { cancelled: true, text: None };
        match act {
            SessionAction::Compact { focus, .. } => {
                let request = CompactRequest { cancel: cancel.child(), ..CompactRequest::manual(focus) };
                let done = self.compact_with(request, emitter).await.map_err(ExtensionError::refused)?;
                Ok(ActionOutcome::Compacted(Box::new(done)))
            }
            SessionAction::NewSession { parent, entries } => match self.begin_with(parent, entries).await {
                Ok(()) => Ok(left(None)),
                Err(SessionError::SwitchCancelled) => Ok(stayed()),
                Err(error) => Err(ExtensionError::refused(error)),
            },
            SessionAction::Fork { entry, before } => {
                let place = if before { ForkAt::Before } else { ForkAt::Entry };
                match self.fork(&entry, place).await {
                    Ok(text) => Ok(left(text)),
                    Err(ForkError::Session(SessionError::SwitchCancelled)) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            SessionAction::Switch { path } => {
                let opened = self.log.open_sibling(&SessionRef::Path(path)).await.map_err(ExtensionError::refused)?;
                let log = opened
                    .ok_or_else(|| ExtensionError::refused("This session has no store to open other sessions from"))?;
                match self.switch_to(log).await {
                    Ok(()) => Ok(left(None)),
                    Err(SessionError::SwitchCancelled) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            SessionAction::Navigate(to) => {
                let navigation = Navigation {
                    target: to.target,
                    summarise: to.summarise,
                    focus: to.focus,
                    replace_instructions: to.replace_instructions,
                    label: to.label,
                    cancel: cancel.child(),
                };
                match self.navigate_with(navigation, emitter).await {
                    Ok(done) => Ok(ActionOutcome::Replaced { cancelled: done.cancelled, text: done.editor_text }),
                    Err(NavigateError::Summary(CompactError::Cancelled)) => Ok(stayed()),
                    Err(error) => Err(ExtensionError::refused(error)),
                }
            }
            // All other actions need no session.
            _ => Ok(ActionOutcome::Done),
        }
    }
}
