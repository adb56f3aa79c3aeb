//! Cancellation tokens with a reason and an optional deadline.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};

/// Reason why work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The user or the calling program requested it.
    User,
    /// A deadline passed.
    Deadline,
    /// The work yields to other work and may be resumed.
    Yield,
    /// Newer work replaces this one.
    Superseded,
    /// The program is ending.
    Shutdown,
}

/// A point in time after which work counts as cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline `after` from now, on the monotonic clock.
    pub fn after(after: Duration) -> Self {
        let now = tokio::time::Instant::now().into_std();
        // A duration beyond the clock's range is as good as none: a century is enough.
        Self(now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(3_000_000_000)))
    }

    /// Returns the deadline as an instant.
    pub fn at(self) -> Instant {
        self.0
    }

    /// Returns the time left until the deadline; zero if it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(tokio::time::Instant::now().into_std())
    }
}

/// Error of work that was cancelled before it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled ({reason:?})")]
pub struct Cancelled {
    /// The reason.
    pub reason: CancelReason,
}

/// A cancellation token with a reason and an optional deadline; children are cancelled with their parent, never the other way round.
///
/// A clone is another handle to the same token.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<CancelInner>);

#[derive(Debug)]
struct CancelInner {
    token: CancellationToken,
    reason: OnceLock<CancelReason>,
    /// The token's own limit, besides those of its parents.
    limit: Option<TimeLimit>,
    parent: Option<Cancel>,
    /// The nearest parent with a limit. Limits are looked at for every delta, and few tokens of a long chain have one.
    limited: Option<Cancel>,
}

#[derive(Debug)]
enum TimeLimit {
    Fixed(Deadline),
    Extendable(Arc<ExtendableDeadline>),
}

impl TimeLimit {
    fn deadline(&self) -> Deadline {
        match self {
            Self::Fixed(at) => *at,
            Self::Extendable(limit) if limit.is_extended.load(Ordering::Acquire) => limit.latest,
            Self::Extendable(limit) => limit.at,
        }
    }

    /// Returns when to look at the deadline again: a later deadline may be taken back until the earlier one has passed.
    fn next_check(&self) -> Deadline {
        match self {
            Self::Extendable(limit) if !limit.at.left().is_zero() => limit.at,
            other => other.deadline(),
        }
    }
}

#[derive(Debug)]
struct ExtendableDeadline {
    at: Deadline,
    latest: Deadline,
    is_extended: AtomicBool,
}

/// Extends the deadline of a token while work is done that is lost if it is not finished; see [`Cancel::child_until_extended`].
#[derive(Debug)]
pub struct DeadlineExtension(Arc<ExtendableDeadline>);

impl DeadlineExtension {
    /// Begins work that extends the deadline. An expired deadline is not extended any more.
    pub fn begin(&self) {
        if !self.0.at.left().is_zero() {
            self.0.is_extended.store(true, Ordering::Release);
        }
    }

    /// Ends such work: the deadline is the earlier one again, unless that has passed meanwhile.
    pub fn end(&self) {
        if !self.0.at.left().is_zero() {
            self.0.is_extended.store(false, Ordering::Release);
        }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl From<CancellationToken> for Cancel {
    /// Wraps a caller's token; its cancellation counts as [`CancelReason::User`].
    fn from(token: CancellationToken) -> Self {
        Self(Arc::new(CancelInner { token, reason: OnceLock::new(), limit: None, parent: None, limited: None }))
    }
}

impl Cancel {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::from(CancellationToken::new())
    }

    /// Creates a token that is cancelled with this one and can be cancelled separately.
    pub fn child(&self) -> Self {
        self.make_child(None)
    }

    /// Creates a child that is also cancelled at `at`, unless this token's own deadline is earlier.
    pub fn child_until(&self, at: Deadline) -> Self {
        self.make_child(Some(TimeLimit::Fixed(at)))
    }

    /// Creates a child like [`Self::child_until`] whose deadline can be extended to `latest`: while the returned value says so, and from
    /// then on if the earlier deadline passes meanwhile.
    pub fn child_until_extended(&self, at: Deadline, latest: Deadline) -> (Self, DeadlineExtension) {
        let limit = ExtendableDeadline { at, latest: latest.max(at), is_extended: AtomicBool::new(false) };
        let limit = Arc::new(limit);
        (self.make_child(Some(TimeLimit::Extendable(Arc::clone(&limit)))), DeadlineExtension(limit))
    }

    fn make_child(&self, limit: Option<TimeLimit>) -> Self {
        Self(Arc::new(CancelInner {
            token: self.0.token.child_token(),
            reason: OnceLock::new(),
            limit,
            parent: Some(self.clone()),
            limited: if self.0.limit.is_some() { Some(self.clone()) } else { self.0.limited.clone() },
        }))
    }

    /// Returns the earliest of what the limits of this token and its parents are mapped to.
    fn earliest(&self, of: fn(&TimeLimit) -> Deadline) -> Option<Deadline> {
        let own = self.0.limit.as_ref().map(of);
        own.into_iter().chain(self.0.limited.as_ref().and_then(|parent| parent.earliest(of))).min()
    }

    /// Cancels this token and its children. The first reason is kept.
    pub fn cancel(&self, why: CancelReason) {
        self.0.reason.get_or_init(|| why);
        self.0.token.cancel();
    }

    /// Returns whether work should stop because of the token, a parent, or a deadline.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Returns why work should stop, or `None` while it may continue.
    pub fn reason(&self) -> Option<CancelReason> {
        if self.0.token.is_cancelled() {
            return Some(self.own_reason().unwrap_or(CancelReason::User));
        }
        self.deadline().filter(|at| at.left().is_zero()).map(|_| CancelReason::Deadline)
    }

    fn own_reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied().or_else(|| self.0.parent.as_ref().and_then(Self::own_reason))
    }

    /// Returns the deadline, if any. It may be later the next time, see [`Self::child_until_extended`].
    pub fn deadline(&self) -> Option<Deadline> {
        self.earliest(TimeLimit::deadline)
    }

    /// Fails if the token is cancelled.
    ///
    /// # Errors
    /// Returns [`Cancelled`] with the reason.
    pub fn check(&self) -> Result<(), Cancelled> {
        match self.reason() {
            Some(reason) => Err(Cancelled { reason }),
            None => Ok(()),
        }
    }

    /// Waits until the token is cancelled or its deadline passes, and returns the reason.
    pub async fn cancelled(&self) -> CancelReason {
        let token: WaitForCancellationFuture<'_> = self.0.token.cancelled();
        let mut token = pin!(token);
        while let Some(at) = self.earliest(TimeLimit::next_check) {
            let sleep = pin!(tokio::time::sleep_until(at.0.into()));
            futures::future::select(token.as_mut(), sleep).await;
            if let Some(reason) = self.reason() {
                return reason;
            }
        }
        token.await;
        self.reason().unwrap_or(CancelReason::User)
    }

    /// Returns a future that waits only for the cancellation, not for the deadline: for callers that wait repeatedly, watch
    /// [`Cancel::deadline`] with their own timer, and keep this future between waits.
    pub fn requested(&self) -> CancelRequested {
        CancelRequested(Box::pin(self.0.token.clone().cancelled_owned()))
    }

    /// Runs `work` until it finishes or the token is cancelled. Use this for every long wait.
    ///
    /// If both are ready, the result of the work is returned. On cancellation the work's future is dropped.
    ///
    /// # Errors
    /// Returns [`Cancelled`] with the reason.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Cancelled> {
        let work = pin!(work);
        let stop = pin!(self.cancelled());
        match futures::future::select(work, stop).await {
            futures::future::Either::Left((done, _)) => Ok(done),
            futures::future::Either::Right((reason, _)) => Err(Cancelled { reason }),
        }
    }
}

/// A future that completes when a token or a parent of it is cancelled; see [`Cancel::requested`]. It may be polled again afterwards.
#[derive(Debug)]
pub struct CancelRequested(Pin<Box<WaitForCancellationFutureOwned>>);

impl Future for CancelRequested {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn children_follow_parents_and_keep_the_reason() {
        let root = Cancel::new();
        let child = root.child();
        let other = root.child();
        other.cancel(CancelReason::Superseded);
        assert!(!root.is_cancelled() && !child.is_cancelled());
        root.cancel(CancelReason::Shutdown);
        root.cancel(CancelReason::User);
        assert_eq!(child.cancelled().await, CancelReason::Shutdown);
        assert_eq!(other.reason(), Some(CancelReason::Superseded));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_the_work_and_only_the_child() {
        let root = Cancel::new();
        let child = root.child_until(Deadline::after(Duration::from_secs(5)));
        let done = child.run(std::future::pending::<()>()).await;
        assert_eq!(done, Err(Cancelled { reason: CancelReason::Deadline }));
        assert!(!root.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_never_outlives_its_parents_deadline() {
        let root = Cancel::new().child_until(Deadline::after(Duration::from_secs(1)));
        let child = root.child_until(Deadline::after(Duration::from_secs(60)));
        assert_eq!(child.deadline(), root.deadline());
    }

    #[tokio::test(start_paused = true)]
    async fn an_extended_deadline_is_kept_only_if_the_earlier_one_has_passed() {
        let secs = Duration::from_secs;
        let started = tokio::time::Instant::now();
        let limited = || Cancel::new().child_until_extended(Deadline::after(secs(10)), Deadline::after(secs(30)));
        let ended_after = async |cancel: &Cancel| {
            assert_eq!(cancel.child().cancelled().await, CancelReason::Deadline);
            started.elapsed().as_secs()
        };
        let (in_time, extension) = limited();
        let (late, late_extension) = limited();
        extension.begin();
        late_extension.begin();
        assert!(in_time.deadline() > Some(Deadline::after(secs(20))));
        let ended = async {
            tokio::time::sleep(secs(5)).await;
            extension.end();
            tokio::time::sleep(secs(10)).await;
            late_extension.end();
            late_extension.begin();
        };
        let (in_time, late, ()) = tokio::join!(ended_after(&in_time), ended_after(&late), ended);
        assert_eq!((in_time, late), (10, 30));
        let (expired, extension) =
            Cancel::new().child_until_extended(Deadline::after(secs(0)), Deadline::after(secs(9)));
        extension.begin();
        assert!(expired.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_seen_whenever_it_is_polled_and_a_deadline_is_not() {
        let root = Cancel::new();
        let mut requested = root.child_until(Deadline::after(Duration::from_secs(1))).requested();
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut requested).await.is_err());
        root.cancel(CancelReason::User);
        (&mut requested).await;
        requested.await;
    }

    #[tokio::test(start_paused = true)]
    async fn finished_work_takes_precedence_over_a_cancelled_token() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::User);
        assert_eq!(cancel.run(async { 1 }).await, Ok(1));
    }
}
