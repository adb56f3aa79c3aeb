//! Tools registered by extensions.

use std::sync::Arc;

use pinch_coding_agent::extension::{ExtensionHandle, Extensions, Registrations};
use pinch_coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_coding_agent::session::{Prompt, SessionParts};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;

use super::{Brings, does, load, names, tool};
use crate::extension_hooks::pull;
use crate::session::{in_memory, scene_with};
use pinch_testing::logs::{host, open, store};

#[tokio::test]
async fn tools_replace_built_in_ones_immediately() {
    let bring = |to: &mut Registrations, handle: &ExtensionHandle| {
        to.tool(tool("read", "theirs"));
        to.tool(tool("more", "more"));
        let _ = handle;
        to.command(does("late", |_, cx| Box::pin(async move { cx.register_tool(tool("late", "late")).await })));
        to.command(does("only", |_, cx| {
            Box::pin(async move { cx.set_active_tools(vec!["late".into(), "frob".into()]).await })
        }));
    };
    let second = |to: &mut Registrations, _: &ExtensionHandle| to.tool(tool("more", "again"));
    let extensions = load(vec![Brings::of("x", bring), Brings::of("y", second)]);
    let problem = extensions.take_failures();
    assert_eq!((problem[0].extension.as_str(), problem[0].error.as_str()), ("y", "Tool \"more\" conflicts with x"));
    let theirs = extensions.clone();
    let replies = (0..3).map(|n| Reply::text(n.to_string()));
    let mut scene = scene_with(in_memory(), replies, |mut parts| {
        parts.extensions = theirs;
        parts.tools = [tool("read", "own"), tool("bash", "own")].into_iter().collect();
        parts.prompt_for = Some(Arc::new(|tools| {
            SystemPrompt::text(tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>().join(" "))
        }));
        parts
    })
    .await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "bash", "more"]);
    let Message::System(system) = &*scene.session.messages()[0] else { panic!() };
    assert_eq!(system.tools_added[0].description, "theirs");
    assert_eq!(system.sections[0].1.as_deref(), Some("read bash more"));
    pull(scene.session.prompt(Prompt::text("/late"))).await;
    pull(scene.session.prompt(Prompt::text("b"))).await;
    assert_eq!(names(&scene), ["read", "bash", "more", "late"]);
    pull(scene.session.prompt(Prompt::text("/only"))).await;
    pull(scene.session.prompt(Prompt::text("c"))).await;
    assert_eq!(names(&scene), ["late"]);
}

#[tokio::test]
async fn a_list_of_allowed_tools_applies_to_extensions_too() {
    let extensions = load(vec![Brings::of("x", |to, _| {
        to.tool(tool("yes", ""));
        to.tool(tool("no", ""));
    })]);
    let theirs = extensions.clone();
    let mut scene = scene_with(in_memory(), [Reply::text("1")], |mut parts| {
        parts.extensions = theirs;
        parts.tools = [tool("read", ""), tool("bash", "")].into_iter().collect();
        parts.allowed_tools = Some(vec!["yes".into(), "read".into()]);
        parts
    })
    .await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "yes"]);
}

#[tokio::test]
async fn a_conversation_gets_its_previous_tools_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let off = |to: &mut Registrations, _: &ExtensionHandle| {
        to.tool(tool("off", ""));
        to.command(does("ls", |_, cx| {
            Box::pin(async move { cx.set_active_tools(vec!["ls".into(), "read".into()]).await })
        }));
    };
    let own =
        || [tool("read", ""), tool("bash", ""), tool("ls", "")].into_iter().collect::<pinch_agent_core::ToolSet>();
    let few = || own().filter(|tool| tool.spec().name != "ls");
    let begin = |extensions: Extensions| {
        move |mut parts: SessionParts| {
            parts.extensions = extensions;
            parts.tools = few();
            parts.all_tools = Some(own());
            parts
        }
    };
    let extensions = load(vec![Brings::of("x", off)]);
    let mut scene = scene_with(log, [Reply::text("1"), Reply::text("2")], begin(extensions)).await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "bash", "off"]);
    pull(scene.session.prompt(Prompt::text("/ls"))).await;
    pull(scene.session.prompt(Prompt::text("b"))).await;
    let file = scene.session.path().unwrap();
    drop(scene);
    let new = |to: &mut Registrations, _: &ExtensionHandle| to.tool(tool("new", ""));
    let extensions = load(vec![Brings::of("x", off), Brings::of("y", new)]);
    let mut scene = scene_with(open(&file).await.unwrap(), [Reply::text("3")], begin(extensions)).await;
    pull(scene.session.prompt(Prompt::text("c"))).await;
    let mut found = names(&scene);
    found.sort_unstable();
    assert_eq!(found, ["ls", "new", "read"], "what was turned off stays off, what is new comes in");
}
