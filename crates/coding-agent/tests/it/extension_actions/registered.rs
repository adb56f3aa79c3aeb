//! Flags, shortcuts and providers registered by extensions.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::extension::rendering::{RenderRoom, RenderSubject, Renderer, RendererKey};
use pinch_coding_agent::extension::{
    ExtensionError, ExtensionHandle, Flag, FlagKind, FlagValue, Point, ProviderChange, Registrations,
};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::Content;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use serde_json::json;

use super::{Brings, does, load, with};
use crate::extension_hooks::{failures, pull};
use crate::session::in_memory;

/// DrawsWord everything as one word.
struct DrawsWord(&'static str);

impl Renderer for DrawsWord {
    fn render<'a>(
        &'a self,
        _: &'a RenderSubject,
        _: RenderRoom,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, ExtensionError>> {
        Box::pin(async { Ok(Some(vec![self.0.to_owned()])) })
    }
}

#[test]
fn flags_are_validated_and_belong_to_their_extension() {
    let flag = |name: &str, kind| Flag { name: name.into(), description: None, kind };
    let text = FlagKind::Text { default: Some("d".into()) };
    let kept: Arc<Mutex<Option<ExtensionHandle>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let extensions = load(vec![
        Brings::of("x", move |to, handle| {
            to.flag(flag("plan", FlagKind::Boolean { default: Some(false) }));
            to.flag(flag("level", text.clone()));
            *theirs.lock().unwrap() = Some(handle.clone());
        }),
        Brings::of("y", move |to, _| to.flag(flag("plan", FlagKind::Boolean { default: None }))),
    ]);
    assert_eq!(extensions.take_failures()[0].error, "Flag \"--plan\" conflicts with x");
    let given = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let wrong =
        extensions.set_flags(&[given("level", None), given("a", None), given("plan", None), given("b", Some("1"))]);
    assert_eq!(wrong, ["Extension flag \"--level\" requires a value", "Unknown options: --a, --b"]);
    assert_eq!(extensions.set_flags(&[given("a", None)]), ["Unknown option: --a"]);
    assert_eq!(extensions.flags().len(), 2);
}

#[tokio::test]
async fn flags_shortcuts_providers_and_events_reach_their_recipients() {
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = Arc::clone(&received);
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.flag(Flag { name: "plan".into(), description: None, kind: FlagKind::Boolean { default: None } });
        to.shortcut("ctrl+x", does("first", |_, _| Box::pin(async { Ok(()) })));
        to.shortcut("ctrl+c", does("never", |_, _| Box::pin(async { Ok(()) })));
        to.message_renderer("c", Arc::new(DrawsWord("first")));
        to.provider("mine", JsonObject::new());
    };
    let listens = Brings::of("z", |to, _| {
        to.shortcut("Ctrl+X", does("second", |_, _| Box::pin(async { Ok(()) })));
        to.message_renderer("c", Arc::new(DrawsWord("second")));
    })
    .at(Point::SessionStart, move |cx| {
        let received = Arc::clone(&theirs);
        cx.on("topic", Arc::new(|_| panic!("bad listener")));
        cx.on("topic", Arc::new(move |data| received.lock().unwrap().push(data.to_string())));
        Box::pin(async { Ok(()) })
    });
    let emits = Brings::of("x", bring).at(Point::AgentStart, |cx| {
        assert_eq!(cx.flag("plan"), Some(FlagValue::Boolean(true)));
        assert_eq!(cx.flag("other"), None);
        cx.emit("topic", &json!({"a": 1}));
        cx.unregister_provider("mine").unwrap();
        Box::pin(async { Ok(()) })
    });
    let extensions = load(vec![emits, listens]);
    assert!(extensions.set_flags(&[("plan".into(), None)]).is_empty());
    let (held, problems) = extensions.shortcuts(&["ctrl+c"], &["ctrl+x"]);
    assert_eq!(held.iter().map(|shortcut| &*shortcut.command.name).collect::<Vec<_>>(), ["second"]);
    assert_eq!(problems.len(), 4, "{problems:?}");
    let (held, problems) = extensions.shortcuts(&["CTRL+x"], &[]);
    assert_eq!((held.len(), problems.len()), (1, 2), "{problems:?}");
    let renderers = extensions.renderers();
    let (_, renderer) = renderers.get(&RendererKey::Message("c".to_owned())).unwrap();
    let subject = RenderSubject::Message {
        custom_type: "c".to_owned(),
        content: Content::Text("text".to_owned()),
        details: None,
    };
    let room = RenderRoom { columns: 10, is_expanded: false };
    assert_eq!(renderer.render(&subject, room).await.unwrap(), Some(vec!["first".to_owned()]));
    assert!(renderers.get(&RendererKey::Tool("c".to_owned())).is_none());
    let mut scene = with(in_memory(), [Reply::text("1")], &extensions).await;
    let failed = failures(&pull(scene.session.prompt(Prompt::text("a"))).await);
    assert_eq!(failed.iter().map(|failure| failure.event.as_str()).collect::<Vec<_>>(), ["topic"]);
    assert_eq!(*received.lock().unwrap(), ["{\"a\":1}"]);
    let changes = extensions.take_provider_changes();
    assert!(matches!(&changes[0].1, ProviderChange::Register { name, .. } if name == "mine"));
    assert!(matches!(&changes[1].1, ProviderChange::Unregister { name } if name == "mine"));
    assert!(extensions.take_provider_changes().is_empty());
}
