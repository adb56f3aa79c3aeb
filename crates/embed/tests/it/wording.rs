//! Texts for people about a run, and how a host replaces them.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure};
use pinch_embed::run::UsageLine;
use pinch_embed::run::request::Budget;
use pinch_embed::texts::{Phrase, TextTable};
use serde_json::json;

use crate::world::{FALLBACK, World, answer, fallback_answer, payload_texts, refusal, stream, within};

/// A chat that records only notices.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl ReplySink for Notices {
    fn send<'a>(&'a self, _: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn notice<'a>(&'a self, text: &'a str) -> BoxFuture<'a, ()> {
        self.0.lock().unwrap().push(text.to_owned());
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_host_can_replace_every_text_for_people() {
    let world = World::new().await;
    let texts = TextTable::default()
        .replace_all([
            ("error.rate_limit", "Zu viele Anfragen."),
            ("error.next_try", "Wieder in {time}."),
            ("time.minutes", "{n} Minuten"),
        ])
        .unwrap();
    let engine = world.built(|builder| builder.texts(texts));
    let limited = || refusal(429, "rate_limit_error", "Too many requests").header("retry-after", "120");
    world.server.reply(limited()).repeat_last();
    let error = within(engine.run(world.request("s1", "go")).finish()).await.unwrap_err();
    let german = TextTable::default().replace(Phrase::NextTry, "Bald: {time}").unwrap();
    assert!(error.text_for_user(&german).contains("Bald: "), "{}", error.text_for_user(&german));
    let run = within(engine.run(world.request("s2", "go")).deliver(Arc::new(Notices::default()))).await;
    let left: Vec<String> = run.still_to_send().into_iter().map(|payload| payload.reply.text).collect();
    assert!(left.iter().any(|text| text.contains("Wieder in 2 Minuten.")), "{left:?}");
}

#[tokio::test]
async fn failures_without_an_explanation_and_limits_are_worded_by_the_host() {
    let texts = TextTable::default()
        .replace_all([
            ("error.request_failed", "Das ging schief."),
            ("error.provider", "Fehler"),
            ("error.retry_limit", "Zu viele Versuche."),
            ("error.budget", "Schluss: {spent}"),
            ("error.budget_attempts", "{used} von {limit} Versuchen"),
        ])
        .unwrap();
    let world = World::new().await;
    let left = async |config: &serde_json::Value, session: &str, budget: Budget| {
        let engine = world.configured(config).texts(texts.clone()).build();
        let mut request = world.request(session, "go");
        request.budget = budget;
        let run = within(engine.run(request).deliver(Arc::new(Notices::default()))).await;
        run.still_to_send().into_iter().map(|payload| payload.reply.text).collect::<Vec<_>>()
    };
    world.server.reply(refusal(529, "overloaded_error", "busy")).repeat_last();
    let attempts = Budget { attempts: Some(1), ..Budget::default() };
    assert_eq!(left(&world.document(), "s1", attempts).await, ["Schluss: 1 von 1 Versuchen"]);
    let mut once = world.document();
    once["agents"]["defaults"]["runRetries"] = json!({"base": 1, "perProfile": 0, "min": 1, "max": 1});
    assert_eq!(left(&once, "s2", Budget::default()).await, ["Zu viele Versuche."]);
}

#[tokio::test]
async fn an_error_that_the_model_repeats_and_one_before_a_request_are_worded_by_the_host() {
    let world = World::new().await;
    let texts = TextTable::default()
        .replace_all([("error.provider", "Fehler"), ("error.unknown_model", "{name} fehlt.")])
        .unwrap();
    let engine = world.built(|builder| builder.texts(texts));
    let repeated = r#"Codex error: {"type":"error","error":{"type":"server_error","message":"It broke."}}"#;
    world.server.reply(stream(answer("m1", repeated)));
    let result = within(engine.run(world.request("s1", "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Fehler server_error: It broke."]);
    let request = world.request("s2", "go").model("nowhere", "gone");
    let run = within(engine.run(request).deliver(Arc::new(Notices::default()))).await;
    let left: Vec<String> = run.still_to_send().into_iter().map(|payload| payload.reply.text).collect();
    assert_eq!(left, ["nowhere/gone fehlt."]);
}

#[tokio::test]
async fn notices_report_failover_and_token_usage() {
    let world = World::with(|config| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK])).await;
    world.server.answer_with(|request| {
        Some(match request.path.contains("chat/completions") {
            true => stream(fallback_answer("Here.")),
            false => refusal(401, "authentication_error", "no"),
        })
    });
    let chat = Arc::new(Notices::default());
    let request = world.request("s1", "go").usage_line(UsageLine::Tokens);
    let run = within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await;
    assert!(run.result.is_ok(), "{:?}", run.result);
    assert_eq!(*chat.0.lock().unwrap(), ["The model failed. Continuing with local/small.", "Usage: 20 in / 5 out"]);
}
