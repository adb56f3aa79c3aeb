//! Laws of a lane under random operations.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use proptest::prelude::*;

use super::queue::MAX_OVERTAKEN;
use super::*;

const LANE: &str = "main";
const N_SESSIONS: usize = 6;

#[derive(Clone, Debug)]
enum LaneOperation {
    Acquire {
        session: usize,
    },
    /// The index of this and the next two operations is taken modulo the number of waiters or permits.
    DropWaiter(usize),
    CancelWaiter(usize),
    Release(usize),
    SetConcurrency(usize),
    Clear,
}

fn operation() -> impl Strategy<Value = LaneOperation> {
    prop_oneof![
        40 => (0..N_SESSIONS).prop_map(|session| LaneOperation::Acquire { session }),
        4 => any::<usize>().prop_map(LaneOperation::DropWaiter),
        4 => any::<usize>().prop_map(LaneOperation::CancelWaiter),
        36 => any::<usize>().prop_map(LaneOperation::Release),
        2 => (1..5_usize).prop_map(LaneOperation::SetConcurrency),
        1 => Just(LaneOperation::Clear),
    ]
}

/// A run that waits for a slot.
struct LaneWaiter<'a> {
    session: usize,
    cancel: Cancel,
    acquired: LocalBoxFuture<'a, Result<Permit, LaneError>>,
    /// How many others were admitted while it was the first of its session.
    n_overtaken: u64,
}

/// A lane together with its expected waiters and permits.
struct LaneModel<'a> {
    lanes: &'a Lanes,
    places: usize,
    /// In order of arrival.
    waiters: Vec<LaneWaiter<'a>>,
    permits: Vec<Permit>,
}

impl LaneModel<'_> {
    fn apply(&mut self, operation: &LaneOperation) {
        let chosen = |index: usize, len: usize| (len > 0).then(|| index % len);
        match *operation {
            LaneOperation::Acquire { session } => {
                let (lanes, cancel) = (self.lanes, Cancel::new());
                let own = cancel.clone();
                let acquired = async move { lanes.acquire(LANE, &session.to_string(), &own).await };
                // All waiters are polled in one task, whose cooperative budget would run out.
                let acquired = tokio::task::unconstrained(acquired).boxed_local();
                self.waiters.push(LaneWaiter { session, cancel, acquired, n_overtaken: 0 });
            }
            LaneOperation::DropWaiter(index) => {
                if let Some(index) = chosen(index, self.waiters.len()) {
                    drop(self.waiters.remove(index));
                }
            }
            LaneOperation::CancelWaiter(index) => {
                if let Some(index) = chosen(index, self.waiters.len()) {
                    let waiter = self.waiters.remove(index);
                    waiter.cancel.cancel(CancelReason::User);
                    let ended = waiter.acquired.now_or_never().map(|acquired| acquired.map(drop));
                    assert_eq!(ended, Some(Err(LaneError::Cancelled(CancelReason::User))));
                }
            }
            LaneOperation::Release(index) => {
                if let Some(index) = chosen(index, self.permits.len()) {
                    drop(self.permits.swap_remove(index));
                }
            }
            LaneOperation::SetConcurrency(places) => {
                self.places = places;
                self.lanes.set_concurrency(LANE, places);
            }
            LaneOperation::Clear => {
                assert_eq!(self.lanes.clear(LANE), self.waiters.len());
                for waiter in self.waiters.drain(..) {
                    let ended = waiter.acquired.now_or_never().map(|acquired| acquired.map(drop));
                    assert_eq!(ended, Some(Err(LaneError::Cleared)));
                }
            }
        }
        self.admit();
    }

    /// Takes the slots that were granted, and checks who got them.
    fn admit(&mut self) {
        let mut n_admitted = 0;
        let mut waits = [false; N_SESSIONS];
        let waiting = std::mem::take(&mut self.waiters);
        for mut waiter in waiting {
            match (&mut waiter.acquired).now_or_never() {
                None => {
                    waits[waiter.session] = true;
                    self.waiters.push(waiter);
                }
                Some(permit) => {
                    assert!(!waits[waiter.session], "a run overtook an earlier one of its session");
                    self.permits.push(permit.unwrap());
                    n_admitted += 1;
                }
            }
        }
        let held = self.permits.len();
        assert!(n_admitted == 0 || held <= self.places, "{held} of {} slots are taken", self.places);
        assert!(self.waiters.is_empty() || held >= self.places, "a slot is free although a run waits");
        assert_eq!(self.lanes.size(LANE), held + self.waiters.len());
        let mut is_first = [true; N_SESSIONS];
        for waiter in &mut self.waiters {
            if std::mem::take(&mut is_first[waiter.session]) {
                waiter.n_overtaken += n_admitted;
                assert!(waiter.n_overtaken <= MAX_OVERTAKEN + N_SESSIONS as u64, "a run is starved");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// No slot is lost or granted twice, no slot stays free while a run waits, and no run is starved or overtaken within its session.
    #[test]
    fn slots_are_granted_in_turn_and_none_is_lost(operations in prop::collection::vec(operation(), 10_000)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let lanes = Lanes::default();
        runtime.block_on(async {
            let mut model = LaneModel { lanes: &lanes, places: 1, waiters: Vec::new(), permits: Vec::new() };
            for operation in &operations {
                model.apply(operation);
            }
            // The last permit passes the slot on until nobody waits.
            while !model.permits.is_empty() {
                model.apply(&LaneOperation::Release(0));
            }
            assert!(model.waiters.is_empty());
        });
        prop_assert_eq!(lanes.size(LANE), 0);
    }
}
