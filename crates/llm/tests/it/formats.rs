//! Tool choices and response formats in the terms of each wire format.

use std::sync::Arc;

use pinch_llm::error::LlmErrorKind;
use pinch_llm::request::{JsonSchemaFormat, Request, ResponseFormat, ThinkingChoice, ToolChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_llm::wire::WireCall;
use serde_json::{Value, json};

use crate::support::{body, format_of, model_with, request, tool};

const OPENAI_SHAPED: [&str; 4] =
    ["openai-completions", "mistral-conversations", "openai-responses", "azure-openai-responses"];

fn asked(api: &str) -> Request {
    let mut request = request(model_with(
        api,
        "http://localhost",
        json!({"reasoning": false, "compat": {"supportsStrictMode": true}}),
    ));
    request.tools = Arc::new([tool("look")]);
    request
}

/// Returns the choice in the request's body.
fn choice(api: &str, choice: ToolChoice) -> Value {
    let mut request = asked(api);
    request.options.tool_choice = Some(choice);
    let body = body(&request);
    let place = match api {
        "google-generative-ai" => &body["toolConfig"]["functionCallingConfig"],
        "bedrock-converse-stream" => &body["toolConfig"]["toolChoice"],
        _ => &body["tool_choice"],
    };
    place.clone()
}

#[test]
fn a_tool_choice_is_encoded_in_each_formats_terms() {
    let all = |api: &str| {
        [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::tool("look")].map(|c| choice(api, c))
    };
    for api in OPENAI_SHAPED {
        let named = match api {
            "openai-completions" | "mistral-conversations" => json!({"type": "function", "function": {"name": "look"}}),
            _ => json!({"type": "function", "name": "look"}),
        };
        assert_eq!(all(api), [json!("auto"), json!("none"), json!("required"), named], "{api}");
    }
    let typed = |kind: &str| json!({"type": kind});
    let named = json!({"type": "tool", "name": "look"});
    assert_eq!(all("anthropic-messages"), [typed("auto"), typed("none"), typed("any"), named]);
    let named = json!({"mode": "ANY", "allowedFunctionNames": ["look"]});
    let mode = |mode: &str| json!({"mode": mode});
    assert_eq!(all("google-generative-ai"), [mode("AUTO"), mode("NONE"), mode("ANY"), named]);
}

#[cfg(feature = "bedrock")]
#[test]
fn bedrock_gets_no_tools_for_the_choice_none() {
    let api = "bedrock-converse-stream";
    let all = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::tool("look")];
    let named = json!({"tool": {"name": "look"}});
    assert_eq!(all.map(|c| choice(api, c)), [json!({"auto": {}}), Value::Null, json!({"any": {}}), named]);
}

#[test]
fn claude_is_not_forced_to_call_a_tool_while_it_thinks() {
    let mut request = asked("anthropic-messages");
    request.model = Arc::new(model_with("anthropic-messages", "http://localhost", json!({})));
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::High);
    request.options.tool_choice = Some(ToolChoice::Required);
    assert_eq!(body(&request)["tool_choice"], json!({"type": "auto"}));
}

#[test]
fn a_native_choice_is_sent_unchanged() {
    assert_eq!(choice("openai-completions", ToolChoice::Native("special".into())), json!("special"));
    assert_eq!(choice("openai-completions", ToolChoice::Native(Value::Null)), Value::Null);
}

fn animal() -> ResponseFormat {
    let schema = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "legs": {"type": "integer", "minimum": 0}}});
    ResponseFormat::json_schema("animal", schema)
}

/// Returns the strict form of the schema.
fn strict(bounds: bool) -> Value {
    let legs = if bounds { json!({"type": "integer", "minimum": 0}) } else { json!({"type": "integer"}) };
    json!({"type": "object", "required": ["name", "legs"], "additionalProperties": false, "properties": {
        "name": {"type": "string"}, "legs": {"anyOf": [legs, {"type": "null"}]}}})
}

fn with_format(api: &str, format: ResponseFormat) -> Result<Value, LlmErrorKind> {
    let mut request = asked(api);
    request.options.response_format = Some(format);
    let call = WireCall::new(&request, 1_000);
    format_of(api).encode(&call).map(|made| made.body).map_err(|error| error.kind)
}

#[test]
fn a_json_schema_is_encoded_for_each_format() {
    let inner = json!({"name": "animal", "strict": true, "schema": strict(true)});
    let wrapped = json!({"type": "json_schema", "json_schema": inner});
    for api in ["openai-completions", "mistral-conversations"] {
        assert_eq!(with_format(api, animal()).unwrap()["response_format"], wrapped, "{api}");
    }
    let flat = json!({"type": "json_schema", "name": "animal", "strict": true, "schema": strict(true)});
    for api in ["openai-responses", "azure-openai-responses"] {
        assert_eq!(with_format(api, animal()).unwrap()["text"], json!({"format": flat}), "{api}");
    }
    let body = with_format("anthropic-messages", animal()).unwrap();
    assert_eq!(body["output_config"], json!({"format": {"type": "json_schema", "schema": strict(false)}}));
    let config = &with_format("google-generative-ai", animal()).unwrap()["generationConfig"];
    let ResponseFormat::JsonSchema(JsonSchemaFormat { schema, .. }) = animal() else { unreachable!("it has a schema") };
    assert_eq!((&config["responseMimeType"], &config["responseJsonSchema"]), (&json!("application/json"), &*schema));
}

#[test]
fn chatgpt_subscriptions_get_the_format_beside_the_verbosity() {
    let mut request = asked("openai-codex-responses");
    request.auth = crate::responses::subscription();
    request.options.response_format = Some(ResponseFormat::JsonObject);
    assert_eq!(body(&request)["text"], json!({"verbosity": "low", "format": {"type": "json_object"}}));
}

#[cfg(feature = "bedrock")]
#[test]
fn bedrock_gets_the_schema_as_text() {
    let format = match animal() {
        ResponseFormat::JsonSchema(format) => format.with_description("An animal."),
        other => panic!("{other:?}"),
    };
    let body = with_format("bedrock-converse-stream", format.into()).unwrap();
    let written = &body["outputConfig"]["textFormat"];
    let definition = &written["structure"]["jsonSchema"];
    assert_eq!(
        (&written["type"], &definition["name"], &definition["description"]),
        (&json!("json_schema"), &json!("animal"), &json!("An animal."))
    );
    let schema: Value = serde_json::from_str(definition["schema"].as_str().unwrap()).unwrap();
    assert_eq!(schema, strict(false));
}

#[cfg(feature = "vertex")]
#[test]
fn vertex_encodes_the_schema_like_google() {
    let mut request = asked("google-vertex");
    request.options.response_format = Some(ResponseFormat::JsonObject);
    let config = &body(&request)["generationConfig"];
    assert_eq!((&config["responseMimeType"], config.get("responseJsonSchema")), (&json!("application/json"), None));
}

#[cfg(feature = "cloud-code-assist")]
#[test]
fn cloud_code_assist_refuses_a_format_for_claude() {
    let mut request = asked("google-gemini-cli");
    request.auth = pinch_llm::request::Auth::key(json!({"token": "t", "projectId": "p"}).to_string());
    request.options.response_format = Some(animal());
    assert!(body(&request)["request"]["generationConfig"]["responseJsonSchema"].is_object());
    request.model = Arc::new(model_with("google-gemini-cli", "http://localhost", json!({"id": "claude-sonnet-4-5"})));
    let call = WireCall::new(&request, 1_000);
    let error = format_of("google-gemini-cli").encode(&call).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::InvalidRequest);
}

#[test]
fn json_without_a_schema_is_an_error_in_formats_without_that_mode() {
    let openai = with_format("openai-completions", ResponseFormat::JsonObject).unwrap();
    assert_eq!(openai["response_format"], json!({"type": "json_object"}));
    assert_eq!(with_format("anthropic-messages", ResponseFormat::JsonObject), Err(LlmErrorKind::InvalidRequest));
    #[cfg(feature = "bedrock")]
    assert_eq!(with_format("bedrock-converse-stream", ResponseFormat::JsonObject), Err(LlmErrorKind::InvalidRequest));
}

#[test]
fn a_schema_without_a_strict_form_is_sent_unchanged() {
    let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
    let body = with_format("openai-completions", ResponseFormat::json_schema("open", open.clone())).unwrap();
    let format = &body["response_format"]["json_schema"];
    assert_eq!((&format["strict"], &format["schema"]), (&json!(false), &open));
    let body = with_format("anthropic-messages", ResponseFormat::json_schema("open", open.clone())).unwrap();
    assert_eq!(body["output_config"]["format"]["schema"], open);
}

#[test]
fn servers_without_strict_schemas_get_a_plain_one() {
    let mut request = asked("openai-completions");
    request.model = Arc::new(model_with("openai-completions", "http://localhost", json!({})));
    request.options.response_format = Some(animal());
    let format = &body(&request)["response_format"]["json_schema"];
    assert_eq!((format.get("strict"), &format["schema"]["required"]), (None, &json!(["name"])));
}

#[test]
fn a_property_named_like_a_bound_stays() {
    let schema =
        json!({"type": "object", "properties": {"minimum": {"type": "number", "minimum": 1}}, "required": ["minimum"]});
    let body = with_format("anthropic-messages", ResponseFormat::json_schema("range", schema)).unwrap();
    let written = &body["output_config"]["format"]["schema"];
    assert_eq!(written["properties"], json!({"minimum": {"type": "number"}}));
    assert_eq!(written["required"], json!(["minimum"]));
}

#[test]
fn choices_and_formats_survive_a_round_trip_through_json() {
    let choices = [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::tool("x"),
        ToolChoice::Native(json!({"type": "tool"})),
    ];
    for choice in choices {
        assert_eq!(ToolChoice::from_value(&choice.to_value()), Some(choice));
    }
    for format in [ResponseFormat::JsonObject, animal()] {
        assert_eq!(ResponseFormat::from_value(&format.to_value()), Some(format));
    }
    assert_eq!((ToolChoice::from_value(&Value::Null), ResponseFormat::from_value(&Value::Null)), (None, None));
}
