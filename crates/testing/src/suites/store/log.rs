//! Scenarios of session logs, whatever the store.

use std::collections::HashSet;
use std::sync::Barrier;

use pinch_session::entry::{BranchSummary, Compaction, EntryBody, EntryId};
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{SessionRef, StoreError};
use serde_json::json;

use super::StorePlace;
use super::support::{
    CWD, StartTogether, answer, append, create, ensure, equal, equal_bytes, facts, header_line, host, is_there, line,
    name, open, result, run, shown, stored, text, user,
};

pub(super) fn reopen(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let mut log = create(place.store(), 1).await?;
        let mut ids: Vec<EntryId> = Vec::new();
        for n in 0.. {
            let next = match n {
                0 => user("one"),
                1 => answer(&["c1", "c2"]),
                2 => result("c2"),
                3 => result("c1"),
                4 => EntryBody::ThinkingLevelChange { thinking_level: "high".into() },
                5 => EntryBody::Custom { custom_type: "t".into(), data: Some(json!({ "b": [1, null], "a": "ü\n" })) },
                6 => EntryBody::Label { target_id: ids[0].clone(), label: Some("pin".into()) },
                7 => EntryBody::SessionInfo { name: "a name".into() },
                8 => EntryBody::ContextEdit { target_id: ids[0].clone(), replacement: None },
                9 => {
                    let summary = Compaction {
                        summary: "S".into(),
                        first_kept_entry_id: Some(ids[1].clone()),
                        ..Compaction::default()
                    };
                    EntryBody::Compaction(summary)
                }
                10 => {
                    log.move_to(&ids[1]).map_err(text)?;
                    user("a branch")
                }
                11 => {
                    let summary = BranchSummary {
                        from_id: String::new(),
                        summary: "B".into(),
                        details: None,
                        from_hook: None,
                        usage: None,
                    };
                    ids.push(log.branch_with_summary(Some(&ids[0]), summary).await.map_err(text)?);
                    same(place, &log).await?;
                    answer(&["c3"])
                }
                12 => {
                    log.reset_leaf();
                    user("another root")
                }
                13 => EntryBody::Label { target_id: ids[0].clone(), label: None },
                _ => return Ok(()),
            };
            ids.push(log.append(next).await.map_err(text)?);
            same(place, &log).await?;
        }
        Ok(())
    })
}

/// Compares a log with what another program opens; the last entry is its leaf.
async fn same(place: &dyn StorePlace, log: &SessionLog) -> Result<(), String> {
    let other = open(place, &name(log), 2).await?;
    equal("a log and the same one opened again", facts(&other), facts(log))?;
    equal("the leaf", other.leaf_id(), log.leaf_id())?;
    equal("the context", other.context(), log.context())?;
    equal("the tree", other.tree(), log.tree())
}

pub(super) fn torn_tail(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let whole = header_line("s") + &line("a", None, "one", 1) + &line("b", Some("a"), "two", 1);
        let next = line("c", Some("b"), "three", 1);
        for cut in [1, next.len() / 2, next.len() - 2, next.len() - 1] {
            let at = place.put("s", (whole.clone() + &next[..cut]).as_bytes()).await;
            let mut log = open(place, &at, 1).await?;
            append(&mut log, vec![user("after")]).await?;
            let mut expected = vec!["one", "two", "after"];
            if cut == next.len() - 1 {
                expected.insert(2, "three");
            }
            equal("what was said around a torn line", shown(&log), expected.iter().map(|s| (*s).to_owned()).collect())?;
            let again = open(place, &at, 2).await?;
            equal("what another program reads", shown(&again), shown(&log))?;
        }
        Ok(())
    })
}

pub(super) fn finished_meanwhile(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let whole = header_line("s") + &line("a", None, "one", 1);
        let next = line("b", Some("a"), "two", 1);
        let at = place.put("s", (whole.clone() + &next[..next.len() / 2]).as_bytes()).await;
        let mut log = open(place, &at, 1).await?;
        // The other writer was not dead, only slow.
        place.put("s", (whole + &next).as_bytes()).await;
        append(&mut log, vec![user("three")]).await?;
        equal("what was said", shown(&log), vec!["one".to_owned(), "two".to_owned(), "three".to_owned()])?;
        equal("lines that were passed over", log.n_skipped(), 0)?;
        same(place, &log).await
    })
}

pub(super) fn empty(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        for (n, blank) in ["", "\n", " \r\n\n"].into_iter().enumerate() {
            let at = place.put(&format!("s{n}"), blank.as_bytes()).await;
            let mut log = open(place, &at, 10 + n as u64).await?;
            append(&mut log, vec![user("one")]).await?;
            let again = open(place, &at, 2).await?;
            equal("a session that began empty", facts(&again), facts(&log))?;
            equal("its id", again.id(), log.id())?;
        }
        let mut log = create(place.store(), 1).await?;
        append(&mut log, vec![EntryBody::ThinkingLevelChange { thinking_level: "low".into() }]).await?;
        ensure(!is_there(place, &name(&log)).await?, || "a session is there before the first prompt".to_owned())?;
        append(&mut log, vec![user("one")]).await?;
        same(place, &log).await
    })
}

pub(super) fn no_session(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        for notes in ["# notes\n", "{\"type\":\"message\",\"id\":\"a\"}\n", "{\"type\":\"session\",\"id\":7}", "null\n"]
        {
            let at = place.put("notes", notes.as_bytes()).await;
            match SessionLog::open(&host(1), place.store(), &at, CWD).await {
                Err(StoreError::NotASession { .. }) => {}
                other => return Err(format!("{notes:?} was opened: {other:?}")),
            }
            equal_bytes("what is no session", &stored(place, &at).await?, notes.as_bytes())?;
        }
        Ok(())
    })
}

pub(super) fn migrated(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let old = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"t\",\"branchedFrom\":\"x\"}\n\
            {\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"one\",\"timestamp\":1},\"more\":[1]}\n";
        let at = place.put("s", old.as_bytes()).await;
        let log = open(place, &at, 1).await?;
        equal("an old session", shown(&log), vec!["one".to_owned()])?;
        let new = stored(place, &at).await?;
        let all = String::from_utf8_lossy(&new).into_owned();
        let keeps =
            all.contains("\"branchedFrom\":\"x\"") && all.contains("\"more\":[1]") && all.contains("\"version\":3");
        ensure(keeps, || format!("fields were lost on the way: {all}"))?;
        let mut again = open(place, &at, 2).await?;
        equal_bytes("a session of today is left alone", &stored(place, &at).await?, &new)?;
        append(&mut again, vec![user("two")]).await?;
        equal("after it", shown(&open(place, &at, 3).await?), vec!["one".to_owned(), "two".to_owned()])
    })
}

pub(super) fn unknown(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let odd = concat!(
            "{\"type\":\"future\", \"id\":\"x1\",\"parentId\":\"a\",\"n\":1.0,\"z\":{\"b\":1,\"a\":[]}}\n",
            "{\"parentId\":\"x1\",\"id\":\"x2\",\"type\":\"message\",\"message\":{\"role\":\"hologram\",\"q\":1e2},\"more\":\"\\u00e9\"}\n",
            "{\"type\":\"label\",\"id\":\"x3\",\"parentId\":\"x2\",\"targetId\":7}\n",
        );
        let at = place.put("s", (header_line("s") + &line("a", None, "one", 1) + odd).as_bytes()).await;
        let mut log = open(place, &at, 1).await?;
        append(&mut log, vec![user("two")]).await?;
        let has_odd = |text: &[u8]| text.windows(odd.len()).any(|window| window == odd.as_bytes());
        ensure(has_odd(&stored(place, &at).await?), || "an append changed lines".to_owned())?;
        let copy = SessionLog::fork_from(&host(2), place.store(), &at, NewSession::in_directory("/elsewhere"))
            .await
            .map_err(text)?;
        ensure(has_odd(&stored(place, &name(&copy)).await?), || "a copy changed lines".to_owned())?;
        equal("a copy's context", copy.context(), log.context())?;
        ensure(copy.id() != log.id(), || "a copy has the id of the source".to_owned())?;
        same(place, &copy).await
    })
}

pub(super) fn branched(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let mut log = create(place.store(), 1).await?;
        let ids = append(&mut log, vec![user("one"), answer(&[])]).await?;
        log.append_label(&ids[0], Some("mark")).await.map_err(text)?;
        let leaf = append(&mut log, vec![user("two")]).await?;
        append(&mut log, vec![user("not this one")]).await?;
        let source = name(&log);
        let before = stored(place, &source).await?;
        log.create_branched_session(&leaf[0]).await.map_err(text)?;
        ensure(name(&log) != source, || "a branched session has the id of its source".to_owned())?;
        equal("the branch", shown(&log), vec!["one".to_owned(), "assistant".to_owned(), "two".to_owned()])?;
        equal("its label", log.label(&ids[0]).map(|label| label.text.as_str()), Some("mark"))?;
        same(place, &log).await?;
        equal_bytes("the source", &stored(place, &source).await?, &before)
    })
}

pub(super) fn guard(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        // Each prefix of a run in which a program can die, and the state that the next one finds.
        let steps = || vec![user("one"), answer(&["c1", "c2"]), result("c2"), result("c1"), answer(&["c3"])];
        let prefixes: [(usize, &[&str]); 5] =
            [(1, &[]), (2, &["missing c1", "missing c2"]), (3, &["missing c1"]), (4, &[]), (5, &["missing c3"])];
        for (n_steps, missing) in prefixes {
            let mut log = create(place.store(), n_steps as u64).await?;
            append(&mut log, steps().into_iter().take(n_steps).collect()).await?;
            let said = shown(&log);
            let at = name(&log);
            drop(log);
            let before = stored(place, &at).await?;
            let mut log = open(place, &at, 50).await?;
            equal("calls without results", log.awaited_calls().len(), missing.len())?;
            equal_bytes("opening writes nothing", &stored(place, &at).await?, &before)?;
            append(&mut log, vec![result("nobody asked"), user("next")]).await?;
            let healed = missing.iter().map(|word| (*word).to_owned());
            let expected: Vec<String> = said.into_iter().chain(healed).chain(["next".to_owned()]).collect();
            equal("a run that was cut off and goes on", shown(&log), expected)?;
            same(place, &log).await?;
        }
        Ok(())
    })
}

async fn two(place: &dyn StorePlace) -> Result<(SessionLog, SessionLog, Vec<EntryId>), String> {
    let mut ours = create(place.store(), 1).await?;
    let ids = append(&mut ours, vec![user("one"), answer(&[])]).await?;
    let theirs = open(place, &name(&ours), 2).await?;
    Ok((ours, theirs, ids))
}

pub(super) fn followed(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut ours, mut theirs, _) = two(place).await?;
        append(&mut theirs, vec![user("theirs"), user("theirs too")]).await?;
        append(&mut ours, vec![user("ours")]).await?;
        let expected = ["one", "assistant", "theirs", "theirs too", "ours"].map(str::to_owned).to_vec();
        equal("what goes on from our leaf is followed", shown(&ours), expected)?;
        let told = ours.take_conflict().map(|told| (told.n_entries, told.followed));
        equal("what is told", told, Some((2, true)))?;
        equal("what is told a second time", ours.take_conflict(), None)?;
        same(place, &ours).await
    })
}

pub(super) fn beside(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut ours, mut theirs, ids) = two(place).await?;
        theirs.move_to(&ids[0]).map_err(text)?;
        append(&mut theirs, vec![user("theirs")]).await?;
        append(&mut ours, vec![user("ours")]).await?;
        let expected = ["one", "assistant", "ours"].map(str::to_owned).to_vec();
        equal("what begins elsewhere leaves our leaf alone", shown(&ours), expected)?;
        let told = ours.take_conflict().map(|told| (told.n_entries, told.followed));
        equal("what is told", told, Some((1, false)))?;
        equal("entries in all", ours.entry_ids().len(), 4)?;
        same(place, &ours).await
    })
}

pub(super) fn calls_meanwhile(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut ours, mut theirs, _) = two(place).await?;
        append(&mut theirs, vec![user("theirs"), answer(&["c1"])]).await?;
        append(&mut ours, vec![user("ours")]).await?;
        let expected = ["one", "assistant", "theirs", "assistant", "missing c1", "ours"].map(str::to_owned).to_vec();
        equal("calls of the other are answered before we go on", shown(&ours), expected)?;
        same(place, &ours).await
    })
}

pub(super) fn cut_under_a_log(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let (mut log, _, ids) = two(place).await?;
        let at = name(&log);
        let all = stored(place, &at).await?;
        let (before, said) = (facts(&log), shown(&log));
        let header = all.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        place.put(log.id(), &all[..header]).await;
        ensure(log.append(user("lost")).await.is_err(), || "an append to a session that was cut short".to_owned())?;
        equal("the log after an append that failed", facts(&log), before)?;
        equal("what was said", shown(&log), said)?;
        equal("the leaf", log.leaf_id(), ids.last())?;
        equal_bytes("what was left", &stored(place, &at).await?, &all[..header])
    })
}

/// Number of concurrent programs, and of each one's messages.
const PROGRAMS: u64 = 3;
const TURNS: usize = 60;

pub(super) fn parallel(place: &dyn StorePlace) -> Result<(), String> {
    let at = run(async {
        let mut log = create(place.store(), 1).await?;
        append(&mut log, vec![user("begin")]).await?;
        Ok(name(&log))
    })?;
    let start = Barrier::new(PROGRAMS as usize);
    let told: Vec<(usize, usize)> = std::thread::scope(|threads| {
        let (at, start) = (&at, &start);
        let programs: Vec<_> =
            (0..PROGRAMS).map(|program| threads.spawn(move || run(converse(place, at, program, start)))).collect();
        programs
            .into_iter()
            .map(|program| program.join().unwrap_or_else(|_| Err("a program panicked".to_owned())))
            .collect::<Result<_, _>>()
    })?;
    run(async {
        let log = open(place, &at, 99).await?;
        let n_entries = 1 + PROGRAMS as usize * TURNS;
        equal("entries of all programs", log.entry_ids().len(), n_entries)?;
        equal("different ids", log.entry_ids().collect::<HashSet<_>>().len(), n_entries)?;
        equal("lines that were passed over", log.n_skipped(), 0)?;
        equal("the one branch", log.active_branch().len(), n_entries)?;
        for (n_seen, n_foreign) in told {
            equal("foreign entries a program was told of", n_seen, n_foreign)?;
        }
        Ok(())
    })
}

/// Appends messages repeatedly; returns how many foreign entries were reported, and how many precede the last own one.
async fn converse(
    place: &dyn StorePlace,
    at: &SessionRef,
    program: u64,
    start: &Barrier,
) -> Result<(usize, usize), String> {
    let start = StartTogether(start);
    let mut log = open(place, at, 10 + program).await?;
    drop(start);
    let known = log.entry_ids().len();
    let mut n_told = 0;
    for turn in 0..TURNS {
        append(&mut log, vec![user(&format!("{program} says {turn}"))]).await?;
        while let Some(conflict) = log.take_conflict() {
            ensure(conflict.followed, || "a branch beside, though all go on from the end".to_owned())?;
            n_told += conflict.n_entries;
        }
    }
    Ok((n_told, log.entry_ids().len() - TURNS - known))
}
