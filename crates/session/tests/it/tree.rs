//! The tree of a session compared with a simple model of it.

use std::collections::BTreeMap;
use std::path::Path;

use pinch_llm::message::Message;
use pinch_session::entry::{BranchSummary, EntryBody, EntryId};
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::SessionRef;
use pinch_stdx::host::Host;
use proptest::prelude::*;

use pinch_testing::logs::run;
use pinch_testing::logs::{append, create, file, store, user};

/// One operation on a tree.
#[derive(Clone, Debug)]
enum TreeStep {
    Say(u8),
    Level,
    Name(String),
    Label(usize, Option<u8>),
    MoveTo(usize),
    Reset,
    Summary(Option<usize>),
    Unknown,
    Fork,
    Branched(usize),
    Reopen,
}

fn step() -> impl Strategy<Value = TreeStep> {
    prop_oneof![
        5 => any::<u8>().prop_map(TreeStep::Say),
        1 => Just(TreeStep::Level),
        1 => " ?[a-b]{0,2}\n?[a-b]{0,2}".prop_map(TreeStep::Name),
        3 => (any::<usize>(), prop::option::weighted(0.7, any::<u8>())).prop_map(|(at, label)| TreeStep::Label(at, label)),
        3 => any::<usize>().prop_map(TreeStep::MoveTo),
        1 => Just(TreeStep::Reset),
        1 => prop::option::of(any::<usize>()).prop_map(TreeStep::Summary),
        1 => Just(TreeStep::Unknown),
        1 => Just(TreeStep::Fork),
        1 => any::<usize>().prop_map(TreeStep::Branched),
        2 => Just(TreeStep::Reopen),
    ]
}

/// The kind of an entry in the model.
#[derive(Clone, Debug, PartialEq)]
enum ModelEntryKind {
    Said(String),
    Summary,
    Name(String),
    Label { target: EntryId, label: Option<String> },
    Other,
}

/// A tree as a list of nodes; everything else is found by walking it.
#[derive(Clone, Debug, Default)]
struct TreeModel {
    nodes: Vec<(EntryId, Option<EntryId>, ModelEntryKind)>,
    leaf: Option<EntryId>,
    n_hosts: u64,
}

impl TreeModel {
    /// Creates a host as another program would have: it draws different ids.
    fn next_host(&mut self) -> Host {
        self.n_hosts += 1;
        Host::builder().clock(1_770_000_000_000, 1000).seed(1000 + self.n_hosts).build()
    }

    fn add(&mut self, id: EntryId, kind: ModelEntryKind) {
        self.nodes.push((id.clone(), self.leaf.replace(id), kind));
    }

    fn path(&self, leaf: Option<&EntryId>) -> Vec<usize> {
        let mut path = Vec::new();
        let mut next = leaf.cloned();
        while let Some(id) = next {
            let at = self.nodes.iter().position(|(own, ..)| *own == id).unwrap();
            path.insert(0, at);
            next = self.nodes[at].1.clone();
        }
        path
    }

    fn labels(&self) -> BTreeMap<EntryId, String> {
        let mut labels = BTreeMap::new();
        for (_, _, kind) in &self.nodes {
            match kind {
                ModelEntryKind::Label { target, label: Some(label) } => {
                    drop(labels.insert(target.clone(), label.clone()))
                }
                ModelEntryKind::Label { target, label: None } => drop(labels.remove(target)),
                _ => {}
            }
        }
        labels
    }

    fn name(&self) -> Option<String> {
        let last = self.nodes.iter().rev().find_map(|(_, _, kind)| match kind {
            ModelEntryKind::Name(name) => Some(name.clone()),
            _ => None,
        });
        last.filter(|name| !name.is_empty())
    }

    fn shown(&self) -> Vec<String> {
        let path = self.path(self.leaf.as_ref());
        let in_words = |at: usize| match &self.nodes[at].2 {
            ModelEntryKind::Said(text) => Some(text.clone()),
            ModelEntryKind::Summary => Some("branchSummary".to_owned()),
            _ => None,
        };
        path.into_iter().filter_map(in_words).collect()
    }

    /// Returns the branch up to an entry without labels; those of its entries are repeated at its end, with the ids that the log generated.
    fn branched(&self, leaf: &EntryId, log: &SessionLog) -> Self {
        let mut branch = Self { n_hosts: self.n_hosts, ..Self::default() };
        let path = self.path(Some(leaf));
        for at in &path {
            let (id, _, kind) = &self.nodes[*at];
            if !matches!(kind, ModelEntryKind::Label { .. }) {
                branch.add(id.clone(), kind.clone());
            }
        }
        let labels = self.labels();
        let kept: Vec<(EntryId, String)> =
            branch.nodes.iter().filter_map(|(id, ..)| Some((id.clone(), labels.get(id)?.clone()))).collect();
        let ids: Vec<EntryId> = log.entry_ids().skip(branch.nodes.len()).cloned().collect();
        for ((target, label), id) in kept.into_iter().zip(ids) {
            branch.add(id, ModelEntryKind::Label { target, label: Some(label) });
        }
        branch
    }
}

/// Compares everything observable about a log.
fn compare(log: &SessionLog, model: &TreeModel) -> Result<(), TestCaseError> {
    let parents: Vec<_> = log.entries().map(|entry| (entry.id.clone(), entry.parent_id.clone())).collect();
    let expected: Vec<_> = model.nodes.iter().map(|(id, parent, _)| (id.clone(), parent.clone())).collect();
    prop_assert_eq!(parents, expected);
    prop_assert_eq!(log.leaf_id(), model.leaf.as_ref());
    let labels: BTreeMap<_, _> = log.labels().map(|(id, label)| (id.clone(), label.text.clone())).collect();
    prop_assert_eq!(labels, model.labels());
    prop_assert_eq!(log.name(), model.name());
    let shown: Vec<String> = log
        .context()
        .messages
        .iter()
        .map(|message| match &**message {
            Message::User(user) => user.content.text(""),
            other => other.role().to_owned(),
        })
        .collect();
    prop_assert_eq!(shown, model.shown());
    let branch: Vec<&EntryId> = log.active_branch().ids().collect();
    let path: Vec<&EntryId> = model.path(model.leaf.as_ref()).into_iter().map(|at| &model.nodes[at].0).collect();
    prop_assert_eq!(branch, path);
    let tree = log.tree();
    let places = |of: Option<&EntryId>| -> Vec<usize> {
        (0..model.nodes.len()).filter(|at| model.nodes[*at].1.as_ref() == of).collect()
    };
    prop_assert_eq!(&tree.roots, &places(None));
    for (node, (id, ..)) in tree.nodes.iter().zip(&model.nodes) {
        prop_assert_eq!(&node.id, id);
        let mut by_time = places(Some(id));
        by_time.sort_by_key(|at| log.entry(&model.nodes[*at].0).and_then(|entry| entry.timestamp_ms()));
        prop_assert_eq!(&node.children, &by_time);
        let children: Vec<EntryId> = places(Some(id)).into_iter().map(|at| model.nodes[at].0.clone()).collect();
        prop_assert_eq!(log.children(id), children);
    }
    Ok(())
}

async fn take(step: TreeStep, log: &mut SessionLog, model: &mut TreeModel, dir: &Path) {
    let pick = |at: usize| model.nodes[at % model.nodes.len()].0.clone();
    match step {
        TreeStep::Say(n) => {
            let text = format!("say {n}");
            let id = log.append(user(&text)).await.unwrap();
            model.add(id, ModelEntryKind::Said(text));
        }
        TreeStep::Level => {
            let id = log.append(EntryBody::ThinkingLevelChange { thinking_level: "low".into() }).await.unwrap();
            model.add(id, ModelEntryKind::Other);
        }
        TreeStep::Unknown => {
            let id = log.append(EntryBody::Custom { custom_type: "t".into(), data: None }).await.unwrap();
            model.add(id, ModelEntryKind::Other);
        }
        TreeStep::Name(name) => {
            let id = log.append_name(&name).await.unwrap();
            model.add(id, ModelEntryKind::Name(name.trim().replace('\n', " ")));
        }
        TreeStep::Label(at, label) => {
            let (target, label) = (pick(at), label.map(|n| n.to_string()));
            let id = log.append_label(&target, label.as_deref()).await.unwrap();
            model.add(id, ModelEntryKind::Label { target, label });
        }
        TreeStep::MoveTo(at) => {
            let id = pick(at);
            log.move_to(&id).unwrap();
            model.leaf = Some(id);
        }
        TreeStep::Reset => {
            log.reset_leaf();
            model.leaf = None;
        }
        TreeStep::Summary(at) => {
            let target = at.map(pick);
            let summary = BranchSummary {
                from_id: String::new(),
                summary: "S".into(),
                details: None,
                from_hook: None,
                usage: None,
            };
            let left = log.leaf_id().map_or("root".to_owned(), ToString::to_string);
            let id = log.branch_with_summary(target.as_ref(), summary).await.unwrap();
            assert!(matches!(&log.entry(&id).unwrap().body, EntryBody::BranchSummary(made) if made.from_id == left));
            model.leaf = target;
            model.add(id, ModelEntryKind::Summary);
        }
        TreeStep::Fork => {
            let at = SessionRef::Path(file(log));
            let copy = SessionLog::fork_from(&model.next_host(), store(dir), &at, NewSession::in_directory("/w"))
                .await
                .unwrap();
            assert_eq!(copy.header().parent_session.as_deref(), file(log).to_str());
            *log = copy;
            model.leaf = model.nodes.last().map(|(id, ..)| id.clone());
        }
        TreeStep::Branched(at) => {
            let leaf = pick(at);
            log.create_branched_session(&leaf).await.unwrap();
            *model = model.branched(&leaf, log);
            if !file(log).exists() {
                // The branch has no message, so its file appears with the next one.
                let id = log.append(user("first")).await.unwrap();
                model.add(id, ModelEntryKind::Said("first".into()));
            }
        }
        TreeStep::Reopen => {
            let at = SessionRef::Path(file(log));
            *log = SessionLog::open(&model.next_host(), store(dir), &at, "/w").await.unwrap();
            model.leaf = model.nodes.last().map(|(id, ..)| id.clone());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_matches_its_model(steps in prop::collection::vec(step(), 0..40)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let mut log = create(dir.path()).await;
            let mut model = TreeModel::default();
            let begin = append(&mut log, [user("begin")]).await.remove(0);
            model.add(begin, ModelEntryKind::Said("begin".into()));
            for step in steps {
                take(step, &mut log, &mut model, dir.path()).await;
                compare(&log, &model)?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
