//! Scenarios of session lists.

use std::sync::{Arc, Mutex, PoisonError};

use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{ListProgress, ListScope, SessionSummary};

use super::StorePlace;
use super::support::{CWD, add, append, begun, ensure, equal, header_line, host, id, line, run, stored, text, user};

async fn list(place: &dyn StorePlace, scope: ListScope) -> Result<Vec<SessionSummary>, String> {
    place.store().list(scope).await.map_err(text)
}

fn ids(found: &[SessionSummary]) -> Vec<&str> {
    found.iter().map(|summary| summary.id.as_str()).collect()
}

pub(super) fn summaries(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        equal("sessions of an empty store", list(place, ListScope::All).await?, Vec::new())?;
        for (name, time) in [("old", 1_000), ("new", 3_000), ("middle", 2_000)] {
            let (mut journal, end) = begun(place, name).await?;
            let named = format!("{{\"type\":\"session_info\",\"id\":\"i\",\"name\":\" N {name} \"}}\n");
            let lines = line("a", None, "first words", time - 1) + &line("b", Some("a"), "second", time) + &named;
            add(&mut *journal, &lines, end).await?;
        }
        place.put("garbage", b"no session\n").await;
        let found = list(place, ListScope::All).await?;
        equal("all sessions, the latest changed first", ids(&found), vec!["new", "middle", "old"])?;
        let new = &found[0];
        equal("its name", new.name.as_deref(), Some("N new"))?;
        equal("its working directory", new.cwd.as_str(), CWD)?;
        equal("its number of messages", new.message_count, 2)?;
        equal("its first message", new.first_message.as_str(), "first words")?;
        equal("its text", &*new.search_text, "first words second")?;
        equal("when it was changed", new.modified, 3_000)
    })
}

pub(super) fn scopes(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        // Some are in a directory named in pi's way, and some are too deep for such a name.
        let deep = format!("/deep{}", "/d".repeat(300));
        let deeper = format!("{deep}/d");
        let cwds = ["/x", "/a/b", "/a-b", &deep, &deeper];
        for (n, cwd) in cwds.into_iter().enumerate() {
            let new = NewSession { cwd: cwd.to_owned(), id: Some(format!("s{n}").into()), parent_session: None };
            let mut log = SessionLog::create(&host(n as u64), place.store(), new).await.map_err(text)?;
            append(&mut log, vec![user(cwd)]).await?;
        }
        equal("sessions everywhere", list(place, ListScope::All).await?.len(), cwds.len())?;
        for (n, cwd) in cwds.into_iter().enumerate() {
            let found = list(place, ListScope::Cwd(cwd.to_owned())).await?;
            equal("sessions of one working directory", ids(&found), vec![format!("s{n}").as_str()])?;
            let recent = place.store().most_recent(cwd).await.map_err(text)?;
            let Some(recent) = recent else { return Err(format!("no session of {cwd} to go on with")) };
            let log = SessionLog::open(&host(9), place.store(), &recent, cwd).await.map_err(text)?;
            equal("the session to go on with", log.id(), &format!("s{n}").into())?;
        }
        let none = place.store().most_recent("/elsewhere").await.map_err(text)?;
        equal("the session of a directory without any", none, None)
    })
}

pub(super) fn fresh(place: &dyn StorePlace) -> Result<(), String> {
    run(async {
        let store = place.store();
        let (mut journal, end) = begun(place, "s").await?;
        let count = async || -> Result<Vec<usize>, String> {
            let found = store.list(ListScope::All).await.map_err(text)?;
            Ok(found.iter().map(|summary| summary.message_count).collect())
        };
        equal("messages before", count().await?, vec![0])?;
        let end = add(&mut *journal, &line("a", None, "x", 1), end).await?;
        equal("messages after one", count().await?, vec![1])?;
        add(&mut *journal, &line("b", Some("a"), "x", 1), end).await?;
        equal("messages after two", count().await?, vec![2])?;
        store.remove(&id("s")).await.map_err(text)?;
        equal("sessions after it was removed", count().await?, Vec::new())
    })
}

pub(super) fn many(place: &dyn StorePlace) -> Result<(), String> {
    const SESSIONS: usize = 150;
    run(async {
        for n in 0..SESSIONS {
            let name = format!("s{n:03}");
            let (mut journal, end) = begun(place, &name).await?;
            add(&mut *journal, &line("a", None, &name, n as i64 + 1), end).await?;
        }
        let told = Arc::new(Mutex::new((0, 0)));
        let progress: ListProgress = {
            let told = Arc::clone(&told);
            Arc::new(move |done, all| {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                *told = (told.0.max(done), all);
            })
        };
        let found = place.store().list_with_progress(ListScope::All, progress).await.map_err(text)?;
        let expected: Vec<String> = (0..SESSIONS).rev().map(|n| format!("s{n:03}")).collect();
        equal("all of many sessions", ids(&found), expected.iter().map(String::as_str).collect())?;
        let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
        equal("the last progress that was told", told, (SESSIONS, SESSIONS))?;
        for n in [0, SESSIONS / 2, SESSIONS - 1] {
            let name = format!("s{n:03}");
            let all = stored(place, &id(&name)).await?;
            let begins = all.starts_with(header_line(&name).as_bytes());
            ensure(begins, || format!("session {name} holds something else"))?;
        }
        Ok(())
    })
}
