//! Timeouts of one call, and the watch over them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::future::{Either, select};
use pinch_stdx::cancel::Cancel;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// Timeouts of one call. `None` or zero: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until the connection is established, TLS included. Default 30 s.
    pub connect: Option<Duration>,
    /// Until a WebSocket is open, in formats that use one. Default 15 s.
    pub websocket: Option<Duration>,
    /// Until the response headers are complete. Default 300 s.
    pub headers: Option<Duration>,
    /// From the headers to the first content. Default 300 s.
    pub first_content: Option<Duration>,
    /// Between two pieces of content; comments, pings and events without content do not count. Default 300 s.
    pub idle: Option<Duration>,
    /// For the whole call. Default none.
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
    /// The same with another limit for establishing the connection.
    #[must_use]
    pub fn with_connect(self, connect: Option<Duration>) -> Self {
        Self { connect, ..self }
    }

    /// The same with another limit for opening a WebSocket.
    #[must_use]
    pub fn with_websocket(self, websocket: Option<Duration>) -> Self {
        Self { websocket, ..self }
    }

    /// The same with another limit until the response headers.
    #[must_use]
    pub fn with_headers(self, headers: Option<Duration>) -> Self {
        Self { headers, ..self }
    }

    /// The same with another limit from the headers to the first content.
    #[must_use]
    pub fn with_first_content(self, first_content: Option<Duration>) -> Self {
        Self { first_content, ..self }
    }

    /// The same with another limit between two pieces of content.
    #[must_use]
    pub fn with_idle(self, idle: Option<Duration>) -> Self {
        Self { idle, ..self }
    }

    /// The same with another limit for the whole call.
    #[must_use]
    pub fn with_total(self, total: Option<Duration>) -> Self {
        Self { total, ..self }
    }
}

/// Why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The caller cancelled.
    Cancelled,
    /// The response headers or the whole call took too long.
    Late,
    /// No content came for too long.
    Idle,
}

/// Enforces the timeouts of one call. A timeout of zero means none.
///
/// Content that arrives only sets a flag. The clock is read once for each piece of the body, and the one timer is armed again only when it
/// fires before its time.
#[derive(Debug)]
pub struct Watch {
    timeouts: Timeouts,
    /// When the whole call must be over.
    total: Option<Instant>,
    /// When the next content must be there.
    content: Option<Instant>,
    /// Content came since `content` was set.
    has_content: bool,
    /// A piece of the body came after `content` had passed.
    is_overdue: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watch {
    /// Begins now.
    pub fn start(timeouts: Timeouts) -> Self {
        let total = from_now(timeouts.total);
        Self { timeouts, total, content: None, has_content: false, is_overdue: false, timer: None }
    }

    /// The limit for connecting.
    pub fn connect(&self) -> Option<Duration> {
        self.timeouts.connect.filter(|limit| !limit.is_zero())
    }

    /// The limit for opening a WebSocket.
    #[cfg(feature = "websocket")]
    pub fn socket(&self) -> Option<Duration> {
        self.timeouts.websocket.filter(|limit| !limit.is_zero())
    }

    /// The time that is left for the whole call; zero has passed.
    #[cfg(feature = "websocket")]
    pub fn left(&self) -> Option<Duration> {
        self.total.map(|total| total.saturating_duration_since(Instant::now()))
    }

    /// The response headers have arrived: content must follow.
    pub fn headers_arrived(&mut self) {
        self.content = from_now(self.timeouts.first_content);
        self.has_content = false;
    }

    /// Content has arrived: more must follow.
    pub fn content_arrived(&mut self) {
        self.has_content = true;
    }

    /// Pauses the timeouts while the consumer handles events. Pass the result to [`Self::resume`].
    pub fn pause(&self) -> Option<Instant> {
        // After content the limit begins with the next wait anyway.
        (!self.has_content && self.content.is_some()).then(Instant::now)
    }

    /// Resumes the timeouts: the time since the pause does not count.
    pub fn resume(&mut self, paused: Option<Instant>) {
        if let (Some(paused), Some(content)) = (paused, &mut self.content) {
            *content += paused.elapsed();
        }
    }

    /// Waits for the response's headers.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub async fn for_headers<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        wait(cancel, earlier(self.total, from_now(self.timeouts.headers)), work).await
    }

    /// Waits for a piece of the body.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub async fn for_body<T>(&mut self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        if cancel.is_cancelled() {
            return Err(Interrupted::Cancelled);
        }
        if std::mem::take(&mut self.has_content) {
            self.content = from_now(self.timeouts.idle);
            self.is_overdue = false;
        }
        let Some(until) = earlier(self.total, self.content) else {
            return cancel.run(work).await.map_err(|_| Interrupted::Cancelled);
        };
        let why = if self.content == Some(until) { Interrupted::Idle } else { Interrupted::Late };
        if Instant::now() >= until {
            // What already waits is taken once, since the time may have passed on this side. A body that always has more ends at the next check.
            if why == Interrupted::Late || std::mem::replace(&mut self.is_overdue, true) {
                return Err(why);
            }
            return cancel.run(timeout_at(until, work)).await.map_err(|_| Interrupted::Cancelled)?.map_err(|_| why);
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() > until {
            timer.as_mut().reset(until);
        }
        let timed = async {
            let mut work = std::pin::pin!(work);
            loop {
                match select(work, timer.as_mut()).await {
                    Either::Left((done, _)) => return Ok(done),
                    Either::Right(_) if Instant::now() >= until => return Err(why),
                    Either::Right(((), rest)) => {
                        timer.as_mut().reset(until);
                        work = rest;
                    }
                }
            }
        };
        cancel.run(timed).await.unwrap_or(Err(Interrupted::Cancelled))
    }

    /// Waits for anything else that belongs to the call.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub async fn for_other<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        wait(cancel, self.total, work).await
    }
}

fn from_now(limit: Option<Duration>) -> Option<Instant> {
    limit.filter(|limit| !limit.is_zero()).and_then(|limit| Instant::now().checked_add(limit))
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
