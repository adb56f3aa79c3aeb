//! How often each body is read while a client reads hundreds of them at once.
//!
//! A model sends each word in a packet of its own, and reading a packet costs several times as much as handling the word: a notification of
//! the system, a wake-up of the connection and one of the reader, and a system call. While there are few bodies, each word is passed on when
//! it arrives. From about a hundred on, each body rests after it has been read, and what arrives in the meantime is read together.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

/// Number of times per second that all bodies of one client are read together, for each thread of the runtime.
const READS_PER_SECOND: usize = 8_000;

/// Shorter rests are left out: few models send words that fast.
const LEAST_REST: Duration = Duration::from_micros(12_500);

/// No body rests longer than this, however many there are.
const LONGEST_REST: Duration = Duration::from_millis(250);

/// Number of bodies that one client reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers(Arc<AtomicUsize>);

impl Readers {
    /// Returns the pace of one more body, which counts until it is dropped. A connection passes on a `chunked` body chunk by chunk, any other
    /// as it was received.
    pub(super) fn one_more(&self, is_chunked: bool) -> ReadPace {
        self.0.fetch_add(1, Ordering::Relaxed);
        let n_threads = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        ReadPace { readers: self.clone(), n_threads, is_chunked, state: ReadState::Arriving, rested: None, timer: None }
    }

    fn rest(&self, n_threads: usize) -> Option<Duration> {
        let n_bodies = self.0.load(Ordering::Relaxed);
        let micros = n_bodies.saturating_mul(1_000_000) / READS_PER_SECOND.saturating_mul(n_threads.max(1));
        let rest = Duration::from_micros(micros as u64);
        (rest >= LEAST_REST).then(|| rest.min(LONGEST_REST))
    }
}

/// When one body may be read.
#[derive(Debug)]
pub(super) struct ReadPace {
    readers: Readers,
    n_threads: usize,
    /// Whether the connection has to run between two chunks that have both arrived.
    is_chunked: bool,
    state: ReadState,
    /// When the last rest ended.
    rested: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    /// The next chunk is passed on when it arrives.
    Arriving,
    /// A chunk was read.
    Read,
    /// The connection had its turn to pass on one more.
    Yielded,
    /// Nothing more had arrived.
    Resting,
}

impl ReadPace {
    /// Waits for a chunk, and until the body may be read. Dropping the future loses nothing.
    pub(super) async fn read<T>(&mut self, reading: impl Future<Output = T>) -> T {
        let mut reading = pin!(reading);
        poll_fn(|cx| {
            loop {
                match self.state {
                    ReadState::Arriving => {
                        let chunk = ready!(reading.as_mut().poll(cx));
                        self.state = ReadState::Read;
                        return Poll::Ready(chunk);
                    }
                    ReadState::Read | ReadState::Yielded => {
                        let Some(rest) = self.readers.rest(self.n_threads) else {
                            self.state = ReadState::Arriving;
                            continue;
                        };
                        // Without a wake-up: what arrives from now on waits until the end of the rest.
                        let mut unobserved = Context::from_waker(Waker::noop());
                        if let Poll::Ready(chunk) = reading.as_mut().poll(&mut unobserved) {
                            self.state = ReadState::Read;
                            return Poll::Ready(chunk);
                        }
                        if self.state == ReadState::Read && self.may_yield(rest) {
                            self.state = ReadState::Yielded;
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        self.begin(rest);
                    }
                    ReadState::Resting => {
                        if let Some(timer) = &mut self.timer {
                            ready!(timer.as_mut().poll(cx));
                        }
                        self.rested = Some(Instant::now());
                        self.state = ReadState::Arriving;
                    }
                }
            }
        })
        .await
    }

    /// Tells whether the connection gets a turn: not for long, since where turns are slow, there is always something new after one.
    fn may_yield(&self, rest: Duration) -> bool {
        self.is_chunked && self.rested.is_none_or(|rested| rested.elapsed() < rest / 4)
    }

    fn begin(&mut self, rest: Duration) {
        let until = Instant::now() + rest;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
        self.state = ReadState::Resting;
    }
}

impl Drop for ReadPace {
    fn drop(&mut self) {
        self.readers.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use tokio::sync::mpsc;
    use tokio::task::JoinSet;

    use super::*;

    /// Reads numbers that are sent every 20 ms beside `others` other bodies, and returns when each of them arrived, in milliseconds.
    async fn arrivals(n_others: usize) -> Vec<u64> {
        let readers = Readers::default();
        let _others: Vec<ReadPace> = (0..n_others).map(|_| readers.one_more(true)).collect();
        let ((sender, mut receiver), (server, mut socket)) = (mpsc::channel(1), mpsc::channel(100));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for at in 0..10 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                for _ in 0..2 {
                    server.send(at).await.unwrap();
                }
            }
        });
        // The connection, which passes on one chunk at a time.
        tasks.spawn(async move {
            while let Some(at) = socket.recv().await {
                sender.send(at).await.unwrap();
            }
        });
        let (mut pace, began, mut found) = (readers.one_more(true), Instant::now(), Vec::new());
        while pace.read(receiver.recv()).await.is_some() {
            found.push(began.elapsed().as_millis() as u64);
        }
        while tasks.join_next().await.is_some_and(|ended| ended.is_ok()) {}
        found
    }

    #[tokio::test(start_paused = true)]
    async fn few_bodies_are_read_when_something_arrives() {
        let expected: Vec<u64> = (1..=10).flat_map(|at| [at * 20, at * 20]).collect();
        assert_eq!(arrivals(50).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn many_bodies_rest_and_nothing_stays_behind() {
        let found = arrivals(499).await;
        assert_eq!(found.len(), 20);
        assert_eq!(found[..2], [20, 20], "the first words are not delayed");
        let n_rests = found.windows(2).filter(|pair| pair[1] > pair[0]).count();
        assert!(n_rests < 6, "{found:?}");
        assert!(found.iter().max() <= Some(&250), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_wait_is_continued() {
        let readers = Readers::default();
        let _others: Vec<ReadPace> = (0..1_999).map(|_| readers.one_more(true)).collect();
        let (mut pace, polls) = (readers.one_more(true), AtomicU64::new(0));
        let began = Instant::now();
        let waiting = || {
            poll_fn(|_| {
                if matches!(polls.fetch_add(1, Ordering::Relaxed), 1 | 2) { Poll::Pending } else { Poll::Ready(()) }
            })
        };
        pace.read(waiting()).await;
        while tokio::time::timeout(Duration::from_millis(7), pace.read(waiting())).await.is_err() {}
        assert_eq!(began.elapsed().as_millis(), 250);
    }

    #[test]
    fn rests_grow_with_the_bodies_and_end_at_a_limit() {
        let readers = Readers::default();
        let rest = |n_bodies: usize, n_threads| {
            readers.0.store(n_bodies, Ordering::Relaxed);
            readers.rest(n_threads).map(|rest| rest.as_millis())
        };
        assert_eq!([rest(1, 1), rest(99, 1), rest(100, 1), rest(2_000, 1)], [None, None, Some(12), Some(250)]);
        assert_eq!([rest(2_000, 16), rest(100_000, 2), rest(0, 0)], [Some(15), Some(250), None]);
        readers.0.store(0, Ordering::Relaxed);
    }
}
