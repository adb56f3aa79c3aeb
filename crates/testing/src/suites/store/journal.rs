//! Scenarios of journals, one append at a time.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use pinch_session::store::{Appended, Fence, StoreError};

use super::StorePlace;
use super::support::{
    StartTogether, add, begun, ensure, equal, equal_bytes, header, header_line, id, is_there, line, run, stored, text,
};

pub(super) fn order(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, mut end) = begun(place, "s").await?;
        let mut all = header_line("s");
        for (n, n_lines) in [1, 3, 1, 7].into_iter().enumerate() {
            let batch: String = (0..n_lines).map(|at| line(&format!("{n}-{at}"), None, "x", 1)).collect();
            let new = add(&mut *journal, &batch, end).await?;
            equal("the end after an append", new, end + batch.len() as u64)?;
            end = new;
            all.push_str(&batch);
        }
        equal_bytes("the journal's own text", &journal.load().await.map_err(text)?, all.as_bytes())?;
        equal_bytes("the text for others", &stored(place, &id("s")).await?, all.as_bytes())
    })
}

/// Lines that change if a store parses and rewrites them.
const ODD: &str = concat!(
    "{ \"type\" :\"x\",\"id\":\"1\", \"n\":1.0, \"e\":1e400,\"z\":-0 }\n",
    "{\"id\":\"2\",\"type\":\"future\",\"type\":\"future\",\"é\":\"\\u00e9\\ud83d\",\"path\":\"a\\/b\"}\r\n",
    "{\"type\":\"x\",\"id\":\"3\",\"big\":123456789012345678901234567890,\"unknown\":{\"b\":1,\"a\":null}}\n",
    "\n",
    "not json at all\n",
);

pub(super) fn bytes(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        add(&mut *journal, ODD, end).await?;
        equal_bytes("odd lines", &stored(place, &id("s")).await?, (header_line("s") + ODD).as_bytes())
    })
}

pub(super) fn huge_line(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        let huge = line("huge", None, &"0123456789abcdef".repeat(1 << 19), 1);
        let end = add(&mut *journal, &huge, end).await?;
        add(&mut *journal, &line("next", None, "y", 1), end).await?;
        let all = header_line("s") + &huge + &line("next", None, "y", 1);
        equal_bytes("a line of 8 MiB", &stored(place, &id("s")).await?, all.as_bytes())
    })
}

pub(super) fn lazy_begin(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let mut journal = place.store().create(&header("s")).await.map_err(text)?;
        ensure(!is_there(place, &id("s")).await?, || "a session is there before its first line".to_owned())?;
        add(&mut *journal, &header_line("s"), 0).await?;
        ensure(is_there(place, &id("s")).await?, || "a session is not there after its first line".to_owned())?;
        equal_bytes("the text", &stored(place, &id("s")).await?, header_line("s").as_bytes())
    })
}

pub(super) fn missing(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        ensure(!is_there(place, &id("none")).await?, || "a session is there that nobody made".to_owned())?;
        match place.store().remove(&id("none")).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => Err(format!("removing what is not there: {other:?}")),
        }
    })
}

pub(super) fn begun_twice(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let mut second = place.store().create(&header("s")).await.map_err(text)?;
        drop(begun(place, "s").await?);
        let answer = second.append(Bytes::from(header_line("s")), 0).await;
        ensure(answer.is_err(), || format!("a second session began in place of the first: {answer:?}"))?;
        equal_bytes("the first session", &stored(place, &id("s")).await?, header_line("s").as_bytes())
    })
}

pub(super) fn moved(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut ours, end) = begun(place, "s").await?;
        let mut theirs = place.store().open(&id("s")).await.map_err(text)?;
        equal_bytes("what the other loads", &theirs.load().await.map_err(text)?, header_line("s").as_bytes())?;
        let first = line("theirs", None, "x", 1) + &line("theirs too", Some("theirs"), "x", 1);
        let their_end = add(&mut *theirs, &first, end).await?;
        let mine = line("ours", None, "x", 1);
        let answer = ours.append(Bytes::from(mine.clone()), end).await.map_err(text)?;
        let Appended::Moved { tail } = answer else { return Err("an append over the other's lines".to_owned()) };
        equal_bytes("the foreign tail", &tail, first.as_bytes())?;
        let before = header_line("s") + &first;
        equal_bytes("after an append that moved", &stored(place, &id("s")).await?, before.as_bytes())?;
        add(&mut *ours, &mine, their_end).await?;
        equal_bytes("after it was tried again", &stored(place, &id("s")).await?, (before + &mine).as_bytes())
    })
}

pub(super) fn cut_short(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        let end = add(&mut *journal, &line("a", None, "x", 1), end).await?;
        let at = place.put("s", header_line("s").as_bytes()).await;
        let answer = journal.append(Bytes::from(line("b", Some("a"), "x", 1)), end).await;
        ensure(answer.is_err(), || format!("an append to a session that was cut short: {answer:?}"))?;
        equal_bytes("what was left", &stored(place, &at).await?, header_line("s").as_bytes())
    })
}

pub(super) fn fenced(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        let lease = Arc::new(LostLease(AtomicBool::new(true)));
        journal.set_fence(lease.clone());
        let end = add(&mut *journal, &line("a", None, "x", 1), end).await?;
        let before = stored(place, &id("s")).await?;
        lease.0.store(false, Ordering::SeqCst);
        let appended = journal.append(Bytes::from(line("b", Some("a"), "x", 1)), end).await;
        ensure(matches!(appended, Err(StoreError::Fenced { .. })), || {
            format!("an append without a lease: {appended:?}")
        })?;
        let replaced = journal.replace(Bytes::from(header_line("s")), end, "backup").await;
        ensure(matches!(replaced, Err(StoreError::Fenced { .. })), || {
            format!("a replacement without a lease: {replaced:?}")
        })?;
        equal_bytes("what was left", &stored(place, &id("s")).await?, &before)?;
        lease.0.store(true, Ordering::SeqCst);
        add(&mut *journal, &line("c", Some("a"), "x", 1), end).await.map(drop)
    })
}

/// A lease that can be lost.
#[derive(Debug)]
struct LostLease(AtomicBool);

impl Fence for LostLease {
    fn epoch(&self) -> u64 {
        1
    }

    fn is_current(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub(super) fn missing_newline(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let text_now = (header_line("s") + &line("a", None, "x", 1)).trim_end().to_owned();
        let at = place.put("s", text_now.as_bytes()).await;
        let mut journal = place.store().open(&at).await.map_err(text)?;
        let end = journal.load().await.map_err(text)?.len() as u64;
        let next = line("b", Some("a"), "x", 1);
        let end = add(&mut *journal, &next, end).await?;
        add(&mut *journal, &line("c", Some("b"), "x", 1), end).await?;
        let expected = format!("{text_now}\n{next}{}", line("c", Some("b"), "x", 1));
        equal_bytes("after a line without its end", &stored(place, &at).await?, expected.as_bytes())
    })
}

pub(super) fn replaced(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        let mut old = place.store().open(&id("s")).await.map_err(text)?;
        old.load().await.map_err(text)?;
        let old_end = add(&mut *old, &line("a", None, "x", 1), end).await?;
        let new = header_line("s") + &line("new", None, "a longer text than before", 1);
        let answer = journal.replace(Bytes::from(new.clone()), end, "bak").await.map_err(text)?;
        ensure(matches!(answer, Appended::Moved { .. }), || format!("what another wrote was replaced: {answer:?}"))?;
        let before = header_line("s") + &line("a", None, "x", 1);
        equal_bytes("after a replacement that was refused", &stored(place, &id("s")).await?, before.as_bytes())?;
        let answer = journal.replace(Bytes::from(new.clone()), old_end, "bak").await.map_err(text)?;
        equal("the end after a replacement", answer, Appended::At(new.len() as u64))?;
        equal_bytes("what was put in its place", &stored(place, &id("s")).await?, new.as_bytes())?;
        add(&mut *journal, &line("b", Some("new"), "x", 1), new.len() as u64).await?;
        let after = new + &line("b", Some("new"), "x", 1);
        // A program that had the old text open must notice: its line is either rejected or present.
        if let Ok(Appended::At(_)) = old.append(Bytes::from(line("lost", None, "x", 1)), old_end).await {
            return Err("an append to the text that was replaced".to_owned());
        }
        equal_bytes("after the other's append", &stored(place, &id("s")).await?, after.as_bytes())
    })
}

pub(super) fn removed(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        drop(begun(place, "other").await?);
        place.store().remove(&id("s")).await.map_err(text)?;
        ensure(!is_there(place, &id("s")).await?, || "a removed session is still there".to_owned())?;
        let answer = journal.append(Bytes::from(line("a", None, "x", 1)), end).await;
        ensure(answer.is_err(), || format!("an append to a removed session: {answer:?}"))?;
        ensure(!is_there(place, &id("s")).await?, || "an append brought a removed session back".to_owned())?;
        ensure(is_there(place, &id("other")).await?, || "another session was removed with it".to_owned())
    })
}

pub(super) fn synced(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, end) = begun(place, "s").await?;
        journal.sync().await.map_err(text)?;
        add(&mut *journal, &line("a", None, "x", 1), end).await?;
        journal.sync().await.map_err(text)?;
        let all = header_line("s") + &line("a", None, "x", 1);
        equal_bytes("after it was forced to the disk", &stored(place, &id("s")).await?, all.as_bytes())
    })
}

pub(super) fn dropped(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut journal, mut end) = begun(place, "s").await?;
        let mut all = header_line("s");
        for n_polls in 0..4 {
            let next = line(&n_polls.to_string(), None, "x", 1) + &line(&format!("{n_polls} too"), None, "x", 1);
            {
                let mut append = pin!(journal.append(Bytes::from(next.clone()), end));
                let mut cx = Context::from_waker(Waker::noop());
                for _ in 0..n_polls {
                    if let Poll::Ready(answer) = append.as_mut().poll(&mut cx) {
                        answer.map_err(text)?;
                        break;
                    }
                }
            }
            let now = stored(place, &id("s")).await?;
            if now.len() > all.len() {
                all.push_str(&next);
            }
            equal_bytes("after an append that was dropped", &now, all.as_bytes())?;
            end = all.len() as u64;
        }
        add(&mut *journal, &line("last", None, "x", 1), end).await.map(drop)
    })
}

/// Number of concurrent writers, and of each one's lines.
const WRITERS: usize = 4;
const LINES: usize = 150;

pub(super) fn parallel(place: &dyn StorePlace) -> Result<(), String> {
    run(async { begun(place, "s").await.map(drop) })?;
    let start = Barrier::new(WRITERS);
    std::thread::scope(|threads| {
        let start = &start;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| threads.spawn(move || run(write(place, writer, start)))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap_or_else(|_| Err("a writer panicked".to_owned())))
    })?;
    run(async {
        let all = stored(place, &id("s")).await?;
        let all = std::str::from_utf8(&all).map_err(text)?;
        equal("lines of all writers", all.lines().count(), 1 + WRITERS * LINES)?;
        for writer in 0..WRITERS {
            let own: Vec<&str> = all.lines().filter(|line| line.contains(&format!("\"w{writer}-"))).collect();
            let expected: Vec<String> =
                (0..LINES).map(|n| line(&format!("w{writer}-{n}"), None, "x", 1).trim_end().to_owned()).collect();
            equal("the lines of one writer, in order", own, expected.iter().map(String::as_str).collect())?;
        }
        Ok(())
    })
}

async fn write(place: &dyn StorePlace, writer: usize, start: &Barrier) -> Result<(), String> {
    let start = StartTogether(start);
    let mut journal = place.store().open(&id("s")).await.map_err(text)?;
    let mut end = journal.load().await.map_err(text)?.len() as u64;
    drop(start);
    for n in 0..LINES {
        let next = Bytes::from(line(&format!("w{writer}-{n}"), None, "x", 1));
        loop {
            match journal.append(next.clone(), end).await.map_err(text)? {
                Appended::At(new) => {
                    end = new;
                    break;
                }
                Appended::Moved { tail } if tail.is_empty() => return Err("a foreign tail without bytes".to_owned()),
                Appended::Moved { tail } => end += tail.len() as u64,
            }
        }
    }
    Ok(())
}
