//! Timeouts of a call, and [`Watch`], which enforces them.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelRequested};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// Timeouts of one call. `None` or zero means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Limit for establishing the connection, including TLS. Default 30 s.
    pub connect: Option<Duration>,
    /// Limit for opening a WebSocket, in formats that use one. Default 15 s.
    pub websocket: Option<Duration>,
    /// Limit until the response headers are complete. Default 300 s.
    pub headers: Option<Duration>,
    /// Limit from the headers to the first content. Default 300 s.
    pub first_content: Option<Duration>,
    /// Limit between two chunks of content; comments, pings and events without content do not count. Default 300 s.
    pub idle: Option<Duration>,
    /// Limit for the whole call. Default none.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = |n| Some(Duration::from_secs(n));
        Self {
            connect: seconds(30),
            websocket: seconds(15),
            headers: seconds(300),
            first_content: seconds(300),
            idle: seconds(300),
            total: None,
        }
    }
}

impl Timeouts {
    /// Sets the limit for establishing the connection.
    #[must_use]
    pub fn with_connect(self, connect: Option<Duration>) -> Self {
        Self { connect, ..self }
    }

    /// Sets the limit for opening a WebSocket.
    #[must_use]
    pub fn with_websocket(self, websocket: Option<Duration>) -> Self {
        Self { websocket, ..self }
    }

    /// Sets the limit until the response headers.
    #[must_use]
    pub fn with_headers(self, headers: Option<Duration>) -> Self {
        Self { headers, ..self }
    }

    /// Sets the limit from the headers to the first content.
    #[must_use]
    pub fn with_first_content(self, first_content: Option<Duration>) -> Self {
        Self { first_content, ..self }
    }

    /// Sets the limit between two chunks of content.
    #[must_use]
    pub fn with_idle(self, idle: Option<Duration>) -> Self {
        Self { idle, ..self }
    }

    /// Sets the limit for the whole call.
    #[must_use]
    pub fn with_total(self, total: Option<Duration>) -> Self {
        Self { total, ..self }
    }
}

/// Reason why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The caller cancelled.
    Cancelled,
    /// The response headers or the whole call took too long.
    Late,
    /// No content arrived for too long.
    Idle,
}

/// Enforces the timeouts of one call.
///
/// Arriving content only sets a flag. The clock is read once per chunk of the body, and the single timer is re-armed only when it fires
/// early. The wait for a cancellation lasts from the first chunk of the body to the last.
#[derive(Debug)]
pub struct Watch {
    timeouts: Timeouts,
    /// Deadline of the whole call.
    total: Option<Instant>,
    /// Deadline of the next content.
    content: Option<Instant>,
    /// Content has arrived since `content` was set.
    has_content: bool,
    /// A chunk of the body arrived after `content` had passed.
    is_overdue: bool,
    timer: Option<Pin<Box<Sleep>>>,
    cancelled: Option<CancelRequested>,
}

impl Watch {
    /// Starts the clock.
    pub fn start(timeouts: Timeouts) -> Self {
        let total = from_now(timeouts.total);
        Self { timeouts, total, content: None, has_content: false, is_overdue: false, timer: None, cancelled: None }
    }

    /// Returns the limit for connecting.
    pub fn connect(&self) -> Option<Duration> {
        self.timeouts.connect.filter(|limit| !limit.is_zero())
    }

    /// Returns the limit for opening a WebSocket.
    #[cfg(feature = "websocket")]
    pub fn socket(&self) -> Option<Duration> {
        self.timeouts.websocket.filter(|limit| !limit.is_zero())
    }

    /// Returns the time left for the whole call; zero if it has passed.
    #[cfg(feature = "websocket")]
    pub fn left(&self) -> Option<Duration> {
        self.total.map(|total| total.saturating_duration_since(Instant::now()))
    }

    /// Records that the response headers have arrived and starts the limit for the first content.
    pub fn headers_arrived(&mut self) {
        self.content = from_now(self.timeouts.first_content);
        self.has_content = false;
    }

    /// Records that content has arrived and restarts the idle limit.
    pub fn content_arrived(&mut self) {
        self.has_content = true;
    }

    /// Pauses the timeouts while the consumer handles events. Pass the result to [`Self::resume`].
    pub fn pause(&self) -> Option<Instant> {
        // After content, the limit starts with the next wait anyway.
        (!self.has_content && self.content.is_some()).then(Instant::now)
    }

    /// Resumes the timeouts; the time since the pause does not count.
    pub fn resume(&mut self, paused: Option<Instant>) {
        if let (Some(paused), Some(content)) = (paused, &mut self.content) {
            *content += paused.elapsed();
        }
    }

    /// Waits for the response headers.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the call is cancelled or times out.
    pub async fn for_headers<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        wait(cancel, earlier(self.total, from_now(self.timeouts.headers)), work).await
    }

    /// Waits for a chunk of the body. Pass the same token for all chunks.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the call is cancelled or times out.
    pub async fn for_body<T>(&mut self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        let now = Instant::now();
        if std::mem::take(&mut self.has_content) {
            self.content = after(now, self.timeouts.idle);
            self.is_overdue = false;
        }
        let deadline = cancel.deadline().map(|deadline| Instant::from_std(deadline.at()));
        let until = earlier(deadline, earlier(self.total, self.content));
        let why = match until {
            None => Interrupted::Cancelled,
            until if until == deadline => Interrupted::Cancelled,
            until if until == self.content => Interrupted::Idle,
            _ => Interrupted::Late,
        };
        if until.is_some_and(|until| now >= until) {
            // Take a waiting chunk once, as the delay may be on this side. A body that always has more ends at the next check.
            if why != Interrupted::Idle || std::mem::replace(&mut self.is_overdue, true) {
                return Err(if cancel.is_cancelled() { Interrupted::Cancelled } else { why });
            }
        }
        if let Some(until) = until {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() > until {
                timer.as_mut().reset(until);
            }
        }
        let (timer, cancelled) = (&mut self.timer, self.cancelled.get_or_insert_with(|| cancel.requested()));
        let mut work = pin!(work);
        poll_fn(|cx| {
            if Pin::new(&mut *cancelled).poll(cx).is_ready() {
                return Poll::Ready(Err(Interrupted::Cancelled));
            }
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            if let (Some(timer), Some(until)) = (timer.as_mut(), until) {
                while timer.as_mut().poll(cx).is_ready() {
                    if Instant::now() >= until {
                        return Poll::Ready(Err(why));
                    }
                    timer.as_mut().reset(until);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for any other part of the call.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the call is cancelled or times out.
    pub async fn for_other<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        wait(cancel, self.total, work).await
    }
}

fn from_now(limit: Option<Duration>) -> Option<Instant> {
    after(Instant::now(), limit)
}

fn after(now: Instant, limit: Option<Duration>) -> Option<Instant> {
    limit.filter(|limit| !limit.is_zero()).and_then(|limit| now.checked_add(limit))
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

async fn wait<T>(cancel: &Cancel, until: Option<Instant>, work: impl Future<Output = T>) -> Result<T, Interrupted> {
    if cancel.is_cancelled() {
        return Err(Interrupted::Cancelled);
    }
    let timed = async {
        match until {
            Some(until) => timeout_at(until, work).await.map_err(|_| Interrupted::Late),
            None => Ok(work.await),
        }
    };
    cancel.run(timed).await.unwrap_or(Err(Interrupted::Cancelled))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use pinch_stdx::cancel::{CancelReason, Deadline};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watch(idle: u32) -> Watch {
        let mut watch = Watch::start(Timeouts::default().with_idle(Some(SECOND * idle)).with_first_content(None));
        watch.headers_arrived();
        watch
    }

    /// Returns how many seconds a wait for a chunk that never arrives takes, and why it ends.
    async fn never(watch: &mut Watch, cancel: &Cancel) -> (u64, Interrupted) {
        let began = Instant::now();
        let why = watch.for_body(cancel, pending::<()>()).await.unwrap_err();
        (began.elapsed().as_secs(), why)
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_of_the_token_ends_the_wait_as_a_cancellation() {
        let cancel = Cancel::new().child_until(Deadline::after(SECOND * 3));
        assert_eq!(never(&mut watch(5), &cancel).await, (3, Interrupted::Cancelled));
        assert_eq!(never(&mut watch(5), &cancel).await, (0, Interrupted::Cancelled));
    }

    #[tokio::test(start_paused = true)]
    async fn the_idle_limit_restarts_with_every_chunk() {
        let cancel = Cancel::new().child_until(Deadline::after(SECOND * 60));
        let mut watch = watch(5);
        for _ in 0..8 {
            assert_eq!(watch.for_body(&cancel, tokio::time::sleep(SECOND * 4)).await, Ok(()));
            watch.content_arrived();
        }
        assert_eq!(never(&mut watch, &cancel).await, (5, Interrupted::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_between_two_chunks_takes_precedence_over_a_waiting_chunk() {
        let parent = Cancel::new();
        let (cancel, mut watch) = (parent.child(), watch(5));
        assert_eq!(watch.for_body(&cancel, ready(1)).await, Ok(1));
        parent.cancel(CancelReason::User);
        assert_eq!(watch.for_body(&cancel, ready(2)).await, Err(Interrupted::Cancelled));
    }
}
