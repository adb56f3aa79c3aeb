//! Malformed session files: duplicate ids, cyclic parents, missing parents.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::compaction::prepare::prepare_log;
use pinch_coding_agent::export::{html, page_theme};
use pinch_coding_agent::resources::themes::Theme;
use pinch_coding_agent::runtime::SessionTarget;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::SessionRef;
use proptest::prelude::*;
use serde_json::json;

use pinch_testing::logs::run;
use pinch_testing::logs::{append, open, user};

const HEADER: &str = r#"{"type":"session","version":3,"id":"soup","timestamp":"2025-06-01T10:00:00.000Z","cwd":"/w"}"#;

/// An entry: its id, its parent, and its kind.
type Ingredient = (u8, Option<u8>, u8);

fn ingredient() -> impl Strategy<Value = Ingredient> {
    (0u8..8, prop::option::weighted(0.9, 0u8..9), 0u8..6)
}

fn text_of(soup: &[Ingredient]) -> String {
    let mut text = format!("{HEADER}\n");
    for (id, parent, kind) in soup {
        let body = match kind {
            0 | 1 => json!({"type": "message", "message": {"role": "user", "content": "q", "timestamp": 1}}),
            2 => json!({"type": "compaction", "summary": "S", "firstKeptEntryId": format!("e{id}"), "tokensBefore": 1}),
            3 => json!({"type": "label", "targetId": format!("e{}", (id + 1) % 8), "label": "l"}),
            4 => json!({"type": "session_info", "name": "n"}),
            _ => json!({"type": "thinking_level_change", "thinkingLevel": "low"}),
        };
        let mut line = json!({"id": format!("e{id}"), "parentId": parent.map(|parent| format!("e{parent}")),
            "timestamp": "2025-06-01T10:00:01.000Z"});
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// Walks everything that can be walked; no result may be larger than the file.
fn walk(log: &SessionLog) -> Result<(), TestCaseError> {
    let n = log.entry_ids().len();
    let tree = log.tree();
    prop_assert_eq!(tree.nodes.len(), n);
    let mut reached = vec![0; n];
    let mut waiting = tree.roots.clone();
    while let Some(at) = waiting.pop() {
        reached[at] += 1;
        waiting.extend(&tree.nodes[at].children);
        prop_assert!(reached.iter().sum::<usize>() <= 2 * n, "a walk ends");
    }
    let ids: Vec<_> = log.entry_ids().collect();
    for (at, id) in ids.iter().enumerate() {
        let is_last = ids.iter().rposition(|other| other == id) == Some(at);
        let lines: Vec<_> = log.entries().filter(|other| other.id == **id).map(|other| other.to_line()).collect();
        match lines.iter().all(|line| *line == lines[0]) {
            // Copies of the same line may be siblings.
            true => prop_assert_eq!(reached[at] > 0, is_last),
            false => prop_assert_eq!(reached[at], usize::from(is_last), "the last entry of each id is reached once"),
        }
        prop_assert!(log.branch(id).unwrap().len() <= n);
        log.context_at(Some(id)).unwrap();
        prop_assert!(log.children(id).len() <= n);
    }
    let lines = log.export_jsonl().unwrap();
    prop_assert!(lines.iter().filter(|byte| **byte == b'\n').count() <= n + 1);
    let mut page = Vec::new();
    html::write(log, &page_theme(&Theme::builtin()[0]), &mut page).unwrap();
    prop_assert!(page.windows(8).filter(|bytes| bytes == b"<article").count() <= n);
    drop(prepare_log(log, &pinch_coding_agent::compaction::CompactionSettings::default()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_soup_of_valid_entries_opens_and_is_walked_once(
        soup in prop::collection::vec(ingredient(), 0..24),
        tail in prop::collection::vec(ingredient(), 0..6),
    ) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.jsonl");
            std::fs::write(&path, text_of(&soup)).unwrap();
            let mut log = open(&path).await.unwrap();
            prop_assert_eq!(log.entry_ids().len(), soup.len());
            walk(&log)?;
            let ids: std::collections::BTreeSet<_> = soup.iter().map(|(id, ..)| id).collect();
            let is_odd = ids.len() < soup.len();
            prop_assert!(!is_odd || !log.problems().is_empty(), "what is odd is said");
            // Another program appends more such entries while the session is open.
            let more: String = text_of(&tail).lines().skip(1).map(|line| format!("{line}\n")).collect();
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, more.as_bytes()).unwrap();
            append(&mut log, [user("after")]).await;
            walk(&log)?;
            if let Some(leaf) = log.leaf_id().cloned() {
                log.create_branched_session(&leaf).await.unwrap();
                walk(&log)?;
            }
            let again = open(&path).await.unwrap();
            walk(&again)
        })?;
    }
}

/// A file left by a buggy program that wrote its beginning twice.
#[tokio::test]
async fn copies_of_lines_are_shown_as_in_pi() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, text_of(&[(0, None, 0), (0, None, 0), (1, Some(0), 0)])).unwrap();
    let log = open(&path).await.unwrap();
    let tree = log.tree();
    assert_eq!((tree.roots, &tree.nodes[1].children), (vec![1, 1], &vec![2]));
    // So many copies that the tree would grow with every level.
    let soup: Vec<Ingredient> = (0..8u8).flat_map(|n| [(n, n.checked_sub(1), 0); 2]).collect();
    std::fs::write(&path, text_of(&soup)).unwrap();
    let log = open(&path).await.unwrap();
    assert_eq!(log.tree().roots, [1]);
    walk(&log).unwrap();
}

#[tokio::test]
async fn rpc_answers_for_a_damaged_session_are_no_longer_than_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    // Forty entries with two ids, each the parent of the other: a naive walk would double the answer at every level.
    let soup: Vec<Ingredient> = (0..40).map(|n| (n % 2, Some((n + 1) % 2), 0)).collect();
    // Its working directory must exist.
    let text = text_of(&soup).replace("\"/w\"", &json!(folder.path()).to_string());
    std::fs::write(&path, text).unwrap();
    let log = SessionTarget::Open(SessionRef::Path(path));
    let mut client = crate::rpc::RpcTestClient::at(folder, [], log, Vec::new()).await;
    let answer =
        tokio::time::timeout(Duration::from_secs(20), client.ask(json!({"id": "1", "type": "get_tree"}))).await;
    let answer = answer.unwrap();
    assert_eq!(answer["data"]["tree"].as_array().unwrap().len(), 1, "{answer}");
    let entries = client.ask(json!({"id": "2", "type": "get_entries"})).await;
    let entries = entries["data"]["entries"].as_array().unwrap();
    assert!(entries.len() >= 40);
    let _kept: Arc<_> = Arc::clone(&client.model);
}
