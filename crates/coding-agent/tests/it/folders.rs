//! Session directories: which sessions are found, which one is continued, and exported copies.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pinch_coding_agent::runtime::{AgentSessionOptions, create_agent_session};
use pinch_coding_agent::session::create::ModelChoice;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{JsonlStore, ListProgress, ListScope, SessionStore};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::host::Host;
use serde_json::Value;

use pinch_testing::logs::{answer, append, create, host, open, shown, user};

fn write(path: &Path, text: &str, age: u64) {
    std::fs::write(path, text).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - age);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn header(id: &str, cwd: &str) -> String {
    format!("{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"t\",\"cwd\":\"{cwd}\"}}\n")
}

#[tokio::test]
async fn programs_store_sessions_where_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().join("w");
    std::fs::create_dir_all(cwd.join(".pi")).unwrap();
    std::fs::create_dir_all(dir.path().join("agent")).unwrap();
    std::fs::write(dir.path().join("agent/settings.json"), r#"{"sessionDir":"~/kept"}"#).unwrap();
    std::fs::write(cwd.join(".pi/settings.json"), r#"{"sessionDir":"here"}"#).unwrap();
    for (trust, kept) in [(false, dir.path().join("kept")), (true, cwd.join("here"))] {
        let host = Host::builder().home(dir.path()).build();
        let mut options = AgentSessionOptions::new(host, &cwd, dir.path().join("agent"));
        options.services.trust = Some(trust);
        options.session.model = ModelChoice::Exact(Arc::new(ScriptedProvider::model("m")));
        options.session.provider = Some(Arc::new(ScriptedProvider::new([ScriptedReply::text("x")])));
        let runtime = create_agent_session(options).await.unwrap();
        assert_eq!(runtime.session().path().as_deref().and_then(Path::parent), Some(&*kept));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn directories_behind_links_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (dir.path().join("sessions"), dir.path().join("elsewhere"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, root.join("--w--")).unwrap();
    write(&elsewhere.join("a.jsonl"), &header("a", "/w"), 0);
    let store = JsonlStore::by_cwd(root);
    for scope in [ListScope::All, ListScope::Cwd("/w".into())] {
        let found = store.list(scope).await.unwrap();
        assert_eq!(found.iter().map(|summary| summary.id.as_str()).collect::<Vec<_>>(), ["a"]);
    }
    assert_eq!(SessionLog::continue_recent(&host(), Arc::new(store), "/w").await.unwrap().id(), "a");
}

#[tokio::test]
async fn the_newest_session_with_a_valid_header_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("newest.jsonl"), "no session\n", 0);
    write(&dir.path().join("foreign.jsonl"), &header("foreign", "/elsewhere"), 1);
    // Longer than the first chunk read, and after invalid lines.
    let long = format!("\n{{broken\n{}", header("long", "/w").replace("\"t\"", &format!("\"{}\"", "t".repeat(9000))));
    write(&dir.path().join("long.jsonl"), &long, 2);
    write(&dir.path().join("old.jsonl"), &header("old", "/w"), 3);
    let store = Arc::new(JsonlStore::flat(dir.path()));
    assert_eq!(SessionLog::continue_recent(&host(), store, "/w").await.unwrap().id(), "long");
}

#[tokio::test]
async fn listing_reports_progress() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..5 {
        write(&dir.path().join(format!("{n}.jsonl")), &header(&n.to_string(), "/w"), n);
    }
    let reports = Arc::new(Mutex::new(Vec::new()));
    let progress: ListProgress = {
        let reports = Arc::clone(&reports);
        Arc::new(move |done, all| reports.lock().unwrap().push((done, all)))
    };
    let found = JsonlStore::flat(dir.path()).list_with_progress(ListScope::All, progress).await.unwrap();
    let mut reports = reports.lock().unwrap().clone();
    reports.sort_unstable();
    assert_eq!((found.len(), reports), (5, (1..=5).map(|done| (done, 5)).collect()));
}

#[tokio::test]
async fn null_content_in_an_old_file_is_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let null = "{\"type\":\"message\",\"id\":\"ROLE\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"ROLE\",\"content\":null,\"toolCallId\":\"c\"}}\n";
    let lines: String = ["user", "assistant", "toolResult", "custom"].map(|role| null.replace("ROLE", role)).concat();
    write(&path, &(header("s", "/w") + &lines), 0);
    let log = open(&path).await.unwrap();
    assert_eq!((log.entry_ids().len(), log.n_skipped()), (4, 0));
    for id in log.entry_ids() {
        assert!(log.context_at(Some(id)).unwrap().messages.len() <= 1);
    }
    assert_eq!(JsonlStore::flat(dir.path()).list(ListScope::All).await.unwrap()[0].message_count, 4);
}

#[tokio::test]
async fn an_export_is_the_branch_as_a_chain() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("q"), answer("a", &[]), user("left")]).await;
    log.append_name("named").await.unwrap();
    log.move_to(&ids[1]).unwrap();
    append(&mut log, [user("next")]).await;
    log.append_label(&ids[0], Some("mark")).await.unwrap();
    let path = dir.path().join("made/for this/export.jsonl");
    log.export_to(&path).unwrap();
    log.export_to(&path).unwrap();
    let lines: Vec<Value> =
        std::fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["id"], &lines[0]["cwd"]), (&Value::from(log.id().as_str()), &Value::from("/w")));
    assert_ne!(lines[0]["timestamp"], log.header().timestamp);
    let chain: Vec<_> = lines[1..].iter().map(|line| (line["parentId"].as_str(), line["id"].as_str())).collect();
    assert!(chain.windows(2).all(|pair| pair[1].0 == pair[0].1) && chain[0].0.is_none(), "{chain:?}");
    let copy = open(&path).await.unwrap();
    assert_eq!(shown(&copy), shown(&log));
    assert_eq!(copy.label(&ids[0]).unwrap().text, "mark");
    assert_eq!(copy.name(), None, "that was on the other branch");
}

#[tokio::test]
async fn an_export_starts_where_a_parent_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let orphan = "{\"type\":\"future\",\"id\":\"b\",\"parentId\":\"gone\", \"n\":1.0}\n{\"type\":\"future\",\"id\":\"c\",\"parentId\":\"b\", \"n\":1.0}\n";
    write(&path, &(header("s", "/w") + orphan), 0);
    let text = String::from_utf8(open(&path).await.unwrap().export_jsonl().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "{\"type\":\"future\",\"id\":\"b\",\"parentId\":null,\"n\":1}");
    assert_eq!(lines[2], "{\"type\":\"future\",\"id\":\"c\",\"parentId\":\"b\", \"n\":1.0}", "byte for byte");
}

#[tokio::test]
async fn an_in_memory_session_can_be_branched_and_exported() {
    let mut log = SessionLog::in_memory(&host(), NewSession::in_directory("/w"));
    let ids = append(&mut log, [user("q"), answer("a", &[]), user("next")]).await;
    log.create_branched_session(&ids[1]).await.unwrap();
    assert_eq!(shown(&log), ["user q", "assistant a"]);
    assert_eq!(log.export_jsonl().unwrap().split(|byte| *byte == b'\n').count(), 4);
    assert!(log.path().is_none());
    log.new_session(NewSession::in_directory("/w")).await.unwrap();
    assert_eq!(log.entry_ids().len(), 0);
}
