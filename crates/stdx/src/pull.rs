//! A stream whose items are produced by an `async` function in lockstep with its reader.
//!
//! [`pulled`] runs a future only while the stream is polled. Inside, [`Emitter::emit`] yields one item and returns when the reader polls
//! for the next one, so the reader has finished with an item before the future continues. Dropping the stream drops the future.
//!
//! Unlike in the macros of `async-stream`, which only yield in place, an emitter is a value that can be passed to functions and shared by a
//! set of futures.
//!
//! ```
//! use futures::StreamExt;
//! use pinch_stdx::pull::pulled;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let numbers = pulled(|emitter| async move {
//!     for n in 0..3 {
//!         emitter.emit(n).await;
//!     }
//! });
//! assert_eq!(numbers.collect::<Vec<_>>().await, [0, 1, 2]);
//! # }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use futures::future::BoxFuture;

/// Creates a stream from a future that emits items.
pub fn pulled<'a, T, F>(make: impl FnOnce(Emitter<T>) -> F) -> Pulled<'a, T>
where
    F: Future<Output = ()> + Send + 'a,
{
    let state = Mutex::new(SlotState { item: None, reader: None, waiting: Vec::new() });
    let slot = Arc::new(EmitterSlot { is_full: AtomicBool::new(false), state });
    let work = make(Emitter { slot: Arc::clone(&slot) });
    Pulled { slot, reader: None, work: Some(Box::pin(work)) }
}

/// The stream created by [`pulled`].
#[must_use = "streams do nothing unless polled"]
pub struct Pulled<'a, T> {
    slot: Arc<EmitterSlot<T>>,
    /// The waker known to the slot, compared without a lock.
    reader: Option<Waker>,
    work: Option<BoxFuture<'a, ()>>,
}

/// The producer's side: yields items to the reader. Clones share one slot.
pub struct Emitter<T> {
    slot: Arc<EmitterSlot<T>>,
}

struct EmitterSlot<T> {
    /// Whether the state has an item: avoids the lock if there is nothing to do. Written only under the lock.
    is_full: AtomicBool,
    state: Mutex<SlotState<T>>,
}

struct SlotState<T> {
    item: Option<T>,
    /// The waker that polls the stream. An emitter polled with the same waker needs no other: the reader polls it when it returns.
    reader: Option<Waker>,
    /// Emitters polled with their own wakers, as by a set of futures.
    waiting: Vec<Waker>,
}

impl<T> Clone for Emitter<T> {
    fn clone(&self) -> Self {
        Self { slot: Arc::clone(&self.slot) }
    }
}

impl<T> EmitterSlot<T> {
    fn lock(&self) -> MutexGuard<'_, SlotState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Takes the item, if there is one.
    fn take(&self) -> Option<T> {
        if !self.is_full() {
            return None;
        }
        let mut state = self.lock();
        let item = state.item.take();
        self.is_full.store(false, Ordering::Release);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        item
    }
}

impl<T> Emitter<T> {
    /// Yields an item and waits until the reader polls for the next one.
    ///
    /// If the future is dropped before the item was taken, the reader may still receive it.
    pub fn emit(&self, item: T) -> Emission<'_, T> {
        Emission { slot: &self.slot, item: Some(item) }
    }
}

/// The future of [`Emitter::emit`]. Written by hand, as an `async fn` would hold the item twice.
#[must_use = "futures do nothing unless polled"]
pub struct Emission<'e, T> {
    slot: &'e EmitterSlot<T>,
    /// `None` once it is in the slot.
    item: Option<T>,
}

// The item is never pinned.
impl<T> Unpin for Emission<'_, T> {}

impl<T> Future for Emission<'_, T> {
    type Output = ();

    /// Waits for the slot to be free, puts the item there, then waits until it is taken.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.item.is_none() && !self.slot.is_full() {
            return Poll::Ready(());
        }
        let mut state = self.slot.lock();
        if state.item.is_none() {
            match self.item.take() {
                None => return Poll::Ready(()),
                Some(new) => state.item = Some(new),
            }
            self.slot.is_full.store(true, Ordering::Release);
        }
        let is_known = |waker: &Waker| waker.will_wake(cx.waker());
        if !state.reader.iter().chain(&state.waiting).any(is_known) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Stream for Pulled<'_, T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if !self.reader.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            self.reader = Some(cx.waker().clone());
            self.slot.lock().reader = Some(cx.waker().clone());
        }
        loop {
            if let Some(item) = self.slot.take() {
                return Poll::Ready(Some(item));
            }
            let Some(work) = &mut self.work else { return Poll::Ready(None) };
            match work.as_mut().poll(cx) {
                Poll::Ready(()) => self.work = None,
                Poll::Pending if self.slot.is_full() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn the_emitter_never_runs_ahead_of_the_reader() {
        let done = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&done);
        let mut stream = pulled(|emitter| async move {
            for n in 1..=3 {
                emitter.emit(n).await;
                seen.store(n, Ordering::SeqCst);
            }
        });
        assert_eq!(stream.next().await, Some(1));
        assert_eq!(done.load(Ordering::SeqCst), 0, "the first item is still being worked on");
        assert_eq!(stream.next().await, Some(2));
        assert_eq!(done.load(Ordering::SeqCst), 1);
        assert_eq!(stream.next().await, Some(3));
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.next().await, None, "and it stays over");
    }

    #[tokio::test]
    async fn many_emitters_share_one_slot() {
        // A large set polls only those of its futures that were woken.
        for n_emitters in [10, 100] {
            let stream = pulled(|emitter| async move {
                let all = (0..n_emitters).map(|n| {
                    let emitter = emitter.clone();
                    async move { emitter.emit(n).await }
                });
                futures::future::join_all(all).await;
            });
            let mut got = stream.collect::<Vec<_>>().await;
            got.sort_unstable();
            assert_eq!(got, (0..n_emitters).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_reader_that_moves_to_another_task_is_still_served() {
        let mut stream = pulled(|emitter| async move {
            for n in 0..4 {
                emitter.emit(n).await;
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(stream.next().await, Some(0));
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { stream.collect::<Vec<_>>().await });
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn an_item_costs_no_wake_up() {
        struct CountingWaker(AtomicUsize);
        impl std::task::Wake for CountingWaker {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(CountingWaker(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut stream = pulled(|emitter| async move {
            for n in 0..5 {
                emitter.emit(n).await;
            }
        });
        let mut cx = Context::from_waker(&waker);
        while let Poll::Ready(Some(_)) = stream.poll_next_unpin(&mut cx) {}
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }
}
