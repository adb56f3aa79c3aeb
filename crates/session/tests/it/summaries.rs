//! Summaries by a model, and the prompts they send.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pinch_llm::event::{EventStream, Finished, StreamEvent};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::{CallOptions, Request, SystemPrompt};
use pinch_session::compaction::{
    self, CompactError, Compacted, CompactionReason, CompactionSettings, SummaryModel, SummaryPrompt, branch,
    instructions,
};
use pinch_session::session_log::SessionLog;
use pinch_stdx::cancel::Cancel;
use serde_json::{Value, json};

use pinch_testing::logs::{answer, append, create, host, shown, user};

/// Answers with the given stop reasons and texts in order, and records the requests.
struct ScriptedSummaries {
    answers: Mutex<VecDeque<(&'static str, &'static str)>>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedSummaries {
    fn new(answers: &[(&'static str, &'static str)]) -> Self {
        Self { answers: Mutex::new(answers.iter().copied().collect()), asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Provider for ScriptedSummaries {
    fn stream(&self, request: Request, _cancel: Cancel) -> EventStream {
        let text = match &*request.messages[0] {
            Message::User(user) => user.content.text(""),
            other => panic!("{other:?}"),
        };
        assert_eq!(request.system.render(), instructions::SYSTEM);
        self.asked.lock().unwrap().push(text);
        let (stop, text) = self.answers.lock().unwrap().pop_front().unwrap();
        let message = message(&json!({
            "role": "assistant", "content": [{ "type": "text", "text": text }], "stopReason": stop, "timestamp": 1,
            "errorMessage": "503: busy", "usage": { "input": 10, "output": 5, "totalTokens": 15 },
        }));
        let message = message.as_assistant().unwrap().clone();
        let end = StreamEvent::End(Finished { message, error: None });
        EventStream::new(&request.model, 1, futures::stream::iter([end]))
    }
}

fn message(value: &Value) -> Message {
    Message::from_value(value).unwrap()
}

fn request(prompt: SummaryPrompt) -> Request {
    let record = json!({ "id": "m", "api": "anthropic-messages", "provider": "anthropic" });
    Request::new(Model::from_record(&record).unwrap(), vec![Arc::new(Message::user(prompt.text, 1))])
        .with_system(SystemPrompt::text(prompt.system))
        .with_options(CallOptions::default().with_max_tokens(prompt.max_tokens))
        .with_host(host())
}

fn model<'a>(provider: &'a ScriptedSummaries, focus: Option<&str>, context_window: u64) -> SummaryModel<'a> {
    SummaryModel { provider, build: &request, focus: focus.map(str::to_owned), context_window, retry: None }
}

async fn compact(log: &mut SessionLog, model: &SummaryModel<'_>) -> Result<Compacted, CompactError> {
    let settings = CompactionSettings { keep_recent_tokens: 1, reserve_tokens: 100, ..CompactionSettings::default() };
    compaction::compact(log, &settings, model, CompactionReason::Manual, &Cancel::new()).await
}

#[tokio::test]
async fn a_split_turn_sends_two_sequential_requests() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let provider = ScriptedSummaries::new(&[("stop", "HISTORY"), ("stop", "PREFIX")]);
    let made = compact(&mut log, &model(&provider, Some("tests"), 0)).await.unwrap();
    let initial = instructions::INITIAL;
    let prefix = instructions::TURN_PREFIX;
    assert_eq!(
        provider.asked(),
        [
            format!(
                "<conversation>\n[User]: q1\n\n[Assistant]: a1\n</conversation>\n\n{initial}\n\nAdditional focus: tests"
            ),
            format!("# Conversation\n[User]: q2\n\n# Instructions\n{prefix}\n\nAdditional focus: tests"),
        ]
    );
    let split = instructions::SPLIT_SEPARATOR;
    assert_eq!(made.summary, format!("HISTORY{split}PREFIX\n\n<last-user-request>\nq2\n</last-user-request>"));
    assert_eq!(made.usage.map(|usage| usage.total_tokens), Some(30));
}

#[tokio::test]
async fn an_earlier_summary_is_updated_without_the_appended_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q1"), answer("a1", &["f"]), user("q2")]).await;
    let provider = ScriptedSummaries::new(&[("stop", "ONE"), ("stop", "TWO")]);
    let made = compact(&mut log, &model(&provider, None, 0)).await.unwrap();
    assert_eq!(made.summary, "ONE\n\n<read-files>\nf\n</read-files>");
    append(&mut log, [answer("a2", &[]), user("q3")]).await;
    compact(&mut log, &model(&provider, None, 0)).await.unwrap();
    let update = instructions::UPDATE;
    assert_eq!(
        provider.asked()[1],
        format!(
            "<conversation>\n[User]: q2\n\n[Assistant]: a2\n</conversation>\n\n<previous-summary>\nONE\n</previous-summary>\n\n{update}"
        )
    );
    assert_eq!(shown(&log), ["compactionSummary", "user q3"]);
}

#[tokio::test]
async fn a_long_history_is_summarised_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let long = "x".repeat(300);
    append(&mut log, [user(&long), answer("a1", &[]), user(&long), answer("a2", &[]), user("q")]).await;
    let provider = ScriptedSummaries::new(&[("stop", "ONE"), ("stop", "TWO")]);
    let made = compact(&mut log, &model(&provider, None, 200)).await.unwrap();
    let asked = provider.asked();
    assert!(asked[0].ends_with(instructions::INITIAL) && asked[1].ends_with(instructions::UPDATE));
    assert!(asked[1].contains("<previous-summary>\nONE\n</previous-summary>"));
    assert_eq!(made.summary, "TWO");
}

#[tokio::test]
async fn bad_answers_are_never_stored() {
    for (stop, text, expected) in [
        ("error", "", "Summarization failed: 503: busy"),
        ("length", "half", "Summarization failed: the summary reached the output limit"),
        ("stop", " \n", "Summarization failed: the summary is empty"),
        ("aborted", "", "Compaction cancelled"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut log = create(dir.path()).await;
        append(&mut log, [user("q1"), answer("a1", &[]), user("q2")]).await;
        let provider = ScriptedSummaries::new(&[(stop, text)]);
        let error = compact(&mut log, &model(&provider, None, 0)).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(log.entry_ids().len(), 3);
    }
}

#[tokio::test]
async fn an_abandoned_branch_is_summarised() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &["f"])]).await;
    let left = branch::collect(&log, log.leaf_id(), &ids[1]).unwrap();
    assert_eq!(left.common_ancestor.as_ref(), Some(&ids[1]));
    let provider = ScriptedSummaries::new(&[("stop", "BRANCH")]);
    let wanted = branch::BranchInstructions::default();
    let summary = branch::summarise(&left, &model(&provider, None, 0), 100, &wanted, &Cancel::new()).await.unwrap();
    assert!(provider.asked()[0].starts_with("<conversation>\n[User]: q2\n\n"));
    let preamble = instructions::BRANCH_PREAMBLE;
    assert_eq!(summary.summary, format!("{preamble}BRANCH\n\n<read-files>\nf\n</read-files>"));
    log.branch_with_summary(Some(&ids[1]), summary).await.unwrap();
    assert_eq!(shown(&log), ["user q1", "assistant a1", "branchSummary"]);
}
