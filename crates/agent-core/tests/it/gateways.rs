//! Calls through a tool that stands for others.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{AfterTurn, BeforeTool, FinishedCall, Hooks, PendingCall, ToolPatch, TurnEnded};
use pinch_agent_core::tool::{
    ExternalTool, FnTool, ForwardedCall, JsonObject, ToolGateway, ToolMode, ToolOutput, ToolSet, ToolSpec,
};
use pinch_agent_core::{AgentEvent, Tool, ToolCx, ToolError};
use pinch_llm::message::{Message, StopReason, ToolCall};
use pinch_llm::provider::scripted::{ScriptedReply, ScriptedStep};
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::Cancel;
use serde_json::{Value, json};

use super::{agent, results, run};

/// Forwards `{"to": name, "with": arguments}`.
struct Door {
    spec: ToolSpec,
    behind: ToolSet,
}

impl Door {
    fn to(behind: impl IntoIterator<Item = Arc<dyn Tool>>) -> Arc<dyn Tool> {
        let spec = ToolSpec::new("door", "", Schema::new(json!({"type": "object", "required": ["to"]})));
        Arc::new(Self { spec, behind: behind.into_iter().collect() })
    }
}

impl Tool for Door {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::new("nobody is there")) })
    }

    fn gateway(&self) -> Option<&dyn ToolGateway> {
        Some(self)
    }
}

impl ToolGateway for Door {
    fn tools(&self) -> &ToolSet {
        &self.behind
    }

    fn listed(&self) -> &ToolSet {
        &self.behind
    }

    fn target(&self, arguments: &JsonObject) -> Option<ForwardedCall> {
        let tool = Arc::clone(self.behind.get(arguments.get("to")?.as_str()?)?);
        Some(ForwardedCall { tool, arguments: arguments.get("with")?.as_object()?.clone() })
    }
}

fn spec(name: &str) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ToolSpec::new(name, "", Schema::new(schema))
}

/// A tool that reports progress, and returns its argument and details.
fn counts(name: &str) -> FnTool {
    FnTool::new(spec(name), |input: JsonObject, cx: pinch_agent_core::tool::CallContext| async move {
        cx.progress.report(ToolOutput::text("counting"));
        let text = format!("n is {}", input["n"]);
        Ok(ToolOutput { details: Some(json!({"seen": input["n"]})), ..ToolOutput::text(text) })
    })
}

/// Notes what it sees of calls.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

fn shown(call: &ToolCall) -> String {
    format!("{} {}{}", call.id, call.name, Value::Object(call.arguments.clone()))
}

impl Hooks for Notes {
    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        let batch: Vec<&str> = call.batch.iter().map(|call| call.name.as_str()).collect();
        self.0.lock().unwrap().push(format!("before {} of {}", shown(&call.call), batch.join("+")));
        Box::pin(async { BeforeTool::Allow })
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        let details = done.output.details.clone().unwrap_or_default();
        self.0.lock().unwrap().push(format!("after {} {details}", shown(&done.call)));
        Box::pin(async { ToolPatch::default() })
    }

    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        self.0.lock().unwrap().extend(turn.calls.iter().map(|call| format!("turn {}", shown(call))));
        Box::pin(async { AfterTurn::Default })
    }
}

fn calling(list: &[(&str, &str, Value)]) -> ScriptedReply {
    let step = |(id, name, arguments): &(&str, &str, Value)| ScriptedStep::ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    ScriptedReply { steps: list.iter().map(step).collect(), ..ScriptedReply::default() }
}

/// Returns the tool events, as `kind id name`.
fn tool_events(events: &[AgentEvent]) -> Vec<String> {
    let event = |event: &AgentEvent| match event {
        AgentEvent::ToolStart(start) => Some(("start", start.clone())),
        AgentEvent::ToolUpdate { start, .. } => Some(("update", start.clone())),
        AgentEvent::ToolEnd { start, .. } => Some(("end", start.clone())),
        _ => None,
    };
    events
        .iter()
        .filter_map(event)
        .map(|(kind, start)| format!("{kind} {} {}{}", start.id, start.name, Value::Object((*start.args).clone())))
        .collect()
}

#[tokio::test]
async fn hooks_and_events_see_the_tool_behind_a_gateway() {
    let call = calling(&[("a", "door", json!({"to": "count", "with": {"n": 1}})), ("b", "look", json!({"n": 2}))]);
    let tools = vec![Door::to([Arc::new(counts("count")) as Arc<dyn Tool>]), Arc::new(counts("look"))];
    let (mut agent, provider) = agent([call, ScriptedReply::text("ok")], tools);
    let notes = Arc::new(Notes::default());
    agent.hooks = Arc::clone(&notes) as Arc<dyn Hooks>;
    let events = run(&mut agent, &Cancel::new()).await;
    let expect = [
        r#"start a count{"n":1}"#,
        r#"start b look{"n":2}"#,
        r#"update a count{"n":1}"#,
        r#"end a count{"n":1}"#,
        r#"update b look{"n":2}"#,
        r#"end b look{"n":2}"#,
    ];
    let mut seen = tool_events(&events);
    seen.sort_by_key(|event| (!event.starts_with("start"), event.contains(" b ")));
    assert_eq!(seen, expect);
    let expect = [
        r#"before a count{"n":1} of count+look"#,
        r#"before b look{"n":2} of count+look"#,
        r#"after a count{"n":1} {"seen":1}"#,
        r#"after b look{"n":2} {"seen":2}"#,
        r#"turn a count{"n":1}"#,
        r#"turn b look{"n":2}"#,
    ];
    assert_eq!(*notes.0.lock().unwrap(), expect);
    assert_eq!(results(&agent), [("a".into(), false, "n is 1".into()), ("b".into(), false, "n is 2".into())]);
    // The conversation keeps the call as the model wrote it, and names the tool in the details.
    let sent = &provider.requests()[1].messages;
    let answer = sent.iter().find_map(|message| message.as_assistant()).unwrap();
    assert_eq!(shown(answer.tool_calls().next().unwrap()), r#"a door{"to":"count","with":{"n":1}}"#);
    let stored = agent.messages.iter().find_map(|message| match &**message {
        Message::ToolResult(result) => Some((result.tool_name.as_str(), result.details.clone().unwrap())),
        _ => None,
    });
    let details = json!({"tool": {"id": "count", "name": "count"}, "result": {"details": {"seen": 1}}});
    assert_eq!(stored, Some(("door", details)));
}

#[tokio::test]
async fn a_gateway_is_no_way_around_validation_and_runs_itself_without_a_target() {
    let calls = calling(&[
        ("a", "door", json!({"to": "count", "with": {"n": "x"}})),
        ("b", "door", json!({"to": "nobody", "with": {}})),
        ("c", "door", json!({"with": {}})),
        ("d", "count", json!({"n": 1})),
        ("e", "door", json!({"to": "remote", "with": {"n": 1}})),
    ]);
    let behind = [Arc::new(counts("count")) as Arc<dyn Tool>, Arc::new(ExternalTool::new(spec("remote")))];
    let (mut agent, _) = agent([calls, ScriptedReply::text("ok")], vec![Door::to(behind)]);
    run(&mut agent, &Cancel::new()).await;
    let found = results(&agent);
    let texts: Vec<&str> = found.iter().map(|(_, _, text)| text.lines().next().unwrap()).collect();
    let expect = [
        "Validation failed for tool \"count\":",
        "nobody is there",
        "Validation failed for tool \"door\":",
        "Tool count not found",
        "nobody is there",
    ];
    assert_eq!(texts, expect);
    assert!(found.iter().all(|(_, failed, _)| *failed));
}

#[tokio::test]
async fn the_mode_of_the_tool_behind_a_gateway_applies() {
    let call = |id| (id, "door", json!({"to": "count", "with": {"n": 1}}));
    let one_by_one = Arc::new(counts("count").mode(ToolMode::Sequential)) as Arc<dyn Tool>;
    let replies = [calling(&[call("a"), call("b")]), ScriptedReply::text("ok")];
    let (mut agent, _) = agent(replies, vec![Door::to([one_by_one])]);
    let kinds = tool_events(&run(&mut agent, &Cancel::new()).await);
    let kinds: Vec<String> = kinds.iter().map(|event| event.chars().take(event.len().min(7)).collect()).collect();
    assert_eq!(kinds, ["start a", "update ", "end a c", "start b", "update ", "end b c"]);
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_named_as_the_model_wrote_it() {
    let mut reply = calling(&[("a", "door", json!({"to": "count", "with": {"n": 1}}))]);
    reply.stop = Some(StopReason::Length);
    let tools = vec![Door::to([Arc::new(counts("count")) as Arc<dyn Tool>])];
    let (mut agent, _) = agent([reply, ScriptedReply::text("ok")], tools);
    run(&mut agent, &Cancel::new()).await;
    assert!(results(&agent)[0].2.starts_with("Tool call \"door\" was not executed"), "{:?}", results(&agent));
}
