//! Prompt caching: which level of the configuration decides, and which servers are asked for it.

use pinch_llm::request::CacheRetention;
use pinch_testing::wires::responses::ResponsesResponse;
use serde_json::{Value, json};

use crate::world::{World, answer, fallback_answer, stream, within};

/// Runs a prompt and returns the TTL of the cache marker that Anthropic's API gets; `none` without a marker.
async fn ttl(change: impl FnOnce(&mut Value)) -> String {
    let world = World::with(change).await;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.ask("s1", "go").await.unwrap();
    let system = world.server.requests().last().unwrap().json()["system"].clone();
    let marker = system.as_array().and_then(|blocks| blocks.first()).map(|block| block["cache_control"].clone());
    match marker.filter(Value::is_object) {
        Some(marker) => marker["ttl"].as_str().unwrap_or("5m").to_owned(),
        None => "none".to_owned(),
    }
}

#[tokio::test]
async fn the_most_specific_level_decides_how_long_prompts_are_cached() {
    let model = format!("anthropic/{}", crate::world::MODEL);
    let at = |retention: &str| json!({"cacheRetention": retention});
    let of_model = |retention: &str| json!({model.clone(): {"params": at(retention)}});
    assert_eq!(ttl(|_| ()).await, "5m");
    assert_eq!(ttl(|config| config["agents"]["defaults"]["params"] = at("long")).await, "1h");
    let two = |config: &mut Value| {
        config["agents"]["defaults"]["params"] = at("none");
        config["agents"]["defaults"]["models"] = of_model("long");
    };
    assert_eq!(ttl(two).await, "1h");
    let three = |config: &mut Value| {
        two(config);
        config["agents"]["list"] = json!([{"id": "main", "models": of_model("none")}]);
    };
    assert_eq!(ttl(three).await, "none");
    let four = |config: &mut Value| {
        three(config);
        config["agents"]["list"][0]["params"] = at("short");
    };
    assert_eq!(ttl(four).await, "5m");
}

/// Returns the members about caching of a request to a server with OpenAI's format.
async fn members(api: &str, more: Value) -> Value {
    let world = World::with(|config| {
        let local = &mut config["models"]["providers"]["local"];
        local["api"] = json!(api);
        local["models"][0]["compat"] = more;
        config["agents"]["defaults"]["params"] = json!({"cacheRetention": "long"});
    })
    .await;
    world.server.reply(stream(match api {
        "openai-responses" => ResponsesResponse::new("r1", "small").text("Hello.").completed(),
        _ => fallback_answer("Hello."),
    }));
    within(world.engine.run(world.request("s1", "go").model("local", "small")).finish()).await.unwrap();
    let body = world.server.requests().last().unwrap().json();
    let about_cache = body.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("prompt_cache_r"));
    Value::Object(about_cache.map(|(name, value)| (name.clone(), value.clone())).collect())
}

#[tokio::test]
async fn only_servers_that_accept_a_cache_retention_get_it() {
    assert_eq!(members("openai-completions", json!({})).await, json!({}));
    let long = json!({"prompt_cache_retention": "24h"});
    assert_eq!(members("openai-completions", json!({"supportsPromptCacheKey": true})).await, long);
    assert_eq!(members("openai-responses", json!({})).await, long);
}

#[tokio::test]
async fn a_request_overrides_the_configured_cache_retention() {
    let world = World::with(|config| config["agents"]["defaults"]["params"] = json!({"cacheRetention": "long"})).await;
    world.server.reply(stream(answer("m1", "Hello.")));
    let mut request = world.request("s1", "go");
    request.stream_params = request.stream_params.cache_retention(CacheRetention::None);
    within(world.engine.run(request).finish()).await.unwrap();
    assert!(!world.server.requests().last().unwrap().json().to_string().contains("cache_control"));
}
