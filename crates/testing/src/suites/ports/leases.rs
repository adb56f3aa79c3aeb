//! Conformance suite for [`RunLeases`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, join_all};
use pinch_ports::{LeaseError, LeaseRequest, RunLease, RunLeases};
use pinch_stdx::cancel::{Cancel, CancelReason};
use tokio::time::timeout;

use super::{A_MOMENT, SOON, Scenario, ensure, equal, run, text};

/// The lane of all runs in this suite. It must have one slot.
pub const LANE: &str = "main";

type Leases = Arc<dyn RunLeases>;

/// Runs all scenarios. `begin` creates leases that nobody holds, with one slot in the lane [`LANE`].
///
/// # Panics
/// Panics with every scenario that fails.
pub fn check(begin: impl Fn() -> Leases) {
    let scenarios: Vec<Scenario<'_>> = vec![
        ("a session has one run at a time", Box::pin(excludes(begin()))),
        ("runs of a session keep their order", Box::pin(keeps_order(begin()))),
        ("a lane admits as many runs as it has slots", Box::pin(limits(begin()))),
        ("a sleeping run gives its slot back", Box::pin(lends_slots(begin()))),
        ("a run that gives up waiting holds up nobody", Box::pin(forgets_dropped(begin()))),
        ("waiting can be cancelled", Box::pin(is_cancelled(begin()))),
        ("a fence is current until its lease ends", Box::pin(fences(begin()))),
        ("a run that waits is told so", Box::pin(notifies(begin()))),
        ("an idle lease is not lost", Box::pin(keeps(begin()))),
        ("many runs exclude each other and all end", Box::pin(serves_all(begin()))),
    ];
    run(scenarios);
}

async fn acquire(leases: &Leases, session: &str) -> Result<Box<dyn RunLease>, String> {
    let cancel = Cancel::new();
    let acquiring = leases.acquire(LeaseRequest::new(session, LANE, &cancel));
    timeout(SOON, acquiring).await.map_err(|_| format!("{session} waits forever"))?.map_err(text)
}

/// Returns whether a request still waits after a moment.
async fn waits(acquiring: &mut BoxFuture<'_, Result<Box<dyn RunLease>, LeaseError>>) -> bool {
    timeout(A_MOMENT, acquiring).await.is_err()
}

async fn excludes(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    first.release_slot();
    let cancel = Cancel::new();
    let mut second = leases.acquire(LeaseRequest::new("a", LANE, &cancel));
    ensure(waits(&mut second).await, "two runs have the session")?;
    drop(first);
    timeout(SOON, second).await.map_err(|_| "the second never gets it")?.map_err(text).map(drop)
}

async fn keeps_order(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    let order = Mutex::new(Vec::new());
    let runs = (0..4).map(|n| {
        let (leases, order) = (&leases, &order);
        async move {
            let lease = acquire(leases, "a").await?;
            order.lock().unwrap_or_else(PoisonError::into_inner).push(n);
            tokio::task::yield_now().await;
            drop(lease);
            Ok::<(), String>(())
        }
    });
    let release = async {
        tokio::time::sleep(A_MOMENT).await;
        drop(first);
    };
    let (ended, ()) = futures::future::join(join_all(runs), release).await;
    ended.into_iter().collect::<Result<(), String>>()?;
    equal("the order", order.into_inner().unwrap_or_else(PoisonError::into_inner), vec![0, 1, 2, 3])
}

async fn limits(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    let cancel = Cancel::new();
    let mut second = leases.acquire(LeaseRequest::new("b", LANE, &cancel));
    ensure(waits(&mut second).await, "two runs share one slot")?;
    let other = LeaseRequest::new("c", "another lane", &cancel);
    timeout(SOON, leases.acquire(other))
        .await
        .map_err(|_| "another lane waits for this one")?
        .map_err(text)
        .map(drop)?;
    drop(first);
    timeout(SOON, second).await.map_err(|_| "the slot is not passed on")?.map_err(text).map(drop)
}

async fn lends_slots(leases: Leases) -> Result<(), String> {
    let cancel = Cancel::new();
    let first = acquire(&leases, "a").await?;
    first.release_slot();
    let second = acquire(&leases, "b").await?;
    ensure(timeout(A_MOMENT, first.retake_slot(&cancel)).await.is_err(), "two runs share one slot")?;
    drop(second);
    timeout(SOON, first.retake_slot(&cancel)).await.map_err(|_| "the slot does not come back")?.map_err(text)?;
    let mut third = leases.acquire(LeaseRequest::new("c", LANE, &cancel));
    ensure(waits(&mut third).await, "a slot was taken and is free")?;
    // The second time there is nothing to do.
    timeout(SOON, first.retake_slot(&cancel)).await.map_err(|_| "a run waits for the slot it has")?.map_err(text)
}

async fn forgets_dropped(leases: Leases) -> Result<(), String> {
    let cancel = Cancel::new();
    let first = acquire(&leases, "a").await?;
    for session in ["a", "b"] {
        let mut waiting = leases.acquire(LeaseRequest::new(session, LANE, &cancel));
        ensure(waits(&mut waiting).await, "the slot is free")?;
    }
    drop(first);
    acquire(&leases, "a").await.map(drop)?;
    acquire(&leases, "b").await.map(drop)
}

async fn is_cancelled(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    for session in ["a", "b"] {
        let cancel = Cancel::new();
        let mut waiting = leases.acquire(LeaseRequest::new(session, LANE, &cancel));
        ensure(waits(&mut waiting).await, "the slot is free")?;
        cancel.cancel(CancelReason::Shutdown);
        let ended = timeout(SOON, waiting).await.map_err(|_| "it waits on")?;
        ensure(matches!(ended, Err(LeaseError::Cancelled(CancelReason::Shutdown))), "the reason is lost")?;
    }
    drop(first);
    acquire(&leases, "b").await.map(drop)
}

async fn fences(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    let fence = first.fence();
    ensure(fence.is_current(), "the lease is held and its fence is not current")?;
    drop(first);
    ensure(!fence.is_current(), "the lease has ended and its fence is current")?;
    let second = acquire(&leases, "a").await?;
    ensure(second.fence().epoch() > fence.epoch(), "the epoch of a later run is not greater")?;
    ensure(!fence.is_current(), "the fence is current again")
}

async fn notifies(leases: Leases) -> Result<(), String> {
    let first = acquire(&leases, "a").await?;
    let cancel = Cancel::new();
    let n_calls = AtomicUsize::new(0);
    let on_wait = |_| {
        n_calls.fetch_add(1, Ordering::SeqCst);
    };
    let mut waiting = leases.acquire(LeaseRequest::new("a", LANE, &cancel).on_wait(&on_wait));
    ensure(waits(&mut waiting).await, "two runs have the session")?;
    ensure(n_calls.load(Ordering::SeqCst) > 0, "nothing was reported")?;
    drop(waiting);
    drop(first);
    let silent = |_| {
        n_calls.fetch_add(100, Ordering::SeqCst);
    };
    leases.acquire(LeaseRequest::new("a", LANE, &cancel).on_wait(&silent)).await.map_err(text)?;
    ensure(n_calls.load(Ordering::SeqCst) < 100, "a run that need not wait is said to wait")
}

async fn keeps(leases: Leases) -> Result<(), String> {
    let lease = acquire(&leases, "a").await?;
    ensure(timeout(A_MOMENT, lease.keep()).await.is_err(), "a lease is lost at once")?;
    ensure(lease.fence().is_current(), "the lease is held and its fence is not current")
}

async fn serves_all(leases: Leases) -> Result<(), String> {
    let inside = AtomicUsize::new(0);
    let runs = (0..60).map(|n| {
        let (leases, inside) = (&leases, &inside);
        async move {
            let lease = acquire(leases, &format!("s{}", n % 7)).await?;
            ensure(inside.fetch_add(1, Ordering::SeqCst) == 0, "two runs share one slot")?;
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(lease);
            Ok::<(), String>(())
        }
    });
    join_all(runs).await.into_iter().collect()
}
