//! Logins of profiles: renewed before they expire and when they are refused, only once, and never lost.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_coding_agent::auth::Logins;
use pinch_embed::engine::Engine;
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::oauth::transport::{HttpTransport, OAuthResponse};
use pinch_llm::oauth::{OAuthRegistry, OAuthTransport};
use pinch_stdx::host::{Env, Host};
use pinch_testing::server::{Gate, Recorded, ServerReply};
use serde_json::{Value, json};

use crate::world::{World, answer, attempts, key_of, payload_texts, refusal, stream, within};

const STORE: &str = "state/agents/main/agent/auth-profiles.json";

/// Redirects all requests to one server.
struct Rewired {
    server: String,
    network: HttpTransport,
}

impl OAuthTransport for Rewired {
    fn send(&self, mut request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        request.url = request.url.replacen("https:/", &self.server, 1);
        self.network.send(request)
    }
}

pub(crate) fn logins(server: &str) -> Logins {
    let network = HttpTransport::new(Arc::new(HttpClient::new()), Env::default());
    Logins::new(OAuthRegistry::built_in(), Arc::new(Rewired { server: server.to_owned(), network }))
}

pub(crate) fn in_minutes(minutes: i64) -> i64 {
    Host::builder().build().now_ms() + minutes * 60_000
}

/// Creates a world without a configured key, whose store has a login that expires this soon.
async fn with_login(minutes: i64) -> World {
    let world = World::with(|config| config["auth"] = json!({})).await;
    write_login(&world, "A0", "R0", minutes);
    world
}

fn write_login(world: &World, access: &str, refresh: &str, minutes: i64) {
    let login = json!({"type": "oauth", "provider": "anthropic", "access": access, "refresh": refresh,
        "expires": in_minutes(minutes), "email": "a@b.c", "mine": 1});
    let other = json!({"type": "api_key", "provider": "openai", "key": "k"});
    let store = json!({"version": 1, "future": 7, "profiles": {"anthropic:me": login, "openai:x": other}});
    world.write(STORE, &store.to_string());
}

fn engine(world: &World) -> Engine {
    world.built(|builder| builder.logins(logins(&world.server.url())))
}

fn is_refresh(request: &Recorded) -> bool {
    request.path.contains("/oauth/token")
}

fn renewed() -> ServerReply {
    ServerReply::json(200, &json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3600}))
}

/// Answers refreshes with the first new login, and model requests unless they carry a refused access token.
fn serve(world: &World, refused: &'static str) {
    world.server.answer_with(move |request| {
        Some(match request {
            request if is_refresh(request) => renewed(),
            _ if key_of(request) == refused => refusal(401, "authentication_error", "OAuth token has been revoked"),
            _ => stream(answer("m1", "Here.")),
        })
    });
}

fn store(world: &World) -> Value {
    serde_json::from_slice(&std::fs::read(world.path(STORE)).unwrap()).unwrap()
}

fn n_refreshes(world: &World) -> usize {
    world.server.requests().iter().filter(|request| is_refresh(request)).count()
}

#[tokio::test]
async fn an_expired_login_is_renewed_once_and_stored_before_use() {
    let world = with_login(-1).await;
    serve(&world, "A0");
    // Two engines stand in for two processes: each has its own profiles, logins and locks.
    let (one, two) = (engine(&world), engine(&world));
    let runs = [(&one, "s1"), (&one, "s2"), (&two, "s3"), (&two, "s4")]
        .map(|(engine, id)| engine.run(engine.request(id, None, None, "go")).finish());
    for result in within(futures::future::join_all(runs)).await {
        let result = result.unwrap();
        assert_eq!(payload_texts(&result), ["Here."]);
        assert_eq!(attempts(&result), ["anthropic:me anthropic/claude-sonnet-4-5 ok finish"]);
    }
    assert_eq!(n_refreshes(&world), 1);
    one.shutdown(Duration::from_secs(1)).await;
    two.shutdown(Duration::from_secs(1)).await;
    let store = store(&world);
    let login = &store["profiles"]["anthropic:me"];
    assert_eq!((&login["access"], &login["refresh"]), (&json!("A1"), &json!("R1")));
    assert_eq!(
        (&login["email"], &login["mine"], &login["provider"]),
        (&json!("a@b.c"), &json!(1), &json!("anthropic"))
    );
    assert_eq!((&store["future"], &store["profiles"]["openai:x"]["key"]), (&json!(7), &json!("k")));
    assert_eq!(store["usageStats"]["anthropic:me"]["errorCount"], 0);
}

#[tokio::test]
async fn a_login_is_renewed_before_it_expires() {
    let world = with_login(2).await;
    serve(&world, "none");
    let engine = engine(&world);
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    assert_eq!(n_refreshes(&world), 1);
    assert_eq!(world.keys().last().map(String::as_str), Some("A1"));
}

#[tokio::test]
async fn a_refused_login_is_renewed_and_the_same_profile_retried() {
    let world = with_login(60).await;
    serve(&world, "A0");
    let engine = engine(&world);
    let result = within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    let steps = attempts(&result);
    assert!(steps.iter().all(|step| step.starts_with("anthropic:me ")) && steps.len() == 2, "{steps:?}");
    engine.shutdown(Duration::from_secs(1)).await;
    assert_eq!(store(&world)["usageStats"]["anthropic:me"]["errorCount"], 0);
    let prompts = world.transcript("s1").messages().iter().filter(|line| *line == "user: go").count();
    assert_eq!(prompts, 1);
}

#[tokio::test]
async fn a_login_refused_again_after_renewal_is_a_failure_of_its_profile() {
    let world = with_login(60).await;
    world.server.answer_with(|request| {
        Some(if is_refresh(request) { renewed() } else { refusal(401, "authentication_error", "invalid bearer token") })
    });
    let engine = engine(&world);
    let result = within(engine.run(engine.request("s1", None, None, "go")).finish()).await;
    assert_eq!(n_refreshes(&world), 1, "{result:?}");
    engine.shutdown(Duration::from_secs(1)).await;
    assert_eq!(store(&world)["usageStats"]["anthropic:me"]["errorCount"], 1);
}

#[tokio::test]
async fn a_login_stored_by_another_process_is_used_by_the_next_attempt() {
    let world = with_login(60).await;
    serve(&world, "A0");
    let engine = engine(&world);
    write_login(&world, "A9", "R9", 60);
    let result = within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    assert_eq!(world.keys(), ["A9"]);
    assert_eq!(n_refreshes(&world), 0);
}

#[tokio::test]
async fn a_refresh_outlives_the_run_that_started_it() {
    let world = with_login(-1).await;
    let gate = Gate::new();
    let held = gate.clone();
    let text = json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3600}).to_string();
    world
        .server
        .answer_with(move |request| is_refresh(request).then(|| ServerReply::status(200).gated(&held, [text.clone()])));
    let engine = engine(&world);
    let mut run = engine.run(engine.request("s1", None, None, "go"));
    let pulled = async { while run.next().await.is_some() {} };
    let asked = async { world.server.wait_for_requests(1).await };
    tokio::select! {
        () = pulled => panic!("the run ended before the refresh"),
        () = within(asked) => {}
    }
    drop(run);
    gate.open_times(8);
    within(engine.shutdown(Duration::from_secs(1))).await;
    assert_eq!(store(&world)["profiles"]["anthropic:me"]["refresh"], "R1");
}

#[tokio::test]
async fn a_copied_login_that_cannot_be_renewed_falls_back_to_the_original() {
    let world = with_login(60).await;
    let dead = json!({"type": "oauth", "provider": "anthropic", "access": "X0", "refresh": "used-up", "expires": in_minutes(-1)});
    let copy = json!({"version": 1, "profiles": {"anthropic:me": dead}});
    world.write("state/agents/ops/agent/auth-profiles.json", &copy.to_string());
    world.server.answer_with(|request| {
        Some(match is_refresh(request) {
            true => ServerReply::json(400, &json!({"error": "invalid_grant"})),
            false => stream(answer("m1", "Here.")),
        })
    });
    let engine = engine(&world);
    let result = within(engine.run(engine.request("s1", None, Some("ops"), "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    assert_eq!(world.keys().last().map(String::as_str), Some("A0"));
}

#[tokio::test]
async fn logins_are_stored_where_the_agent_reads_them() {
    let world = World::with(|config| config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops"}])).await;
    assert_eq!(world.engine.login_dir("ops"), world.path("state/agent"), "by default, all share one");
    world.write("state/agents/main/agent/auth.json", "{}");
    assert_eq!(world.engine.login_dir("ops"), world.path("state/agents/main/agent"));
    world.write("state/agents/ops/agent/auth.json", "{}");
    let engine = world.restarted();
    assert_eq!(engine.login_dir("ops"), world.path("state/agents/ops/agent"));
    assert_eq!(engine.login_dir("main"), world.path("state/agents/main/agent"));
}
