//! Tool calls that a guardrail of the host decides about.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::plugin::{BeforeToolCall, HookContext, Plugin, ToolCallChanges};
use pinch_embed::ports::{BoxError, GuardedCall, Guardrail, GuardrailDecision};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use crate::world::World;

/// What the guardrail does with arguments that have the member `by`, and with others.
#[derive(Clone, Copy)]
enum PolicyAct {
    Allow,
    Block(Option<&'static str>),
    Fail,
    Hang,
}

struct Policy {
    own: PolicyAct,
    changed: PolicyAct,
    seen: Mutex<Vec<Value>>,
}

impl Guardrail for Policy {
    fn check<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, Result<GuardrailDecision, BoxError>> {
        assert_eq!((call.tool.as_str(), call.agent_id.as_str()), ("probe", "main"));
        self.seen.lock().unwrap().push(Value::Object(call.params.clone()));
        let verdict = if call.params.contains_key("by") { self.changed } else { self.own };
        Box::pin(async move {
            match verdict {
                PolicyAct::Allow => Ok(GuardrailDecision::Allow),
                PolicyAct::Block(reason) => Ok(GuardrailDecision::Block { reason: reason.map(str::to_owned) }),
                PolicyAct::Fail => Err("no connection".into()),
                PolicyAct::Hang => std::future::pending().await,
            }
        })
    }
}

/// Adds a member to the arguments of every call, if it has one to add.
struct ParamsSigner(Option<&'static str>);

impl Extension for ParamsSigner {
    fn name(&self) -> &str {
        "signing"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for ParamsSigner {
    fn before_tool_call<'a>(&'a self, _: &'a BeforeToolCall, _: &'a HookContext) -> HandlerFuture<'a, ToolCallChanges> {
        let params = self.0.map(|name| ("by".to_owned(), name.into())).into_iter().collect();
        Box::pin(async move { Ok(ToolCallChanges { params, ..ToolCallChanges::default() }) })
    }
}

/// Returns what the model is told about a call, and the arguments that the guardrail saw.
async fn told(own: PolicyAct, changed: PolicyAct, signer: Option<&'static str>) -> (String, Vec<Value>) {
    let world = World::new().await;
    let params = json!({"own": 1}).as_object().unwrap().clone();
    let replies = [ScriptedReply::call("c1", "probe", params), ScriptedReply::text("Done.")];
    let provider = Arc::new(ScriptedProvider::new(replies));
    let mut providers = ProviderRegistry::new();
    providers.register("anthropic-messages", Arc::clone(&provider) as Arc<dyn Provider>);
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |input: JsonObject, _| async move {
        Ok(ToolOutput::text(format!("ran with {} members", input.len())))
    });
    let policy = Arc::new(Policy { own, changed, seen: Mutex::default() });
    let engine = world.built(|builder| {
        let builder = builder.providers(providers).tool(probe).hooks(Arc::new(ParamsSigner(signer)));
        builder.guardrail(Arc::clone(&policy) as Arc<dyn Guardrail>)
    });
    engine.run(engine.request("s1", None, None, "go")).finish().await.unwrap();
    let last = format!("{:?}", provider.requests().last().unwrap().messages.last().unwrap());
    (last, policy.seen.lock().unwrap().clone())
}

#[tokio::test(start_paused = true)]
async fn a_guardrail_decides_before_hooks_and_about_their_changes() {
    let (own, changed) = (json!({"own": 1}), json!({"own": 1, "by": "plugin"}));
    let failed = "Tool call blocked because the guardrail failed";
    for (of_own, of_changed, signer, expected, seen) in [
        (PolicyAct::Allow, PolicyAct::Allow, None, "ran with 1 members", vec![&own]),
        (PolicyAct::Allow, PolicyAct::Allow, Some("plugin"), "ran with 2 members", vec![&own, &changed]),
        (PolicyAct::Block(None), PolicyAct::Allow, Some("plugin"), "Blocked by guardrail policy", vec![&own]),
        (PolicyAct::Allow, PolicyAct::Block(Some("not signed")), Some("plugin"), "not signed", vec![&own, &changed]),
        (PolicyAct::Fail, PolicyAct::Allow, None, failed, vec![&own]),
        (PolicyAct::Hang, PolicyAct::Allow, None, failed, vec![&own]),
    ] {
        let (told, asked) =
            tokio::time::timeout(Duration::from_secs(60), told(of_own, of_changed, signer)).await.unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
        assert_eq!(asked.iter().collect::<Vec<_>>(), seen, "{expected}");
    }
}
