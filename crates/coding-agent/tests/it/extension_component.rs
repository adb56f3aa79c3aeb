//! Components of JavaScript extensions, run by the bundled host.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::extension::component::{
    ComponentAction, ComponentChange, ComponentEvent, ComponentLayout, ComponentPlace, ComponentView, FooterFacts,
};
use pinch_coding_agent::extension::snapshot::{ThemeColors, UiSnapshot};
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
async fn wait_for<const N: usize>(view: &mut ComponentView, lines: [&str; N]) {
    let shown = async {
        let mut watcher = view.watcher();
        while view.lines() != lines {
            assert!(watcher.next().await.is_some(), "ended with {:?}", view.lines());
        }
    };
    let limit = std::time::Duration::from_secs(20);
    assert!(tokio::time::timeout(limit, shown).await.is_ok(), "still {:?}", view.lines());
}

#[tokio::test]
async fn a_component_draws_lines_gets_keys_and_ends_with_a_result() {
    let states = count(async |mut view| {
        assert!(view.send(layout(30)));
        wait_for(&mut view, ["\u{1b}[38;5;4mn=0\u{1b}[39m", "width 30 of 30x20"]).await;
        view.send(input("\u{1b}[A", &["tui.select.up"]));
        wait_for(&mut view, ["\u{1b}[38;5;4mn=1\u{1b}[39m", "width 30 of 30x20"]).await;
        view.send(layout(50));
        wait_for(&mut view, ["\u{1b}[38;5;4mn=1\u{1b}[39m", "width 50 of 50x20"]).await;
        let mut watcher = view.watcher();
        view.send(input("\r", &["tui.select.confirm"]));
        while watcher.next().await.is_some() {}
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result {"n":1}"#]);
    }
}

#[tokio::test]
async fn a_component_that_the_user_closes_has_no_result() {
    let states = count(async |mut view| {
        view.send(layout(30));
        wait_for(&mut view, ["\u{1b}[38;5;4mn=0\u{1b}[39m", "width 30 of 30x20"]).await;
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result "undefined""#]);
    }
}

#[tokio::test]
async fn a_component_that_fails_is_closed() {
    let states = count(async |mut view| {
        view.send(layout(30));
        let mut watcher = view.watcher();
        view.send(input("boom", &[]));
        while watcher.next().await.is_some() {}
    });
    if let Some(states) = states.await {
        assert_eq!(states, ["disposed true", r#"result "failed: broken component""#]);
    }
}

#[tokio::test]
async fn without_a_terminal_there_are_no_components() {
    let Some((mut stage, _folder)) = stage(COUNTER, [Reply::text("ok")]).await else { return };
    stage.ask("hi").await;
    assert!(states(&stage).contains(&r#"result "undefined""#.to_owned()), "{:?}", states(&stage));
}

/// Lets an extension show components at the start of a prompt, and returns them in order. They outlast the handler.
async fn show(setup: &str, n: usize) -> Option<(ProcessFixture, tempfile::TempDir, Vec<ComponentView>)> {
    let text = format!(
        r#"export default function (pi) {{
             pi.on("before_agent_start", async (event, ctx) => {{ {setup} }});
             pi.registerCommand("back", {{ handler: async (args, ctx) => {{
               ctx.ui.setEditorComponent(undefined);
               ctx.ui.setFooter(undefined);
             }} }});
           }}"#
    );
    let (mut stage, folder) = stage(&text, [Reply::text("ok")]).await?;
    let (sender, mut components) = mpsc::channel(8);
    stage.extensions.set_ui(Arc::new(ComponentUi(sender)));
    assert_eq!(failures(&stage.ask("hi").await), []);
    let mut views = Vec::new();
    while views.len() < n {
        let next = tokio::time::timeout(std::time::Duration::from_secs(20), components.recv()).await;
        views.push(next.unwrap().unwrap());
    }
    Some((stage, folder, views))
}

fn told(text: Option<&str>, lines: &[&str]) -> ComponentEvent {
    let lines = lines.iter().map(ToString::to_string).collect();
    ComponentEvent::Editor { text: text.map(str::to_owned), lines }
}

async fn next_action(watcher: &mut pinch_coding_agent::extension::component::ComponentWatcher) -> ComponentAction {
    let action = async {
        loop {
            match watcher.next().await {
                Some(ComponentChange::Action(action)) => return action,
                Some(ComponentChange::Drawn) => {}
                None => panic!("ended"),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), action).await.unwrap()
}

#[tokio::test]
async fn a_modal_editor_builds_on_that_of_pinch() {
    let setup = r#"
        class Modal extends pi.CustomEditor {
          mode = "insert";
          handleInput(data) {
            if (data === "\u001b" && this.mode === "insert") this.mode = "normal";
            else if (this.mode === "insert") super.handleInput(data);
            else if (data === "i") this.mode = "insert";
            else if (data === "h") super.handleInput("\u001b[D");
          }
          render(width) { return [...super.render(width), `${this.mode} ${this.getText()}`]; }
        }
        ctx.ui.setEditorComponent((tui, theme, keybindings) => new Modal(tui, theme, keybindings));
    "#;
    let Some((mut stage, _folder, mut views)) = show(setup, 1).await else { return };
    let mut view = views.remove(0);
    assert_eq!(view.place(), &ComponentPlace::Editor);
    let mut watcher = view.watcher();
    view.send(layout(30));
    wait_for(&mut view, ["insert "]).await;
    view.send(input("a", &[]));
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Key("a".to_owned()));
    view.send(told(Some("a"), &["> a"]));
    wait_for(&mut view, ["> a", "insert a"]).await;
    for data in ["\u{1b}", "x", "h"] {
        view.send(input(data, &[]));
    }
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Key("\u{1b}[D".to_owned()));
    wait_for(&mut view, ["> a", "normal a"]).await;
    assert_eq!(view.text(), None, "the text is that of pinch");
    assert_eq!(failures(&stage.ask("/back").await), []);
    while watcher.next().await.is_some() {}
}

#[tokio::test]
async fn an_editor_of_its_own_has_text_and_submits_it() {
    let setup = r#"
        ctx.ui.setEditorComponent(() => {
          let text = "";
          return {
            getText: () => text,
            setText: (next) => void (text = next),
            render: () => [`text ${text}`],
            handleInput(data) {
              if (data === "\u001b") return false;
              if (data === "\r") this.onSubmit(text);
              else text += data;
            },
          };
        });
    "#;
    let Some((_stage, _folder, mut views)) = show(setup, 1).await else { return };
    let mut view = views.remove(0);
    let mut watcher = view.watcher();
    view.send(layout(30));
    for data in ["a", "b"] {
        view.send(input(data, &[]));
    }
    wait_for(&mut view, ["text ab"]).await;
    assert_eq!(view.text().as_deref(), Some("ab"));
    view.send(told(Some("given"), &[]));
    wait_for(&mut view, ["text given"]).await;
    view.send(input("\u{1b}", &[]));
    view.send(input("\r", &[]));
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Key("\u{1b}".to_owned()));
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Submit("given".to_owned()));
}

#[tokio::test]
async fn footers_headers_and_widgets_stay_until_they_are_removed() {
    let setup = r#"
        ctx.ui.setFooter((tui, theme, data) => {
          let changes = 0;
          data.onBranchChange(() => changes++);
          return { render: () => [`${data.getGitBranch()} ${changes} ${[...data.getExtensionStatuses()]} ${data.getAvailableProviderCount()}`] };
        });
        ctx.ui.setHeader((tui, theme) => ({ render: (width) => [theme.fg("accent", "top"), `${width}`] }));
        ctx.ui.setWidget("w", () => ({ render: () => ["widget"] }), { placement: "belowEditor" });
    "#;
    let Some((mut stage, _folder, mut views)) = show(setup, 3).await else { return };
    let mut widget = views.pop().unwrap();
    let mut header = views.pop().unwrap();
    let mut footer = views.pop().unwrap();
    let place = pinch_coding_agent::extension::ui::WidgetPlace::BelowEditor;
    assert_eq!(widget.place(), &ComponentPlace::Widget { key: "w".to_owned(), place });
    for view in [&widget, &header, &footer] {
        view.send(layout(30));
    }
    wait_for(&mut widget, ["widget"]).await;
    wait_for(&mut header, ["\u{1b}[38;5;4mtop\u{1b}[39m", "30"]).await;
    let mut facts = FooterFacts::default();
    facts.branch = Some("main".to_owned());
    facts.statuses.insert("k".to_owned(), "busy".to_owned());
    facts.n_providers = 2;
    footer.send(ComponentEvent::Footer(facts));
    wait_for(&mut footer, ["main 1 k,busy 2"]).await;
    let mut watcher = footer.watcher();
    assert_eq!(failures(&stage.ask("/back").await), []);
    while watcher.next().await.is_some() {}
    assert!(widget.send(layout(31)), "the others stay");
}

#[tokio::test]
async fn overlays_move_with_the_screen_and_obey_their_handle() {
    let setup = r#"
        let handle;
        void ctx.ui.custom(() => ({
          render: () => ["over"],
          handleInput(data) {
            if (data === "h") handle.setHidden(true);
            if (data === "f") handle.unfocus();
          },
        }), {
          overlay: true,
          overlayOptions: { anchor: "top-right", width: "50%", margin: 2, visible: (width) => width >= 60 },
          onHandle: (given) => (handle = given),
        });
    "#;
    let Some((_stage, _folder, mut views)) = show(setup, 1).await else { return };
    let mut view = views.remove(0);
    let ComponentPlace::Overlay(options) = view.place().clone() else { panic!("{:?}", view.place()) };
    assert_eq!(options.bounds((100, 40), 1).column, 48);
    let mut watcher = view.watcher();
    let sized = |columns| {
        let mut layout = ComponentLayout::default();
        (layout.columns, layout.rows, layout.screen) = (columns, 20, Some((columns, 20)));
        ComponentEvent::Layout(layout)
    };
    for (columns, is_hidden) in [(80, false), (40, true), (70, false)] {
        view.send(sized(columns));
        assert_eq!(next_action(&mut watcher).await, ComponentAction::Move(options.clone()));
        assert_eq!(next_action(&mut watcher).await, ComponentAction::Hide(is_hidden));
    }
    wait_for(&mut view, ["over"]).await;
    view.send(input("h", &[]));
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Hide(true));
    view.send(input("f", &[]));
    assert_eq!(next_action(&mut watcher).await, ComponentAction::Focus(false));
}

/// A terminal whose themes are known.
struct ThemedUi;

impl Ui for ThemedUi {
    fn ask<'a>(&'a self, _: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async { None })
    }

    fn show(&self, _: UiUpdate) {}

    fn snapshot(&self) -> Option<Arc<UiSnapshot>> {
        let mut snapshot = UiSnapshot::default();
        snapshot.themes = Arc::new(vec![ThemeColors::default()]);
        Some(Arc::new(snapshot))
    }
}

#[tokio::test]
async fn what_only_the_terminal_of_pi_has_is_ignored_and_reported_where_there_is_one() {
    let text = r#"
        export default function (pi) {
          pi.on("before_agent_start", async (event, ctx) => {
            ctx.ui.addAutocompleteProvider((current) => current);
            const unsubscribe = [ctx.ui.onTerminalInput(() => undefined), ctx.ui.onTerminalInput(() => undefined)];
            for (const one of unsubscribe) one();
            await pi.appendEntry("mode", ctx.mode);
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok"), Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    stage.extensions.set_ui(Arc::new(ThemedUi));
    let told: Vec<_> = failures(&stage.ask("hi").await).into_iter().map(|failure| failure.error.to_string()).collect();
    let expected = ["ui.addAutocompleteProvider", "ui.onTerminalInput"];
    assert_eq!(told, expected.map(|what| format!("{what} is not supported by pinch, and ignored")));
    assert_eq!(states(&stage), [r#"mode "print""#, r#"mode "tui""#]);
}
