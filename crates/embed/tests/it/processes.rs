//! Several processes share one agent directory: no marks are lost, and a login is renewed once.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pinch_embed::profiles::{ProfileId, ProfileSources, Profiles};
use pinch_embed::run::FailoverReason;
use pinch_llm::ids::ProviderId;
use pinch_stdx::host::Host;
use pinch_testing::server::{Gate, ServerReply};
use serde_json::{Value, json};

use crate::logins::{in_minutes, logins};
use crate::world::{World, answer, key_of, stream, within};

/// Number of processes.
const N_PROCESSES: usize = 8;
/// Number of marks made by each.
const N_MARKS: usize = 12;
/// Tells a process its directory and its number.
const PLACE: &str = "PINCH_TEST_PROCESS";

/// Starts a test of this program as a separate process.
fn start(test: &str, place: &str) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test]).current_dir(std::env::temp_dir()).env(PLACE, place);
    program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

async fn wait_for(processes: Vec<Child>) {
    for mut process in processes {
        let ended = tokio::task::spawn_blocking(move || process.wait());
        assert!(within(ended).await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn concurrent_processes_that_mark_one_store_lose_nothing() {
    let openai = ProviderId::new("openai");
    if let Some(place) = std::env::var_os(PLACE) {
        let place = place.into_string().unwrap();
        let (path, part) = place.split_once('|').unwrap();
        let sources = ProfileSources { file: Some(path.into()), ..ProfileSources::default() };
        let (profiles, problems) = Profiles::load(Host::builder().build(), sources);
        assert_eq!(problems, []);
        for n in 0..N_MARKS {
            // A separate profile for each process, and one that all processes mark.
            for id in [format!("own-{part}"), "shared".to_owned()] {
                profiles.mark_failure(&ProfileId::new(id), FailoverReason::Overloaded, None, None);
            }
            // Marks made together are written together; these are written one by one.
            if n % 3 == 0 {
                profiles.flush().await;
            }
        }
        profiles.mark_good(&ProfileId::new(format!("good-{part}")), &openai);
        return profiles.flush().await;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth-profiles.json");
    let names = (0..N_PROCESSES).flat_map(|n| [format!("own-{n}"), format!("good-{n}")]).chain(["shared".to_owned()]);
    let profiles: serde_json::Map<String, Value> =
        names.map(|id| (id, json!({"type": "api_key", "provider": "openai", "key": "k"}))).collect();
    let store = json!({"version": 1, "profiles": profiles, "future": [1]});
    pinch_stdx::fs::write_atomic(&path, store.to_string().as_bytes(), pinch_stdx::fs::Access::Private).unwrap();
    let name = "processes::concurrent_processes_that_mark_one_store_lose_nothing";
    wait_for((0..N_PROCESSES).map(|n| start(name, &format!("{}|{n}", path.display()))).collect()).await;
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&written["profiles"], &written["future"]), (&store["profiles"], &store["future"]));
    let stats = &written["usageStats"];
    for n in 0..N_PROCESSES {
        assert_eq!(stats[format!("own-{n}")]["errorCount"], N_MARKS, "{stats}");
        assert!(stats[format!("good-{n}")]["lastUsed"].is_i64(), "{stats}");
    }
    assert_eq!(stats["shared"]["errorCount"], N_PROCESSES * N_MARKS, "{stats}");
}

#[tokio::test]
async fn concurrent_processes_renew_a_login_once() {
    if let Some(place) = std::env::var_os(PLACE) {
        let place = place.into_string().unwrap();
        let (state, url) = place.split_once('|').unwrap();
        let config = json!({
            "agents": {"defaults": {"workspace": format!("{state}/workspace"), "model": "anthropic/claude-sonnet-4-5"}},
            "models": {"providers": {"anthropic": {"baseUrl": url}}},
        });
        let (config, _) =
            pinch_embed::Config::from_document(config.as_object().unwrap().clone(), "pinch.json".as_ref());
        let host = Host::builder().build();
        let builder = pinch_embed::Engine::builder(state).host(host).config(config).logins(Arc::new(logins(url)));
        let engine = builder.build();
        let session = std::process::id().to_string();
        engine.run(engine.request(&session, None, None, "go")).finish().await.unwrap();
        engine.shutdown(Duration::from_secs(5)).await;
        return;
    }
    let world = World::new().await;
    let login =
        json!({"type": "oauth", "provider": "anthropic", "access": "A0", "refresh": "R0", "expires": in_minutes(-1)});
    let store = json!({"version": 1, "profiles": {"anthropic:me": login}});
    world.write("state/agents/main/agent/auth-profiles.json", &store.to_string());
    let gate = Gate::new();
    let held = gate.clone();
    let tokens = json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3_600}).to_string();
    world.server.answer_with(move |request| {
        Some(match request.path.contains("/oauth/token") {
            true => ServerReply::status(200).gated(&held, [tokens.clone()]),
            false => stream(answer("m1", "Here.")),
        })
    });
    let place = format!("{}|{}", world.path("state").display(), world.server.url());
    let processes: Vec<Child> =
        (0..N_PROCESSES).map(|_| start("processes::concurrent_processes_renew_a_login_once", &place)).collect();
    within(world.server.wait_for_requests(1)).await;
    gate.open_times(1);
    wait_for(processes).await;
    let requests = world.server.requests();
    let (renewals, calls): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| request.path.contains("/oauth/token"));
    assert_eq!((renewals.len(), calls.len()), (1, N_PROCESSES));
    assert!(calls.iter().all(|call| key_of(call) == "A1"));
}
