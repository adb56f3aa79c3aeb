//! Repairs of the conversation between two attempts.

use std::sync::Arc;

use pinch_coding_agent::auth::RequestAuth;

use super::{RunEvent, Runner, hard_end};
use crate::run::decide::{Repair, RepairOutcome, RunState};
use crate::runtime::Attempts;

impl Runner<'_> {
    /// Repairs the conversation. What summaries cost counts towards the budget of the run.
    ///
    /// A compaction that is still in progress at the time limit extends it once, by the time limit of compactions: otherwise the next run
    /// would have to begin with the same compaction.
    pub(super) async fn repair(
        &mut self,
        attempts: &mut dyn Attempts,
        repair: &Repair,
        auth: Arc<dyn RequestAuth>,
        state: &mut RunState,
    ) -> RepairOutcome {
        self.emitter.emit(RunEvent::Repair(*repair)).await;
        let compacts = matches!(repair, Repair::Compact { .. });
        let cancel = match compacts {
            true => self.scope.request.extended(&self.stop, self.began.into_std(), self.scope.summaries.timeout()),
            false => self.cancel.clone(),
        };
        self.active.set_compacting(compacts);
        let repaired = tokio::select! {
            biased;
            repaired = attempts.repair(repair, auth, cancel.clone()) => repaired,
            _ = hard_end(&cancel) => RepairOutcome::NotCompacted { reason: "the run was stopped".to_owned() },
        };
        self.active.set_compacting(false);
        state.add_repair_usage(&attempts.take_repair_usage());
        if compacts && self.cancel.is_cancelled() && !cancel.is_cancelled() {
            self.cancel = cancel;
        }
        self.emitter.emit(RunEvent::Repaired(repaired.clone())).await;
        repaired
    }
}
