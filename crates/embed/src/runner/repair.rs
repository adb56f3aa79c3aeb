//! Repairs of the conversation between two attempts, and the time that compactions may take.

use std::sync::Arc;

use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;

use super::{RunEvent, Runner, hard_end};
use crate::run::decide::{Repair, RepairOutcome, RunState};
use crate::runtime::Attempts;

impl Runner<'_> {
    /// Repairs the conversation. What summaries cost counts towards the budget of the run.
    pub(super) async fn repair(
        &mut self,
        attempts: &mut dyn Attempts,
        repair: &Repair,
        auth: Arc<dyn RequestAuth>,
        state: &mut RunState,
    ) -> RepairOutcome {
        self.emitter.emit(RunEvent::Repair(*repair)).await;
        let cancel = self.cancel.clone();
        self.set_compacting(matches!(repair, Repair::Compact { .. }));
        let repaired = tokio::select! {
            biased;
            repaired = attempts.repair(repair, auth, cancel.clone()) => repaired,
            _ = hard_end(&cancel) => RepairOutcome::NotCompacted { reason: "the run was stopped".to_owned() },
        };
        self.set_compacting(false);
        state.add_repair_usage(&attempts.take_repair_usage());
        self.emitter.emit(RunEvent::Repaired(repaired.clone())).await;
        repaired
    }

    /// Records whether the run is compacting. A compaction that is still in progress at the time limit extends it once, by the time limit of
    /// compactions: otherwise the next run would have to begin with the same compaction.
    pub(super) fn set_compacting(&self, compacts: bool) {
        self.active.set_compacting(compacts);
        self.extend_while(compacts);
    }

    /// Like [`Self::set_compacting`], for compactions inside an attempt.
    pub(super) fn follow_compaction(&self, event: &SessionEvent) {
        self.active.follow_compaction(event);
        match event {
            SessionEvent::CompactionStart { .. } => self.extend_while(true),
            SessionEvent::CompactionEnd { .. } => self.extend_while(false),
            _ => {}
        }
    }

    fn extend_while(&self, compacts: bool) {
        match &self.extension {
            Some(extension) if compacts => extension.begin(),
            Some(extension) => extension.end(),
            None => {}
        }
    }
}
