//! Merging the tools of all sources into one list, in a fixed order, under one policy.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolGateway, ToolOutput, ToolSet, ToolSpec};
use serde_json::json;

use crate::arguments::with_aliases;
use crate::policy::{OfferedTool, PolicyDecision, RunPolicy, canonical_name};

/// The tools of a plugin.
#[derive(Clone, Debug, Default)]
pub struct PluginTools {
    /// Id of the plugin.
    pub id: String,
    /// Its tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Names of tools offered only if an allow list names them, the plugin, or `group:plugins`.
    pub optional: Vec<String>,
}

/// Tools by source, in the order in which they are offered.
#[derive(Clone, Debug, Default)]
pub struct ToolLayers {
    /// The coding tools.
    pub base: ToolSet,
    /// Tools that replace the coding tools with the same canonical name (`exec` replaces `bash`); the others are appended.
    pub replacements: Vec<Arc<dyn Tool>>,
    /// Sessions, schedules, web access and other tools that need more than a machine.
    pub services: Vec<Arc<dyn Tool>>,
    /// Tools of channels.
    pub channels: Vec<Arc<dyn Tool>>,
    /// Tools of plugins.
    pub plugins: Vec<PluginTools>,
    /// Tools of the embedding program.
    pub host: Vec<Arc<dyn Tool>>,
    /// Names of tools that the run adds itself. No other tool may have them, and only deny lists apply to them.
    pub reserved: &'static [&'static str],
}

/// The tools offered to a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OfferedTools {
    /// The tools, in order.
    pub tools: ToolSet,
    /// The policy's decisions, including those about tools not offered.
    pub decision: PolicyDecision,
    /// Tools omitted because their name is taken.
    pub conflicts: Vec<String>,
    /// Names of the offered tools that come from plugins.
    pub of_plugins: Vec<String>,
    /// What was decided about, without the tools that others offer.
    pub candidates: Vec<OfferedTool>,
}

impl ToolLayers {
    /// Merges all tools into one list, removes those the policy denies, and turns failures into results that a model can read.
    pub fn offer(&self, policy: &RunPolicy) -> OfferedTools {
        self.offer_beside(policy, |_| Vec::new())
    }

    /// As [`ToolLayers::offer`], beside tools that others offer to the same run, given these: the policy decides about all of them together,
    /// because a list may name any of them.
    pub fn offer_beside(
        &self,
        policy: &RunPolicy,
        others: impl FnOnce(&[OfferedTool]) -> Vec<OfferedTool>,
    ) -> OfferedTools {
        let mut list = Vec::new();
        let mut conflicts = Vec::new();
        self.collect(policy, &mut list, &mut conflicts);
        let offered: Vec<OfferedTool> = list
            .iter()
            .map(|(tool, plugin)| {
                let offered = OfferedTool::new(&tool.spec().name);
                plugin.iter().fold(offered, |offered, plugin| offered.plugin(*plugin))
            })
            .collect();
        let reserved = self.reserved.iter().map(|name| OfferedTool::new(*name).implied());
        let candidates: Vec<OfferedTool> = offered.into_iter().chain(reserved).collect();
        let decision = policy.decide(&[candidates.as_slice(), &others(&candidates)].concat());
        let verdicts: Vec<bool> = decision.explanations().map(|explanation| explanation.removed.is_none()).collect();
        let mut is_allowed = verdicts.into_iter();
        list.retain(|_| is_allowed.next() == Some(true));
        let of_plugins = list.iter().filter(|(_, plugin)| plugin.is_some());
        let of_plugins = of_plugins.map(|(tool, _)| tool.spec().name.clone()).collect();
        let tools = list.into_iter().map(|(tool, _)| reporting(with_aliases(tool))).collect();
        OfferedTools { tools, decision, conflicts, of_plugins, candidates }
    }

    /// Returns all tools with their plugins. The first tool with a name wins.
    fn collect<'a>(
        &'a self,
        policy: &RunPolicy,
        list: &mut Vec<(Arc<dyn Tool>, Option<&'a str>)>,
        conflicts: &mut Vec<String>,
    ) {
        let name = |tool: &Arc<dyn Tool>| canonical_name(&tool.spec().name);
        let replacement = |tool: &Arc<dyn Tool>| {
            self.replacements.iter().find(|other| name(other) == name(tool)).unwrap_or(tool).clone()
        };
        let is_reserved = |tool: &Arc<dyn Tool>| self.reserved.contains(&name(tool).as_str());
        let mut add = |tool: Arc<dyn Tool>, plugin: Option<&'a str>| {
            if !is_reserved(&tool) && list.iter().all(|(known, _)| name(known) != name(&tool)) {
                list.push((tool, plugin));
                return None;
            }
            Some(tool)
        };
        for tool in self.base.iter() {
            add(replacement(tool), None);
        }
        for tool in &self.replacements {
            add(Arc::clone(tool), None);
        }
        for tool in self.services.iter().chain(&self.channels) {
            conflicts
                .extend(add(Arc::clone(tool), None).map(|tool| format!("tool name conflict: {}", tool.spec().name)));
        }
        let core: Vec<String> = list.iter().map(|(tool, _)| name(tool)).collect();
        let mut add = |tool: Arc<dyn Tool>, plugin: Option<&'a str>| {
            let is_new = !is_reserved(&tool) && list.iter().all(|(known, _)| name(known) != name(&tool));
            if is_new {
                list.push((Arc::clone(&tool), plugin));
            }
            is_new
        };
        for plugin in &self.plugins {
            let id = plugin.id.as_str();
            if core.contains(&canonical_name(id)) {
                conflicts.push(format!("plugin id conflicts with core tool name ({id})"));
                continue;
            }
            for tool in &plugin.tools {
                let is_optional = plugin.optional.iter().any(|optional| canonical_name(optional) == name(tool));
                if is_optional && !policy.names_explicitly(&[&tool.spec().name, id, "group:plugins"]) {
                    continue;
                }
                if !add(Arc::clone(tool), Some(id)) {
                    conflicts.push(format!("plugin tool name conflict ({id}): {}", tool.spec().name));
                }
            }
        }
        for tool in &self.host {
            if !add(Arc::clone(tool), None) {
                conflicts.push(format!("tool name conflict: {}", tool.spec().name));
            }
        }
    }
}

/// A tool that reports its failures as results.
struct ReportingTool(Arc<dyn Tool>);

/// Wraps a tool to report failures as results: JSON with the tool's name and the error. A cancelled call stays an error.
pub fn reporting(tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    Arc::new(ReportingTool(tool))
}

impl Tool for ReportingTool {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        self.0.prepare(raw)
    }

    fn gateway(&self) -> Option<&dyn ToolGateway> {
        self.0.gateway()
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match self.0.run(input, cx).await {
                Err(error) if error != ToolError::aborted() && !cx.cancel.is_cancelled() => {
                    Ok(failure(&self.spec().name, &error))
                }
                other => other,
            }
        })
    }
}

/// Returns the result for an error.
fn failure(tool: &str, error: &ToolError) -> ToolOutput {
    tracing::warn!(tool, error = %error.text, "a tool failed");
    let text = if error.text.is_empty() { "Error" } else { &error.text };
    let details = json!({"status": "error", "tool": canonical_name(tool), "error": text});
    let shown = serde_json::to_string_pretty(&details).unwrap_or_default();
    ToolOutput { details: Some(details), failed: true, ..ToolOutput::text(shown) }
}

#[cfg(test)]
mod tests {
    use pinch_agent_core::tool::FnTool;
    use pinch_llm::schema::Schema;
    use pinch_ports::Caller;
    use serde_json::Value;

    use super::*;
    use crate::policy::{PolicyRequest, ToolPolicies};

    fn tool(name: &str, about: &str) -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, about, Schema::new(json!({"type": "object", "properties": {}})));
        Arc::new(FnTool::new(spec, |_: JsonObject, _| async move { Ok::<_, ToolError>("done") }))
    }

    fn offer(layers: &ToolLayers, config: &Value) -> OfferedTools {
        let (policies, _) = ToolPolicies::read(config);
        layers.offer(&policies.resolve(&PolicyRequest::new(&Caller::new().owner(), "openai", "gpt-5")))
    }

    fn layers() -> ToolLayers {
        ToolLayers {
            base: ["read", "bash", "edit"].into_iter().map(|name| tool(name, "base")).collect(),
            replacements: vec![tool("apply_patch", "own"), tool("exec", "own"), tool("process", "own")],
            services: vec![tool("cron", "own")],
            channels: vec![tool("message", "channel")],
            plugins: vec![
                PluginTools {
                    id: "lobster".into(),
                    tools: vec![tool("lobster_run", ""), tool("lobster_burn", ""), tool("read", "plugin")],
                    optional: vec!["lobster_burn".into()],
                },
                PluginTools { id: "cron".into(), tools: vec![tool("tick", "")], optional: Vec::new() },
            ],
            host: vec![tool("ticket", "host"), tool("Lobster_Run", "host")],
            ..ToolLayers::default()
        }
    }

    #[test]
    fn tools_have_a_fixed_order_and_unique_names() {
        let offered = offer(&layers(), &json!({}));
        let shown: Vec<String> =
            offered.tools.iter().map(|tool| format!("{} {}", tool.spec().name, tool.spec().description)).collect();
        let expect = [
            "read base",
            "exec own",
            "edit base",
            "apply_patch own",
            "process own",
            "cron own",
            "message channel",
            "lobster_run ",
            "ticket host",
        ];
        assert_eq!(shown, expect);
        let conflicts = [
            "plugin tool name conflict (lobster): read",
            "plugin id conflicts with core tool name (cron)",
            "tool name conflict: Lobster_Run",
        ];
        assert_eq!(offered.conflicts, conflicts);
    }

    #[test]
    fn reserved_names_belong_to_the_run_and_only_deny_lists_apply_to_them() {
        let mut layers = layers();
        layers.host = vec![tool("ticket", "host"), tool("Tool_Call", "host")];
        layers.reserved = &["tool_search", "tool_call"];
        let offered = offer(&layers, &json!({"tools": {"allow": ["ticket"], "deny": ["tool_s*"]}}));
        let names: Vec<&str> = offered.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(names, ["ticket"]);
        assert_eq!(offered.conflicts.last().unwrap(), "tool name conflict: Tool_Call");
        assert_eq!((offered.decision.allows("tool_call"), offered.decision.allows("tool_search")), (true, false));
        let nothing = offer(&layers, &json!({"tools": {"allow": ["nothing"]}}));
        assert!(nothing.decision.is_emptied());
        let all = offer(&layers, &json!({}));
        assert_eq!(all.of_plugins, ["lobster_run"]);
    }

    #[test]
    fn optional_tools_need_an_entry_that_names_them() {
        let offered = offer(&layers(), &json!({"tools": {"allow": ["*", "lobster"]}}));
        assert!(offered.tools.get("lobster_burn").is_some());
        let offered = offer(&layers(), &json!({"tools": {"deny": ["bash", "lobster*"]}}));
        let names: Vec<&str> = offered.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(names, ["read", "edit", "apply_patch", "process", "cron", "message", "ticket"]);
        assert_eq!(offered.decision.explain("exec").to_string(), "exec is denied by tools.deny (bash)");
    }
}
