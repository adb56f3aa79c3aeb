use pinch_agent_core::tool::{FnTool, JsonObject, ToolError, ToolSpec};
use pinch_llm::schema::Schema;
use proptest::prelude::*;

use super::*;

fn tool(name: &str, about: &str, schema: Value) -> Arc<dyn Tool> {
    let spec = ToolSpec::new(name, about, Schema::new(schema));
    Arc::new(FnTool::new(spec, |_: JsonObject, _| async { Ok::<_, ToolError>("done") }))
}

fn catalog(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> ToolCatalog {
    ToolCatalog::new(tools.into_iter().collect(), ToolSet::new(), ["read".to_owned()])
}

fn plain(name: &str, about: &str) -> Arc<dyn Tool> {
    tool(name, about, json!({"type": "object"}))
}

fn ids(reply: &CatalogReply, at: usize) -> Vec<&str> {
    let hits = reply.details["queries"][at]["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect()
}

#[test]
fn a_hit_has_an_id_and_one_line() {
    let weather = tool("weather", "\n Returns the forecast.\nFor a city.", json!({"properties": {"city": {}}}));
    let catalog = catalog([weather, plain("mail", "")]);
    let reply = catalog.search(&["city"], None);
    let expect = "- weather: Returns the forecast.\nCall a tool with tool_call. Its parameters: tool_describe.";
    assert_eq!(reply.text, expect);
    assert!(catalog.search(&["mail"], None).text.starts_with("- mail\n"));
}

#[test]
fn a_query_without_hits_says_what_to_try() {
    let catalog = catalog([plain("weather", "Returns the forecast")]);
    let reply = catalog.search(&["spaceship", "weather"], None);
    assert!(reply.text.starts_with("\"spaceship\":\nNo tool matches. Try other words"), "{}", reply.text);
    assert_eq!((ids(&reply, 0), ids(&reply, 1)), (vec![], vec!["weather"]));
}

#[test]
fn a_long_reply_is_cut_between_hits_and_says_so() {
    let about = format!("run {}", "x".repeat(400));
    let catalog = catalog((0..60).map(|n| plain(&format!("run_{n:02}_{}", "y".repeat(100)), &about)));
    let reply = catalog.search(&["run"], Some(20));
    let n = reply.text.lines().filter(|line| line.starts_with("- run_")).count();
    assert!((10..20).contains(&n) && reply.text.contains(&format!("({} more left out", 20 - n)), "{}", reply.text);
    assert!(reply.text.lines().filter(|line| line.starts_with("- ")).all(|line| line.ends_with('…')));
    let all: Vec<String> = (0..16).map(|n| format!("run {n}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let reply = catalog.search(&all, Some(20));
    let n: usize = (0..16).map(|at| ids(&reply, at).len()).sum();
    assert!((0..16).all(|at| !ids(&reply, at).is_empty()), "every query gets a share");
    assert!(n <= MAX_CANDIDATES && reply.text.chars().count() <= MAX_REPLY);
}

#[test]
fn a_description_has_the_schema_and_says_what_is_cut() {
    let many: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("property_{n}"), json!({"type": "string"}))).collect();
    let catalog = catalog([
        tool("weather", "Returns the forecast.\nFor a city.", json!({"properties": {"city": {"type": "string"}}})),
        tool("large", &"é".repeat(MAX_DESCRIPTION + 1), json!({"properties": many})),
        plain("second", &"x".repeat(MAX_DESCRIPTION)),
    ]);
    let reply = catalog.describe(&["weather"]).unwrap();
    let expect = "weather\nReturns the forecast.\nFor a city.\nJSON schema of args: {\"properties\":{\"city\":{\"type\":\"string\"}}}";
    assert_eq!(reply.text, expect);
    let reply = catalog.describe(&["large", "second"]).unwrap();
    assert!(
        reply.text.contains("(The description is longer") && reply.text.contains("(too long; this is its beginning)")
    );
    assert!(reply.text.ends_with("(1 of the tools left out; ask for fewer at once)"), "{}", reply.text.len());
    assert!(reply.text.chars().count() <= MAX_DESCRIBED);
    assert_eq!(reply.details, json!({"described": ["large"], "leftOut": ["second"]}));
}

#[test]
fn an_unknown_id_names_similar_tools_and_the_way_to_find_others() {
    let catalog = catalog([plain("weather_get", ""), plain("weather_set", ""), plain("mail", "")]);
    let error = catalog.describe(&["Weather_Gte"]).unwrap_err();
    let expect = "Unknown tool: \"Weather_Gte\". Similar: weather_get, weather_set. Find tools with tool_search";
    assert_eq!(error, expect);
    assert_eq!(catalog.unknown("zzz"), "Unknown tool: \"zzz\". Find tools with tool_search");
    assert_eq!(catalog.unknown(" read "), "read is called directly by its name, not through tool_call");
    assert!(catalog.unknown(&"z".repeat(1 << 20)).len() < 200);
}

proptest! {
    #[test]
    fn every_reply_is_within_its_limits(
        tools in proptest::collection::btree_map("[a-zé天]{1,40}", ".{0,300}", 0..40),
        queries in proptest::collection::vec("[a-zé天 ]{0,60}", 1..16),
        limit in proptest::option::of(0_usize..100),
    ) {
        let catalog = catalog(tools.iter().map(|(name, about)| plain(name, about)));
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let reply = catalog.search(&queries, limit);
        prop_assert!(reply.text.chars().count() <= MAX_REPLY);
        for (at, query) in queries.iter().enumerate() {
            let found = ids(&reply, at);
            prop_assert!(found.len() <= limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT));
            let best: Vec<&str> = catalog.hits(query, found.len()).iter().map(|tool| tool.spec().name.as_str()).collect();
            prop_assert_eq!(found, best);
        }
    }
}
