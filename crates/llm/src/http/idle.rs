//! Time limits of one call.

use std::future::Future;
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use tokio::time::{Instant, timeout_at};

use crate::request::Deadlines;

/// Why waiting ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The caller cancelled.
    Cancelled,
    /// The response or the whole call took too long.
    Late,
    /// No content came for too long.
    Idle,
}

/// Watches over the time limits of one call. A limit of zero is none.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    deadlines: Deadlines,
    /// When the whole call must be over.
    total: Option<Instant>,
    /// When the next content must be there.
    content: Option<Instant>,
}

impl Watch {
    /// Begins now.
    pub fn start(deadlines: Deadlines) -> Self {
        Self { deadlines, total: from_now(deadlines.total), content: None }
    }

    /// The limit for connecting.
    pub fn connect(&self) -> Option<Duration> {
        self.deadlines.connect.filter(|limit| !limit.is_zero())
    }

    /// The response's headers are there: content must follow.
    pub fn headers_arrived(&mut self) {
        self.content = from_now(self.deadlines.first_content);
    }

    /// Content came: more must follow.
    pub fn content_arrived(&mut self) {
        // Limits are rarely set, and the clock is not asked for nothing.
        if self.deadlines.idle.is_some() || self.content.is_some() {
            self.content = from_now(self.deadlines.idle);
        }
    }

    /// Waits for the response's headers.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn for_headers<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Stopped> {
        wait(cancel, earlier(self.total, from_now(self.deadlines.headers)), Stopped::Late, work).await
    }

    /// Waits for a piece of the body.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn for_body<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Stopped> {
        let is_idle = match (self.content, self.total) {
            (Some(content), Some(total)) => content < total,
            (content, _) => content.is_some(),
        };
        let late = if is_idle { Stopped::Idle } else { Stopped::Late };
        wait(cancel, earlier(self.total, self.content), late, work).await
    }

    /// Waits for anything else that belongs to the call.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn for_other<T>(&self, cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Stopped> {
        wait(cancel, self.total, Stopped::Late, work).await
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

async fn wait<T>(
    cancel: &Cancel,
    until: Option<Instant>,
    late: Stopped,
    work: impl Future<Output = T>,
) -> Result<T, Stopped> {
    if cancel.is_cancelled() {
        return Err(Stopped::Cancelled);
    }
    let timed = async {
        match until {
            Some(until) => timeout_at(until, work).await.map_err(|_| late),
            None => Ok(work.await),
        }
    };
    cancel.run(timed).await.unwrap_or(Err(Stopped::Cancelled))
}
