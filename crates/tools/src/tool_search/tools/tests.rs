use pinch_agent_core::tool::{CallContext, FnTool, Progress};
use pinch_llm::ids::ToolCallId;
use pinch_llm::schema::validate_tool_arguments;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::*;

fn catalog() -> Arc<ToolCatalog> {
    let spec = ToolSpec::new("weather", "Returns the forecast", Schema::new(json!({"type": "object"})));
    let weather = FnTool::new(spec, |_: JsonObject, _: CallContext| async { Ok::<_, ToolError>("sunny") });
    let tools: ToolSet = [Arc::new(weather) as Arc<dyn Tool>].into_iter().collect();
    Arc::new(ToolCatalog::new(tools.clone(), tools, ["read".to_owned(), TOOL_CALL.to_owned()]))
}

/// Runs one of the three tools with arguments that match its schema.
async fn run(name: &str, arguments: Value) -> Result<String, String> {
    let tool = search_tools(&catalog()).into_iter().find(|tool| tool.spec().name == name).unwrap();
    let raw = arguments.as_object().unwrap();
    let input = validate_tool_arguments(name, &tool.spec().parameters, raw).map_err(|error| error.to_string())?;
    let (id, cancel, progress, host) =
        (ToolCallId::from("c1"), Cancel::new(), Progress::ignored(), Host::builder().build());
    let cx = ToolCx { call: &id, cancel: &cancel, progress: &progress, host: &host };
    let output = tool.run(input, &cx).await.map_err(|error| error.text)?;
    Ok(output.content[0].as_text().unwrap().to_owned())
}

fn target(arguments: &Value) -> Option<(String, Value)> {
    let [_, _, call] = search_tools(&catalog());
    let found = call.gateway().unwrap().target(arguments.as_object().unwrap())?;
    Some((found.tool.spec().name.clone(), Value::Object(found.arguments)))
}

#[tokio::test]
async fn searches_and_descriptions_take_one_or_several() {
    for arguments in [json!({"query": "forecasts"}), json!({"queries": ["forecasts"]}), json!({"queries": "forecasts"})]
    {
        assert!(run(TOOL_SEARCH, arguments).await.unwrap().starts_with("- weather: "));
    }
    for arguments in [json!({"id": "weather"}), json!({"ids": ["weather"]})] {
        assert!(run(TOOL_DESCRIBE, arguments).await.unwrap().starts_with("weather\nReturns"));
    }
}

#[tokio::test]
async fn unusable_arguments_are_explained() {
    for (name, arguments, expect) in [
        (TOOL_SEARCH, json!({}), "query or queries required"),
        (TOOL_SEARCH, json!({"query": " "}), "query or queries required"),
        (TOOL_SEARCH, json!({"queries": vec!["x"; 17]}), "Validation failed for tool \"tool_search\""),
        (TOOL_SEARCH, json!({"query": "x", "limit": 21}), "Validation failed for tool \"tool_search\""),
        (TOOL_DESCRIBE, json!({}), "id or ids required"),
        (TOOL_DESCRIBE, json!({"id": "wether"}), "Unknown tool: \"wether\". Similar: weather."),
        (TOOL_CALL, json!({"args": {}}), "Validation failed for tool \"tool_call\""),
        (TOOL_CALL, json!({"id": "wether", "args": {}}), "Unknown tool: \"wether\". Similar: weather."),
        (TOOL_CALL, json!({"id": "read", "args": {}}), "read is called directly by its name"),
        (TOOL_CALL, json!({"id": "tool_call", "args": {}}), "tool_call is called directly by its name"),
    ] {
        let error = run(name, arguments.clone()).await.unwrap_err();
        assert!(error.starts_with(expect), "{name} {arguments}: {error}");
    }
}

#[test]
fn a_call_stands_for_that_of_the_deferred_tool() {
    let args = json!({"city": "Riga"});
    for given in [args.clone(), Value::from(args.to_string())] {
        assert_eq!(target(&json!({"id": " weather", "args": given})), Some(("weather".to_owned(), args.clone())));
    }
    assert_eq!(target(&json!({"id": "weather"})), Some(("weather".to_owned(), json!({}))));
    for arguments in [json!({}), json!({"id": 7}), json!({"id": "read"}), json!({"id": "weather", "args": [1]})] {
        assert_eq!(target(&arguments), None, "{arguments}");
    }
}
