//! Components of JavaScript extensions, run by the bundled host.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::extension::component::{ComponentEvent, ComponentLayout, ComponentView};
use pinch_coding_agent::extension::ui::{Dialog, DialogReply, Ui, UiUpdate};
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use tokio::sync::mpsc;

use crate::extension_hooks::failures;
use crate::extension_node::{stage, states};
use crate::extension_process::ProcessFixture;

/// Passes components on to the test.
struct ComponentUi(mpsc::Sender<ComponentView>);

impl Ui for ComponentUi {
    fn ask<'a>(&'a self, _: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async { None })
    }

    fn show(&self, _: UiUpdate) {}

    fn show_component(&self, component: ComponentView) -> bool {
        self.0.try_send(component).is_ok()
    }
}

/// A counter: up counts, enter is done with the number.
const COUNTER: &str = r#"
    export default function (pi) {
      pi.on("before_agent_start", async (event, ctx) => {
        let result;
        try {
          result = await ctx.ui.custom((tui, theme, keybindings, done) => {
            let n = 0;
            return {
              render: (width) => [theme.fg("accent", `n=${n}`), `width ${width} of ${tui.terminal.columns}x${tui.terminal.rows}`],
              handleInput(data) {
                if (data === "boom") throw new Error("broken component");
                if (data === "\u001b[A") n++;
                if (keybindings.matches(data, "tui.select.confirm")) done({ n });
              },
              dispose: () => void pi.appendEntry("disposed", true),
            };
          });
        } catch (error) {
          result = `failed: ${error.message}`;
        }
        await pi.appendEntry("result", result ?? "undefined");
      });
    }"#;

/// Asks something, which shows the counter, and meanwhile acts as the user.
async fn count(act: impl AsyncFnOnce(ComponentView)) -> Option<Vec<String>> {
    let (mut stage, _folder): (ProcessFixture, _) = stage(COUNTER, [Reply::text("ok")]).await?;
    let (sender, mut components) = mpsc::channel(1);
    stage.extensions.set_ui(Arc::new(ComponentUi(sender)));
    let acting = async {
        let view = components.recv().await.unwrap();
        act(view).await;
    };
    let (events, ()) = futures::join!(stage.ask("hi"), acting);
    assert_eq!(failures(&events), []);
    Some(states(&stage))
}

fn layout(columns: usize) -> ComponentEvent {
    let mut layout = ComponentLayout::default();
    (layout.columns, layout.rows) = (columns, 20);
    layout.foreground.insert("accent".to_owned(), "38;5;4".to_owned());
    ComponentEvent::Layout(layout)
}

fn input(data: &str, actions: &[&str]) -> ComponentEvent {
    ComponentEvent::Input { data: data.to_owned(), actions: actions.iter().map(ToString::to_string).collect() }
}

/// Waits until the lines are these.
async fn wait_for(view: &ComponentView, lines: [&str; 2]) {
    let mut watcher = view.watcher();
    while view.lines() != lines {
        assert!(watcher.changed().await, "ended with {:?}", view.lines());
    }
}

#[tokio::test]
async fn a_component_draws_lines_gets_keys_and_ends_with_a_result() {
    let states = count(async |view| {
        assert!(view.send(layout(30)));
        wait_for(&view, ["\u{1b}[38;5;4mn=0\u{1b}[39m", "width 30 of 30x20"]).await;
        view.send(input("\u{1b}[A", &["tui.select.up"]));
        wait_for(&view, ["\u{1b}[38;5;4mn=1\u{1b}[39m", "width 30 of 30x20"]).await;
        view.send(layout(50));
        wait_for(&view, ["\u{1b}[38;5;4mn=1\u{1b}[39m", "width 50 of 50x20"]).await;
        let mut watcher = view.watcher();
        view.send(input("\r", &["tui.select.confirm"]));
        while watcher.changed().await {}
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result {"n":1}"#]);
    }
}

#[tokio::test]
async fn a_component_that_the_user_closes_has_no_result() {
    let states = count(async |view| {
        view.send(layout(30));
        wait_for(&view, ["\u{1b}[38;5;4mn=0\u{1b}[39m", "width 30 of 30x20"]).await;
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result "undefined""#]);
    }
}

#[tokio::test]
async fn a_component_that_fails_is_closed() {
    let states = count(async |view| {
        view.send(layout(30));
        let mut watcher = view.watcher();
        view.send(input("boom", &[]));
        while watcher.changed().await {}
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result "failed: broken component""#]);
    }
}

#[tokio::test]
async fn without_a_terminal_there_are_no_components() {
    let Some((mut stage, _folder)) = stage(COUNTER, [Reply::text("ok")]).await else { return };
    stage.ask("hi").await;
    let why = "failed: There is no terminal that can show a component";
    assert!(states(&stage).contains(&format!("result {why:?}")), "{:?}", states(&stage));
}
