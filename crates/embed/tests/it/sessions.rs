//! Messages by session key: the session they belong to, and its stored entry.

use pinch_embed::key::Peer;
use pinch_embed::llm::message::Message;
use pinch_embed::ports::Caller;
use pinch_embed::run::RunError;
use pinch_testing::server::Gate;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::world::{FALLBACK, MODEL, World, answer, payload_texts, refusal, stream, within};

const KEY: &str = "agent:main:telegram:direct:42";
const INDEX: &str = "state/agents/main/sessions/sessions.json";

fn index(world: &World) -> Value {
    serde_json::from_slice(&std::fs::read(world.path(INDEX)).unwrap()).unwrap()
}

async fn say(world: &World, key: &str, text: &str) -> String {
    world.server.reply(stream(answer("m", "Yes.")));
    let request = world.engine.message(key, text).await.unwrap();
    let session = request.session_id.clone();
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Yes."]);
    session.to_string()
}

#[tokio::test]
async fn messages_of_one_key_share_a_session_until_a_command_starts_a_new_one() {
    let world = World::new().await;
    let first = say(&world, KEY, "one").await;
    assert_eq!(say(&world, KEY, "two").await, first);
    assert_eq!(world.transcript(&first).messages().len(), 4);
    let other = say(&world, "agent:main:telegram:direct:43", "hello").await;
    assert_ne!(other, first);
    let second = say(&world, KEY, "/new what now?").await;
    assert_ne!(second, first);
    assert_eq!(world.transcript(&second).messages()[0], "user: what now?");
    let greeted = say(&world, KEY, "/reset").await;
    assert!(world.transcript(&greeted).messages()[0].contains("started a new session"));
    // Another engine on the same directory continues the session.
    let request = world.restarted().message(KEY, "three").await.unwrap();
    assert_eq!(request.session_id, greeted);
}

#[tokio::test]
async fn a_run_that_fails_is_recorded_with_what_it_used() {
    let world = World::new().await;
    world.write("workspace/notes.md", "Buy milk.");
    let usage = json!({"input_tokens": 700, "output_tokens": 5});
    let read = AnthropicResponse::with_usage("r", &usage).tool_call("toolu_r", "read", r#"{"path": "notes.md"}"#);
    world.server.reply(stream(read.stop("tool_use")));
    let refused = || refusal(401, "authentication_error", "invalid x-api-key");
    world.server.reply(refused()).reply(refused());
    let request = world.engine.message(KEY, "hello").await.unwrap();
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    let meta = error.meta().unwrap().clone().into_json();
    assert_eq!(meta["agentMeta"]["usage"], json!({"input": 700, "output": 5, "total": 705}));
    assert_eq!((&meta["agentMeta"]["promptTokens"], &meta["replayInvalid"]), (&json!(700), &json!(true)));
    assert_eq!(meta["attempts"].as_array().map(Vec::len), Some(2), "{meta}");
    let index = index(&world);
    let entry = &index[KEY];
    assert_eq!(
        (&entry["inputTokens"], &entry["outputTokens"], &entry["totalTokens"]),
        (&json!(700), &json!(5), &json!(700))
    );
}

#[tokio::test]
async fn the_entry_of_a_key_records_tokens_model_and_route_and_keeps_unknown_members() {
    let world = World::new().await;
    world.write(
        INDEX,
        &json!({KEY: {"sessionId": "s1", "updatedAt": 4_102_444_800_000_i64, "label": "Ada", "future": [1]}, "x": 7})
            .to_string(),
    );
    world.server.reply(stream(answer("m", "Yes.")));
    let mut request = world.engine.message(KEY, "hello").await.unwrap();
    assert_eq!(request.session_id, "s1");
    request = request.caller(Caller::new().channel("telegram").account("bot").thread("7")).message_to("42");
    within(world.engine.run(request).finish()).await.unwrap();
    let index = index(&world);
    let entry = &index[KEY];
    assert_eq!((&entry["label"], &entry["future"], &index["x"]), (&json!("Ada"), &json!([1]), &json!(7)));
    assert_eq!(entry["modelProvider"], "anthropic");
    assert!(entry["totalTokens"].as_u64() > Some(0) && entry["contextTokens"].as_u64() > Some(0), "{entry}");
    assert_eq!(
        entry["deliveryContext"],
        json!({"channel": "telegram", "to": "42", "accountId": "bot", "threadId": "7"})
    );
    assert_eq!(entry["abortedLastRun"], false);
    assert_eq!(entry["authProfileOverride"], "first");
    assert_eq!(entry["authProfileOverrideSource"], "auto");
}

#[tokio::test]
async fn an_idle_session_is_reset_and_keeps_its_settings() {
    let world = World::with(|config| config["session"] = json!({"reset": {"mode": "idle", "idleMinutes": 30}})).await;
    let entry =
        json!({"sessionId": "old", "updatedAt": 1, "modelOverride": FALLBACK, "inputTokens": 9, "skillsSnapshot": {}});
    world.write(INDEX, &json!({KEY: entry}).to_string());
    let request = world.engine.message(KEY, "hello").await.unwrap();
    assert_ne!(request.session_id, "old");
    assert_eq!(request.model.as_deref(), Some(FALLBACK));
    assert_eq!(request.fallbacks.as_deref(), Some(&[][..]), "what the user chose is not replaced");
    let entry = &index(&world)[KEY];
    assert_eq!(entry["sessionId"], request.session_id.as_str());
    assert!(entry.get("inputTokens").is_none() && entry.get("skillsSnapshot").is_none(), "{entry}");
    let again = world.engine.message(KEY, "hello").await.unwrap();
    assert_eq!(again.session_id, request.session_id);
}

#[tokio::test]
async fn a_thread_inherits_the_settings_of_its_conversation_and_a_topic_has_its_own_file() {
    let world = World::new().await;
    let group = "agent:main:telegram:group:-100";
    let set = |entry: Option<_>| {
        let mut entry: pinch_embed::ports::SessionEntry = entry.unwrap_or_default();
        entry.session_id = "group".into();
        entry.updated_at = 1;
        entry.thinking_level = Some("high".to_owned());
        Some(entry)
    };
    world.engine.update_session(group, set).await.unwrap();
    let request = world.engine.message(&format!("{group}:topic:5"), "hello").await.unwrap();
    assert_eq!(request.think_level.map(|level| level.as_str()), Some("high"));
    let file = format!("{}-topic-5.jsonl", request.session_id);
    assert!(format!("{:?}", request.session).contains(&file), "{:?}", request.session);
    let keys: Vec<pinch_embed::ports::SessionKey> = world.engine.sessions("main").await.unwrap().into_keys().collect();
    assert_eq!(keys, [group.to_owned(), format!("{group}:topic:5")]);
}

#[tokio::test]
async fn keys_are_completed_and_malformed_ones_are_refused() {
    let world = World::with(|config| {
        config["session"] = json!({"dmScope": "per-channel-peer", "identityLinks": {"ada": ["telegram:42"]}});
    })
    .await;
    let key =
        |text: &'static str| async { world.engine.message(text, "hello").await.map(|request| request.session_key) };
    assert_eq!(key(" Main ").await.unwrap().as_deref(), Some("agent:main:main"));
    assert_eq!(key("chat").await.unwrap().as_deref(), Some("agent:main:chat"));
    assert_eq!(key("agent:Ops:Chat").await.unwrap().as_deref(), Some("agent:ops:chat"));
    assert!(matches!(key("agent:ops").await, Err(RunError::Config(text)) if text.contains("malformed session key")));
    let peer = Peer { channel: "telegram", account_id: None, kind: "direct", id: "42" };
    assert_eq!(world.engine.session_key(None, &peer), "agent:main:telegram:direct:ada");
}

#[tokio::test]
async fn a_damaged_index_is_reported_and_left_alone() {
    let world = World::new().await;
    world.write(INDEX, "{");
    let error = world.engine.message(KEY, "hello").await.unwrap_err().to_string();
    assert!(error.contains("sessions.json"), "{error}");
    world.write(INDEX, &json!({KEY: {"sessionId": 5}}).to_string());
    let error = world.engine.message(KEY, "hello").await.unwrap_err().to_string();
    assert!(error.contains(KEY), "{error}");
    assert_eq!(index(&world), json!({KEY: {"sessionId": 5}}));
}

#[tokio::test]
async fn a_run_does_not_write_to_the_session_that_replaced_its_own() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(pinch_testing::server::ServerReply::events().gated(&gate, answer("m", "Yes.")));
    let request = world.engine.message(KEY, "one").await.unwrap();
    let run = world.engine.run(request);
    let next = async {
        let next = world.engine.message(KEY, "/new two").await.unwrap();
        gate.open_times(100);
        next
    };
    let (result, next) = within(async { tokio::join!(run.finish(), next) }).await;
    result.unwrap();
    let entry = &index(&world)[KEY];
    assert_eq!(entry["sessionId"], next.session_id.as_str());
    assert!(entry.get("inputTokens").is_none(), "{entry}");
}

#[tokio::test]
async fn session_files_of_other_sessions_are_refused_and_old_names_stay_in_use() {
    let world = World::new().await;
    let header = |id: &str| {
        format!(
            "{}\n",
            json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"})
        )
    };
    world.write("state/agents/main/sessions/____.jsonl", &header("Анна"));
    let file = |id: &str| format!("{:?}", world.engine.request(id, None, None, "hi").session);
    assert!(file("Анна").contains("/____.jsonl"), "{}", file("Анна"));
    assert!(file("Иван").contains("/____-"), "{}", file("Иван"));
    world.write("state/agents/main/sessions/mine.jsonl", &header("theirs"));
    let error = within(world.engine.run(world.engine.request("mine", None, None, "hi")).finish()).await.unwrap_err();
    assert!(error.to_string().contains("is the file of session theirs, not of mine"), "{error}");
}

#[tokio::test]
async fn the_history_of_a_key_is_that_of_its_session_and_a_reset_begins_another() {
    let world = World::new().await;
    let texts = async |key| {
        let messages = world.engine.history(key).await.unwrap();
        let text = |message: &Message| match message {
            Message::User(user) => Some(user.content.text("")),
            Message::Assistant(answer) => Some(answer.text("")),
            _ => None,
        };
        messages.iter().filter_map(|message| text(message)).collect::<Vec<_>>()
    };
    assert_eq!(texts(KEY).await, [""; 0]);
    world.engine.reset_session(KEY).await.unwrap();
    assert!(world.engine.sessions("main").await.unwrap().is_empty(), "lookups create nothing");
    let first = say(&world, KEY, "one").await;
    assert_eq!(texts(KEY).await, ["one", "Yes."]);
    let choose = |entry: Option<pinch_embed::ports::SessionEntry>| {
        entry.map(|mut entry| {
            entry.thinking_level = Some("low".to_owned());
            entry
        })
    };
    world.engine.update_session(KEY, choose).await.unwrap();
    world.engine.reset_session(KEY).await.unwrap();
    assert_eq!(texts(KEY).await, [""; 0]);
    assert_eq!(index(&world)[KEY]["thinkingLevel"], "low", "what the user chose stays");
    assert_ne!(say(&world, KEY, "two").await, first);
    assert_eq!(texts(KEY).await, ["two", "Yes."]);
    assert!(world.engine.history("agent:").await.is_err());
}

#[tokio::test]
async fn the_models_of_an_agent_are_those_with_credentials_that_are_allowed() {
    let world = World::new().await;
    let asked = world.engine.candidates(&world.engine.request("s", None, None, "")).unwrap();
    assert_eq!(asked[0].id.as_str(), MODEL);
    let names = |world: &World| {
        let models = world.engine.models("main");
        models.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect::<Vec<_>>()
    };
    let all = names(&world);
    assert!(all.iter().any(|name| *name == format!("anthropic/{MODEL}")), "{all:?}");
    assert!(!all.iter().any(|name| name.starts_with("openai/")), "{all:?}");
    let limited = World::with(|config| {
        config["agents"]["defaults"]["models"] = json!({format!("anthropic/{MODEL}"): {}});
    })
    .await;
    assert_eq!(names(&limited), [format!("anthropic/{MODEL}")]);
}
