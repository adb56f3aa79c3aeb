//! The whole preparation: which rules ask for which step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::super::{answer, call, read, result, user};
use super::{check, said};
use crate::message::Message;
use crate::model::transcript::TranscriptRules;
use crate::normalise::history::{RequestFacts, prepare, sanitised};

fn prepared(rules: TranscriptRules) -> impl Fn(&[Arc<Message>]) -> Vec<Arc<Message>> {
    move |messages| prepare(messages, &rules, RequestFacts::default())
}

fn note() -> Value {
    json!({"role": "note", "content": "for programs"})
}

#[test]
fn messages_for_programs_stay_in_the_history_and_are_not_sent() {
    let messages = [user("a"), note(), answer("m", "stop", json!([said("b")]))];
    check(prepared(TranscriptRules::default()), &messages, &["user: \"a\"", "assistant: b"]);
    let history = |messages: &[Arc<Message>]| sanitised(messages, &TranscriptRules::default(), RequestFacts::default());
    check(history, &messages, &["user: \"a\"", "note: \"for programs\"", "assistant: b"]);
}

#[test]
fn either_rule_about_the_start_gives_a_request_a_user_message() {
    let hello = answer("m", "stop", json!([said("hello")]));
    let none = TranscriptRules::default();
    let either = [
        TranscriptRules { user_first: true, ..none.clone() },
        TranscriptRules { opens_with_user: true, ..none.clone() },
    ];
    for rules in either {
        // The history may begin with a message that is not sent.
        for messages in [&[hello.clone()][..], &[note(), hello.clone()]] {
            check(prepared(rules.clone()), messages, &["user: \"(session bootstrap)\"", "assistant: hello"]);
        }
    }
    check(prepared(none), &[hello], &["assistant: hello"]);
}

#[test]
fn calls_without_results_go_where_user_messages_are_merged_and_results_added() {
    let messages = [answer("m", "toolUse", json!([said("a"), call("x")])), user("stop")];
    for (merge_users, synthetic_results, expect) in
        [(true, true, "assistant: a"), (true, false, "assistant: a [x read]"), (false, true, "assistant: a [x read]")]
    {
        let rules = TranscriptRules { merge_users, synthetic_results, ..TranscriptRules::default() };
        check(prepared(rules), &messages, &[expect, "user: \"stop\""]);
    }
}

#[test]
fn messages_are_merged_where_the_rules_say_so() {
    let messages = [
        user("a"),
        user("b"),
        answer("m", "stop", json!([said("c")])),
        note(),
        answer("m", "stop", json!([said("d")])),
    ];
    let none = TranscriptRules::default();
    check(prepared(none.clone()), &messages, &["user: \"a\"", "user: \"b\"", "assistant: c", "assistant: d"]);
    let users = TranscriptRules { merge_users: true, ..none.clone() };
    check(prepared(users), &messages, &["user: a b", "assistant: c", "assistant: d"]);
    let answers = TranscriptRules { merge_answers: true, ..none };
    check(prepared(answers), &messages, &["user: \"a\"", "user: \"b\"", "assistant: c d"]);
}

#[test]
fn answers_at_the_end_go_only_while_the_model_thinks() {
    let messages = [user("a"), answer("m", "stop", json!([said("b")]))];
    for (no_prefill, thinking, n_left) in [(true, true, 1), (true, false, 2), (false, true, 2)] {
        let rules = TranscriptRules { no_prefill, ..TranscriptRules::default() };
        let facts = RequestFacts { thinking, ..RequestFacts::default() };
        assert_eq!(prepare(&read(&messages), &rules, facts).len(), n_left, "{no_prefill} {thinking}");
    }
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Subscriber for Counter {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn every_kind_of_repair_is_logged() {
    let rules = TranscriptRules { pair_results: true, synthetic_results: true, ..TranscriptRules::default() };
    let n_logged = |messages: &[Value]| {
        let counter = Counter::default();
        let _ = tracing::subscriber::with_default(counter.clone(), || {
            sanitised(&read(messages), &rules, RequestFacts::default())
        });
        counter.0.load(Ordering::Relaxed)
    };
    let calls = answer("m", "toolUse", json!([call("x")]));
    let whole = [calls.clone(), result("x", "r")];
    assert_eq!(n_logged(&whole), 0);
    assert_eq!(n_logged(&[calls]), 1, "a missing result");
    assert_eq!(n_logged(&[&whole[..], &[result("x", "again")]].concat()), 1, "a second result");
    assert_eq!(n_logged(&[&whole[..], &[result("y", "r")]].concat()), 1, "a result without a call");
}
