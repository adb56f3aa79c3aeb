//! `ask_user`: asks a person to make a decision and waits for the answer.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_ports::{QuestionBroker, QuestionOption, QuestionReply, QuestionRequest, SessionKey, UserQuestion};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::waiting::time_to_wait;

/// The name of the tool.
pub const ASK_USER: &str = "ask_user";

/// Maximum questions per call.
const MAX_QUESTIONS: usize = 3;
/// Minimum and maximum number of options per question.
const OPTIONS: (usize, usize) = (2, 4);
/// Maximum characters of a header.
const MAX_HEADER: usize = 12;
/// Default, minimum and maximum number of seconds to wait for an answer.
const USUAL_SECS: f64 = 900.0;
const SECS: (f64, f64) = (30.0, 3600.0);

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let option = json!({
        "type": "object",
        "required": ["label"],
        "properties": {
            "label": {"type": "string", "description": "The answer; mark the recommended one with (Recommended) and put it first"},
            "description": {"type": "string", "description": "What it means"},
        },
    });
    let question = json!({
        "type": "object",
        "required": ["id", "header", "question", "options"],
        "properties": {
            "id": {"type": "string", "description": "Key of the answer, in snake_case"},
            "header": {"type": "string", "description": "Label of at most 12 characters"},
            "question": {"type": "string", "description": "One sentence"},
            "options": {"type": "array", "items": option, "description": "2 to 4 answers; an answer of the user's own is always possible, so do not add \"Other\""},
            "multiSelect": {"type": "boolean", "description": "Several options may be chosen"},
        },
    });
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["questions"],
        "properties": {
            "questions": {"type": "array", "items": question, "description": "1 to 3 questions; prefer one"},
            "timeoutSeconds": {"type": "number", "description": "How long to wait (30 to 3600, usually 900)"},
        },
    }))
    .lenient();
    let about = "Asks the user one to three questions and waits for the answers. Only for decisions that are the user's and that block you; \
                 not to confirm what was asked for, nor for what can be found out. Without an answer (no_answer), go on as you think best.";
    ToolSpec::new(ASK_USER, about, parameters)
});

/// The `ask_user` tool.
pub struct AskUserTool {
    broker: Arc<dyn QuestionBroker>,
    session_key: Option<SessionKey>,
}

impl AskUserTool {
    /// Creates a tool that asks through this broker on behalf of a session.
    pub fn new(broker: Arc<dyn QuestionBroker>, session_key: Option<SessionKey>) -> Self {
        Self { broker, session_key }
    }

    async fn ask(&self, input: &JsonObject, cx: &ToolCx<'_>) -> Result<ToolOutput, ToolError> {
        cx.cancel.check().map_err(|_| ToolError::aborted())?;
        let questions = questions(input).map_err(ToolError::new)?;
        let secs = input.get("timeoutSeconds").and_then(Value::as_f64).unwrap_or(USUAL_SECS).clamp(SECS.0, SECS.1);
        let wanted = Duration::from_secs_f64(secs);
        let limit = time_to_wait(cx.cancel, wanted);
        let mut request = QuestionRequest::new(questions, limit);
        request.session_key.clone_from(&self.session_key);
        let asked_at = Instant::now();
        let asked = tokio::time::timeout(limit, self.broker.ask(&request));
        let replies = cx.cancel.run(asked).await.map_err(|_| ToolError::aborted())?;
        let result = match replies.ok().flatten() {
            Some(replies) => {
                json!({"status": "answered", "answers": {"answers": answers(&request.questions, &replies)}})
            }
            None if limit < wanted && asked_at.elapsed() >= limit => {
                json!({"status": "no_answer", "note": shortened(limit, wanted)})
            }
            None => json!({"status": "no_answer"}),
        };
        let text = serde_json::to_string_pretty(&result).unwrap_or_default();
        Ok(ToolOutput { details: Some(result), ..ToolOutput::text(text) })
    }
}

/// Explains why the wait was shorter than requested.
fn shortened(limit: Duration, wanted: Duration) -> String {
    let (limit, wanted) = (limit.as_secs(), wanted.as_secs());
    format!(
        "The question was open for at most {limit} seconds instead of {wanted}, because the time limit of this run does not allow more. Finish \
         soon."
    )
}

/// Parses the questions of a call. The error describes what is wrong.
fn questions(input: &JsonObject) -> Result<Vec<UserQuestion>, String> {
    let given = input.get("questions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if !(1..=MAX_QUESTIONS).contains(&given.len()) {
        return Err(format!("Ask 1 to {MAX_QUESTIONS} questions, not {}.", given.len()));
    }
    let mut questions: Vec<UserQuestion> = Vec::new();
    for (at, value) in given.iter().enumerate() {
        let text = |value: &Value, key: &str| value[key].as_str().map(str::trim).unwrap_or_default().to_owned();
        let n = at + 1;
        let mut question = UserQuestion::default();
        (question.id, question.question) = (text(value, "id"), text(value, "question"));
        question.header = text(value, "header").chars().take(MAX_HEADER).collect();
        question.is_multiple = value["multiSelect"] == true;
        if question.id.is_empty() || question.question.is_empty() {
            return Err(format!("Question {n} needs an id and a question."));
        }
        if questions.iter().any(|other| other.id == question.id) {
            return Err(format!("Two questions have the id {}.", question.id));
        }
        for value in value["options"].as_array().into_iter().flatten() {
            let mut option = QuestionOption::default();
            option.label = value.as_str().map_or_else(|| text(value, "label"), |label| label.trim().to_owned());
            option.description = Some(text(value, "description")).filter(|text| !text.is_empty());
            // A free-form answer is always possible.
            let is_other = option.label.eq_ignore_ascii_case("other");
            let is_known = question.options.iter().any(|known| known.label == option.label);
            if !(option.label.is_empty() || is_other || is_known) {
                question.options.push(option);
            }
        }
        if !(OPTIONS.0..=OPTIONS.1).contains(&question.options.len()) {
            let (least, most) = OPTIONS;
            return Err(format!("Question {n} needs {least} to {most} different options, apart from \"Other\"."));
        }
        questions.push(question);
    }
    Ok(questions)
}

/// Returns the answers by question id. Unanswered questions have an empty list.
fn answers(questions: &[UserQuestion], replies: &[QuestionReply]) -> Map<String, Value> {
    let answer = |question: &UserQuestion| {
        let reply = replies.iter().find(|reply| reply.id == question.id);
        let n = if question.is_multiple { usize::MAX } else { 1 };
        let values = reply.map(|reply| reply.values.iter().take(n).cloned().collect::<Vec<_>>());
        (question.id.clone(), values.unwrap_or_default().into())
    };
    questions.iter().map(answer).collect()
}

impl Tool for AskUserTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.ask(&input, cx).await })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use pinch_agent_core::tool::Progress;
    use pinch_stdx::cancel::{Cancel, CancelReason, Deadline};
    use pinch_stdx::host::Host;

    use super::*;

    /// Answers with these values, or never; records the questions and whether they were withdrawn.
    #[derive(Default)]
    struct ScriptedPerson {
        values: Option<Vec<QuestionReply>>,
        waits: bool,
        asked: Mutex<Vec<QuestionRequest>>,
        is_withdrawn: AtomicBool,
    }

    struct Withdrawal<'a>(&'a AtomicBool);

    impl Drop for Withdrawal<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl QuestionBroker for ScriptedPerson {
        fn ask<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>> {
            self.asked.lock().unwrap().push(request.clone());
            Box::pin(async {
                if self.waits {
                    let _withdrawal = Withdrawal(&self.is_withdrawn);
                    std::future::pending::<()>().await;
                }
                self.values.clone()
            })
        }
    }

    async fn call(broker: &Arc<ScriptedPerson>, input: Value, cancel: &Cancel) -> Result<Value, String> {
        let (host, progress) = (Host::system(), Progress::ignored());
        let cx = ToolCx { call: &"call-1".into(), cancel, progress: &progress, host: &host };
        let tool = AskUserTool::new(Arc::clone(broker) as Arc<dyn QuestionBroker>, Some("agent:main:main".into()));
        let output = tool.run(input.as_object().unwrap().clone(), &cx).await.map_err(|error| error.text)?;
        assert_eq!(output.content[0].as_text().unwrap(), serde_json::to_string_pretty(&output.details).unwrap());
        Ok(output.details.unwrap())
    }

    fn question(id: &str, options: Value) -> Value {
        json!({"id": id, "header": "A header that is long", "question": "Where to?", "options": options})
    }

    #[tokio::test]
    async fn answers_are_keyed_by_question_id() {
        let reply = |id: &str, values: &[&str]| QuestionReply {
            id: id.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let values = Some(vec![reply("many", &["a", "b"]), reply("one", &["mine", "more"]), reply("alien", &["x"])]);
        let broker = Arc::new(ScriptedPerson { values, ..ScriptedPerson::default() });
        let mut many = question("many", json!([{"label": "a"}, {"label": "b", "description": "B"}]));
        many["multiSelect"] = true.into();
        let input = json!({"questions": [many, question("one", json!(["x", "y", "Other"])), question("none", json!(["x", "y"]))]});
        let result = call(&broker, input, &Cancel::new()).await.unwrap();
        let expect = json!({"many": ["a", "b"], "one": ["mine"], "none": []});
        assert_eq!(result, json!({"status": "answered", "answers": {"answers": expect}}));
        let asked = broker.asked.lock().unwrap().remove(0);
        assert_eq!((asked.questions[1].options.len(), asked.questions[1].header.as_str()), (2, "A header tha"));
        assert_eq!(
            (asked.expires_in, asked.session_key.as_deref()),
            (Duration::from_secs(900), Some("agent:main:main"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_and_cancelled_questions_are_withdrawn() {
        let input = json!({"questions": [question("q", json!(["x", "y"]))], "timeoutSeconds": 1});
        let broker = Arc::new(ScriptedPerson { waits: true, ..ScriptedPerson::default() });
        let begun = tokio::time::Instant::now();
        assert_eq!(call(&broker, input.clone(), &Cancel::new()).await.unwrap(), json!({"status": "no_answer"}));
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
        assert!(broker.is_withdrawn.load(Ordering::Relaxed));
        let skipped = Arc::new(ScriptedPerson::default());
        assert_eq!(call(&skipped, input.clone(), &Cancel::new()).await.unwrap(), json!({"status": "no_answer"}));
        let (broker, cancel) = (Arc::new(ScriptedPerson { waits: true, ..ScriptedPerson::default() }), Cancel::new());
        let aborting = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel(CancelReason::User);
        };
        let (result, ()) = tokio::join!(call(&broker, input, &cancel), aborting);
        assert_eq!(result, Err(ToolError::aborted().text));
        assert!(broker.is_withdrawn.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_declined_question_has_no_note_about_time() {
        let input = json!({"questions": [question("q", json!(["x", "y"]))], "timeoutSeconds": 900});
        let declining = Arc::new(ScriptedPerson::default());
        let cancel = Cancel::new().child_until(Deadline::after(Duration::from_secs(600)));
        assert_eq!(call(&declining, input, &cancel).await.unwrap(), json!({"status": "no_answer"}));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_ends_before_the_time_limit_of_its_run() {
        let input = json!({"questions": [question("q", json!(["x", "y"]))], "timeoutSeconds": 900});
        for (left, waits) in [(600, 540), (100, 90), (3000, 900), (10, 9), (0, 0)] {
            let broker = Arc::new(ScriptedPerson { waits: true, ..ScriptedPerson::default() });
            let cancel = Cancel::new().child_until(Deadline::after(Duration::from_secs(left)));
            let begun = tokio::time::Instant::now();
            let result = call(&broker, input.clone(), &cancel).await;
            if left == 0 {
                assert_eq!(result, Err(ToolError::aborted().text));
                continue;
            }
            let result = result.unwrap();
            assert_eq!((begun.elapsed(), &result["status"]), (Duration::from_secs(waits), &json!("no_answer")));
            let note = result["note"].as_str().unwrap_or_default();
            let expect = format!("The question was open for at most {waits} seconds instead of 900");
            assert_eq!(note.starts_with(&expect), waits < 900, "{note}");
            assert_eq!(broker.asked.lock().unwrap()[0].expires_in, Duration::from_secs(waits));
            assert!(broker.is_withdrawn.load(Ordering::Relaxed) && !cancel.is_cancelled());
        }
    }

    #[tokio::test]
    async fn invalid_questions_are_rejected_without_asking() {
        let broker = Arc::new(ScriptedPerson::default());
        for (questions, expect) in [
            (json!([]), "Ask 1 to 3 questions, not 0."),
            (json!(vec![question("q", json!(["x", "y"])); 4]), "Ask 1 to 3 questions, not 4."),
            (json!([question("", json!(["x", "y"]))]), "Question 1 needs an id and a question."),
            (json!([question("q", json!(["x", "Other"]))]), "Question 1 needs 2 to 4 different options"),
            (json!([question("q", json!(["x", "x"]))]), "Question 1 needs 2 to 4 different options"),
            (json!([question("q", json!(["1", "2", "3", "4", "5"]))]), "Question 1 needs 2 to 4 different options"),
            (json!(vec![question("q", json!(["x", "y"])); 2]), "Two questions have the id q."),
        ] {
            let error = call(&broker, json!({"questions": questions}), &Cancel::new()).await.unwrap_err();
            assert!(error.starts_with(expect), "{error}");
        }
        assert!(broker.asked.lock().unwrap().is_empty());
    }
}
