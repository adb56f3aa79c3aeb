//! Questions of an agent to the person it works for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::engine::Engine;
use pinch_embed::ports::{QuestionBroker, QuestionReply, QuestionRequest};
use pinch_embed::run::request::RunTrigger;
use pinch_stdx::cancel::CancelReason;
use serde_json::{Value, json};

use crate::world::{World, answer, call, stream, within};

/// Answers every question with its first option, or waits until the question is abandoned.
#[derive(Default)]
struct Person {
    waits: bool,
    asked: Mutex<Vec<QuestionRequest>>,
    n_waiting: AtomicUsize,
}

struct PendingAsk<'a>(&'a AtomicUsize);

impl Drop for PendingAsk<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl QuestionBroker for Person {
    fn ask<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>> {
        Box::pin(async move {
            self.n_waiting.fetch_add(1, Ordering::Relaxed);
            let _waiting = PendingAsk(&self.n_waiting);
            self.asked.lock().unwrap().push(request.clone());
            if self.waits {
                std::future::pending::<()>().await;
            }
            let first = request.questions.iter().map(|question| QuestionReply {
                id: question.id.clone(),
                values: vec![question.options[0].label.clone()],
            });
            Some(first.collect())
        })
    }
}

fn question() -> Value {
    let options = json!([{"label": "staging (Recommended)"}, {"label": "production"}]);
    json!({"questions": [{"id": "target", "header": "Target", "question": "Where to?", "options": options}]})
}

fn asking(world: &World, person: &Arc<Person>) -> Engine {
    let broker = Arc::clone(person) as Arc<dyn QuestionBroker>;
    world.built(|builder| builder.builtin_tools(["read"]).questions(broker))
}

fn offered(world: &World) -> Vec<String> {
    let body = world.server.requests().last().unwrap().json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_agent_asks_and_reads_the_answer_in_the_same_turn() {
    let world = World::new().await;
    let person = Arc::new(Person::default());
    let engine = asking(&world, &person);
    world.server.reply(stream(call("c1", "ask_user", &question()))).reply(stream(answer("m1", "Done.")));
    within(engine.run(engine.request("s1", Some("agent:main:main"), None, "Deploy it.")).finish()).await.unwrap();
    let body = world.server.requests().last().unwrap().json();
    let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(result.contains("staging (Recommended)") && result.contains("answered"), "{result}");
    let asked = person.asked.lock().unwrap().remove(0);
    assert_eq!(asked.session_key.as_deref(), Some("agent:main:main"));
    assert_eq!(asked.questions[0].question, "Where to?");
}

#[tokio::test]
async fn only_runs_started_by_a_person_can_ask() {
    let world = World::new().await;
    let person = Arc::new(Person::default());
    let engine = asking(&world, &person);
    for (key, trigger, expect) in [
        ("agent:main:main", RunTrigger::User, &["read", "ask_user"][..]),
        ("agent:main:subagent:1", RunTrigger::User, &["read"]),
        ("agent:main:main", RunTrigger::Cron, &["read"]),
        ("agent:main:main", RunTrigger::Heartbeat, &["read"]),
    ] {
        world.server.reply(stream(answer("m1", "Hello.")));
        let request = engine.request("s1", Some(key), None, "hello").trigger(trigger.clone());
        within(engine.run(request).finish()).await.unwrap();
        assert_eq!(offered(&world), expect, "{key} {trigger:?}");
    }
    // A policy can remove the tool, and without a broker it does not exist.
    let mut document = world.document();
    document["tools"] = json!({"deny": ["ask_user"]});
    let broker = Arc::clone(&person) as Arc<dyn QuestionBroker>;
    let denied = world.configured(&document).builtin_tools(["read"]).questions(broker).build();
    for engine in [denied, world.built(|builder| builder.builtin_tools(["read"]))] {
        world.server.reply(stream(answer("m1", "Hello.")));
        within(engine.run(engine.request("s2", None, None, "hello")).finish()).await.unwrap();
        assert_eq!(offered(&world), ["read"]);
    }
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_run_is_stopped() {
    let world = World::new().await;
    let person = Arc::new(Person { waits: true, ..Person::default() });
    let engine = asking(&world, &person);
    world.server.reply(stream(call("c1", "ask_user", &question())));
    let request = engine.request("s1", None, None, "Deploy it.");
    let cancel = request.cancel.clone();
    let stopping = async {
        while person.asked.lock().unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        cancel.cancel(CancelReason::User);
    };
    let (result, ()) = within(async { tokio::join!(engine.run(request).finish(), stopping) }).await;
    drop(result);
    assert_eq!(person.n_waiting.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_question_without_an_answer_ends_before_the_time_limit_of_its_run() {
    let world = World::new().await;
    let person = Arc::new(Person { waits: true, ..Person::default() });
    let engine = asking(&world, &person);
    world.server.reply(stream(call("c1", "ask_user", &question()))).reply(stream(answer("m1", "Assumed staging.")));
    // A tenth of the remaining time is kept for the answer of the model.
    let limit = std::time::Duration::from_secs(5);
    let request = engine.request("s1", None, None, "Deploy it.").timeout(Some(limit));
    within(engine.run(request).finish()).await.unwrap();
    let body = world.server.requests().last().unwrap().json();
    let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(result.contains("no_answer") && result.contains("time limit of this run"), "{result}");
    assert!(person.asked.lock().unwrap()[0].expires_in < limit);
}
