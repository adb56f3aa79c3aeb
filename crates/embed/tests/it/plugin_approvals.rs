//! Tool calls for which a plugin requires the approval of a person.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::plugin::{ApprovalResolved, BeforeToolCall, HookContext, Plugin, RequiredApproval, ToolCallChanges};
use pinch_embed::ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest, ApprovalSeverity};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::schema::Schema;
use serde_json::json;

use crate::plugins::Behaviour;
use crate::world::World;

/// Requires an approval for every call, and records how it was resolved, with this behaviour.
struct Careful(RequiredApproval, Mutex<Vec<String>>, Behaviour);

impl Extension for Careful {
    fn name(&self) -> &str {
        "careful"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for Careful {
    fn before_tool_call<'a>(&'a self, _: &'a BeforeToolCall, _: &'a HookContext) -> HandlerFuture<'a, ToolCallChanges> {
        let params = json!({"by": "careful"}).as_object().unwrap().clone();
        let changes = ToolCallChanges { params, approval: Some(self.0.clone()), ..ToolCallChanges::default() };
        Box::pin(async move { Ok(changes) })
    }

    fn on_approval_resolved<'a>(&'a self, event: &'a ApprovalResolved, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        self.1.lock().unwrap().push(format!("{} {} {}", event.tool, event.call_id, event.resolution.name()));
        Box::pin(self.2.act("approval_resolved"))
    }
}

/// Answers after a while, or never, and records the requests.
struct Approver(Option<(Duration, ApprovalDecision)>, Mutex<Vec<(String, String, ApprovalSeverity)>>);

impl ApprovalBroker for Approver {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.1.lock().unwrap().push((request.command.clone(), request.reason.clone(), request.severity));
        Box::pin(async {
            let Some((after, decision)) = self.0 else { return std::future::pending().await };
            tokio::time::sleep(after).await;
            decision
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_an_approval_runs_only_with_it() {
    for how in [Behaviour::Fine, Behaviour::Fails, Behaviour::Panics, Behaviour::Hangs] {
        check_approvals(how).await;
    }
}

/// `how`: the behaviour of the hook that is notified.
async fn check_approvals(how: Behaviour) {
    // Longer than a handler of an extension may take without a person.
    let late = Duration::from_secs(100);
    let approved = r#"ran with {"own":1,"by":"careful"}"#;
    for (person, allows_on_timeout, expected, resolution) in [
        (Some(Some((late, ApprovalDecision::AllowOnce))), false, approved, "allow-once"),
        (Some(Some((late, ApprovalDecision::AllowAlways))), false, approved, "allow-always"),
        (Some(Some((late, ApprovalDecision::Deny))), true, "Denied by user", "deny"),
        (Some(None), false, "Approval timed out", "timeout"),
        (Some(None), true, approved, "timeout"),
        (None, true, "Plugin approval unavailable (no approval route)", "cancelled"),
    ] {
        let world = World::new().await;
        let own = json!({"own": 1}).as_object().unwrap().clone();
        let replies = [ScriptedReply::call("c1", "probe", own), ScriptedReply::text("Done.")];
        let provider = Arc::new(ScriptedProvider::new(replies));
        let mut providers = ProviderRegistry::new();
        providers.register("anthropic-messages", Arc::clone(&provider) as Arc<dyn Provider>);
        let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
        let probe = FnTool::new(spec, |input: JsonObject, _| async move {
            Ok(ToolOutput::text(format!("ran with {}", json!(input))))
        });
        let required = RequiredApproval {
            title: "Probe".to_owned(),
            description: "Is it safe?".to_owned(),
            severity: ApprovalSeverity::Critical,
            timeout: Duration::from_secs(120),
            allows_on_timeout,
        };
        let careful = Arc::new(Careful(required, Mutex::default(), how));
        let broker = person.map(|answer| Arc::new(Approver(answer, Mutex::default())));
        let engine = world.built(|builder| {
            let builder = builder.providers(providers).tool(probe).hooks(Arc::clone(&careful) as Arc<dyn Plugin>);
            match &broker {
                Some(broker) => builder.approvals(Arc::clone(broker) as Arc<dyn ApprovalBroker>),
                None => builder,
            }
        });
        engine.run(engine.request("s1", None, None, "go")).finish().await.unwrap();
        assert!(engine.drain(Duration::from_secs(60)).await);
        assert_eq!(*careful.1.lock().unwrap(), [format!("probe c1 {resolution}")]);
        let last = format!("{:?}", provider.requests().last().unwrap().messages.last().unwrap());
        assert!(last.contains(&expected.replace('"', "\\\"")), "{expected}: {last}");
        if let Some(broker) = broker {
            let asked = (
                r#"probe {"own":1,"by":"careful"}"#.to_owned(),
                "Probe: Is it safe?".to_owned(),
                ApprovalSeverity::Critical,
            );
            assert_eq!(*broker.1.lock().unwrap(), [asked]);
        }
    }
}
