//! Components of extensions.

use pinch_coding_agent::extension::component::{
    Component, ComponentAction, ComponentEvent, ComponentPlace, ComponentView, FooterFacts, WidgetPlace,
};
use pinch_coding_agent::extension::ui::UiUpdate;
use pinch_stdx::cancel::Cancel;
use serde_json::{from_value, json};

use super::*;
use crate::effect::Effect;
use crate::key::{Key, KeyCode, KeyPress};

fn size() -> Size {
    Size::new(80, 24)
}

/// Shows a component and returns its other half.
fn open(app: &mut App, place: ComponentPlace) -> (u64, Component) {
    let (component, view): (Component, ComponentView) = Component::new(place, Cancel::new());
    (app.open_component(view).unwrap(), component)
}

fn key(app: &mut App, key: Key) -> Vec<Effect> {
    app.input(&TerminalInput::Key(KeyPress::of(key)), size(), 0)
}

fn type_text(app: &mut App, text: &str) {
    for c in text.chars() {
        let press = KeyPress { key: Key::plain(KeyCode::Char(c)), text: Some(c) };
        app.input(&TerminalInput::Key(press), size(), 0);
    }
}

fn act(app: &mut App, id: u64, action: ComponentAction) -> Vec<Effect> {
    app.component_acted(id, action, size(), 0)
}

/// Returns what the component was told since the last call.
fn told(component: &mut Component) -> Vec<ComponentEvent> {
    let mut all = Vec::new();
    while let Some(Some(event)) = futures::FutureExt::now_or_never(component.next()) {
        all.push(event);
    }
    all
}

fn draw(app: &mut App, id: u64, component: &Component, lines: &[&str]) {
    component.pen().draw(lines.iter().map(ToString::to_string).collect());
    app.component_drawn(id);
}

fn texts<'a>(events: &'a [ComponentEvent]) -> Vec<&'a str> {
    let text = |event: &'a ComponentEvent| match event {
        ComponentEvent::Editor { text, .. } => text.as_deref(),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[test]
fn an_editor_gets_the_keys_and_passes_on_those_that_pinch_handles() {
    let mut app = started(&json!({}), &[]);
    let (id, mut component) = open(&mut app, ComponentPlace::Editor);
    assert!(screen(&mut app).contains("Type a message"), "until it has drawn, the screen shows pinch's own");
    draw(&mut app, id, &component, &["-- INSERT --", "\u{1b}]52;c;eA==\u{7}hello"]);
    insta::assert_snapshot!(screen(&mut app));
    told(&mut component);
    type_text(&mut app, "a");
    let expected = ComponentEvent::Input { data: "a".to_owned(), actions: Vec::new() };
    assert_eq!(told(&mut component), [expected]);
    for data in ["o", "k", "\u{1b}[D", "\u{1b}[200~pasted \u{1b}[201~"] {
        assert_eq!(act(&mut app, id, ComponentAction::Key(data.to_owned())), []);
    }
    assert_eq!(app.editor.text(), "opasted k");
    screen(&mut app);
    assert_eq!(texts(&told(&mut component)), ["opasted k"]);
    screen(&mut app);
    assert_eq!(told(&mut component), [], "nothing is told twice");
    let effects = act(&mut app, id, ComponentAction::Key("\r".to_owned()));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Submit(message) if message.text == "opasted k")));
}

#[test]
fn an_editor_with_its_own_text_submits_it_and_learns_of_changes_by_others() {
    let mut app = started(&json!({}), &[]);
    let (id, mut component) = open(&mut app, ComponentPlace::Editor);
    component.pen().set_text("mine".to_owned());
    draw(&mut app, id, &component, &["mine"]);
    assert_eq!(app.editor.text(), "mine");
    screen(&mut app);
    assert_eq!(texts(&told(&mut component)), Vec::<&str>::new(), "its own text");
    app.show(UiUpdate::EditorText("theirs".to_owned()));
    screen(&mut app);
    assert_eq!(texts(&told(&mut component)), ["theirs"]);
    let effects = act(&mut app, id, ComponentAction::Submit("done".to_owned()));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Submit(message) if message.text == "done")));
    screen(&mut app);
    assert_eq!(texts(&told(&mut component)), [""], "submitting empties the editor");
}

#[test]
fn the_text_stays_when_an_editor_ends_or_hangs() {
    let mut app = started(&json!({}), &[]);
    let (id, component) = open(&mut app, ComponentPlace::Editor);
    component.pen().set_text("draft".to_owned());
    draw(&mut app, id, &component, &["draft"]);
    drop(component);
    app.close_component(id);
    type_text(&mut app, "!");
    assert_eq!(app.editor.text(), "draft!");

    let (_, component) = open(&mut app, ComponentPlace::Editor);
    key(&mut app, Key::ctrl('c'));
    type_text(&mut app, "x");
    assert_eq!(app.editor.text(), "draft!", "the component has the keys");
    key(&mut app, Key::ctrl('c'));
    type_text(&mut app, "!");
    assert_eq!(app.editor.text(), "draft!x!", "what it has not heard is not lost");
    assert!(screen(&mut app).contains("does not respond"));
    drop(component);

    let (_, component) = open(&mut app, ComponentPlace::Editor);
    app.input(&TerminalInput::Paste("\n".to_owned()), size(), 0);
    key(&mut app, Key::ctrl('c'));
    key(&mut app, Key::ctrl('c'));
    assert_eq!(app.editor.text(), "draft!x!\n", "neither is what was pasted");
    drop(component);
    app.editor.set_text("draft!x!");

    let (_, component) = open(&mut app, ComponentPlace::Editor);
    type_text(&mut app, &"y".repeat(257));
    type_text(&mut app, "!");
    assert_eq!(app.editor.text(), format!("draft!x!{}!", "y".repeat(257)), "an extension that reads nothing");
    drop(component);
}

#[test]
fn a_change_that_the_editor_does_not_know_yet_is_not_undone_by_its_text() {
    let mut app = started(&json!({}), &[]);
    let (id, mut component) = open(&mut app, ComponentPlace::Editor);
    app.show(UiUpdate::EditorText("theirs".to_owned()));
    component.pen().set_text("mine".to_owned());
    draw(&mut app, id, &component, &["mine"]);
    assert_eq!(app.editor.text(), "theirs");
    screen(&mut app);
    assert_eq!(texts(&told(&mut component)), ["theirs"]);
}

#[test]
fn keys_between_two_presses_of_ctrl_c_keep_the_program_open() {
    let mut app = started(&json!({}), &[]);
    let (id, _component) = open(&mut app, ComponentPlace::Editor);
    let ctrl_c = || ComponentAction::Key("\u{3}".to_owned());
    key(&mut app, Key::ctrl('c'));
    assert_eq!(act(&mut app, id, ctrl_c()), []);
    type_text(&mut app, "x");
    key(&mut app, Key::ctrl('c'));
    assert_eq!(act(&mut app, id, ctrl_c()), []);
    key(&mut app, Key::ctrl('c'));
    assert_eq!(act(&mut app, id, ctrl_c()), [Effect::Exit]);
}

#[test]
fn a_dialog_comes_before_an_editor_which_returns_after_it() {
    let mut app = started(&json!({}), &[]);
    let (id, mut component) = open(&mut app, ComponentPlace::Editor);
    draw(&mut app, id, &component, &["vi"]);
    let (dialog, _other) = open(&mut app, ComponentPlace::Dialog);
    told(&mut component);
    type_text(&mut app, "x");
    assert_eq!(told(&mut component), []);
    app.close_component(dialog);
    type_text(&mut app, "y");
    assert_eq!(told(&mut component).len(), 1);
}

#[test]
fn footers_and_widgets_draw_themselves() {
    let mut app = started(&json!({}), &[]);
    app.show(UiUpdate::Status { key: "k".to_owned(), text: Some("indexing".to_owned()) });
    let (footer, mut component) = open(&mut app, ComponentPlace::Footer);
    assert!(screen(&mut app).contains("indexing"), "until it has drawn, the screen shows pinch's own");
    let mut facts = FooterFacts::default();
    facts.statuses.insert("k".to_owned(), "indexing".to_owned());
    assert!(told(&mut component).contains(&ComponentEvent::Footer(facts)));
    draw(&mut app, footer, &component, &["my footer"]);
    let place = WidgetPlace::BelowEditor;
    let (widget, below) = open(&mut app, ComponentPlace::Widget { key: "w".to_owned(), place });
    draw(&mut app, widget, &below, &["my widget"]);
    let (header, top) = open(&mut app, ComponentPlace::Header);
    draw(&mut app, header, &top, &["\u{1b}[31mmy header"]);
    draw(&mut app, header, &top, &["drawn again"]);
    insta::assert_snapshot!(screen(&mut app));
    app.show(UiUpdate::Widget { key: "w".to_owned(), lines: None, place: None });
    app.close_component(footer);
    let shown = screen(&mut app);
    assert!(!shown.contains("my widget") && shown.contains("indexing"), "{shown}");
}

#[test]
fn overlays_are_drawn_above_everything() {
    let mut app = started(&json!({}), &[]);
    app.status("a line of the conversation");
    let options = from_value(json!({"anchor": "bottom-right", "width": 20, "offsetY": -1, "margin": 1})).unwrap();
    let (id, mut component) = open(&mut app, ComponentPlace::Overlay(options));
    draw(&mut app, id, &component, &["┌────────┐", "│ 日本語 │\u{1b}[2J", "└────────┘"]);
    insta::assert_snapshot!(screen(&mut app));
    told(&mut component);
    type_text(&mut app, "a");
    assert_eq!(told(&mut component).len(), 1, "it has the keys");
    act(&mut app, id, ComponentAction::Focus(false));
    type_text(&mut app, "b");
    assert_eq!((told(&mut component), app.editor.text()), (vec![], "b".to_owned()));
    act(&mut app, id, ComponentAction::Focus(true));
    act(&mut app, id, ComponentAction::Hide(true));
    assert!(!screen(&mut app).contains("日本語"));
    type_text(&mut app, "c");
    assert_eq!(app.editor.text(), "bc", "a hidden one has no keys");
    act(&mut app, id, ComponentAction::Hide(false));
    let options = from_value(json!({"anchor": "top-left", "nonCapturing": true})).unwrap();
    act(&mut app, id, ComponentAction::Move(options));
    assert!(screen(&mut app).contains("\n┌────────┐") || screen(&mut app).starts_with("┌────────┐"));
}

#[test]
fn a_question_hides_an_overlay_until_it_is_answered() {
    let mut app = started(&json!({}), &[]);
    let (id, component) = open(&mut app, ComponentPlace::Overlay(from_value(json!({})).unwrap()));
    draw(&mut app, id, &component, &["over"; 6]);
    let (reply, _answer) = oneshot::channel();
    app.ask(&Dialog::new("Sure?", DialogKind::Confirm { message: String::new() }), reply, 0);
    let shown = screen(&mut app);
    assert!(shown.contains("Sure?") && !shown.contains("over"), "{shown}");
    app.close_question();
    assert!(screen(&mut app).contains("over"));
}

#[test]
fn overlays_fit_a_small_screen() {
    let mut app = started(&json!({}), &[]);
    let (id, component) = open(&mut app, ComponentPlace::Overlay(from_value(json!({"width": "150%"})).unwrap()));
    draw(&mut app, id, &component, &["0123456789".repeat(8).as_str(); 30]);
    let frame = app.view(Size::new(40, 10), false, 0);
    assert_eq!(frame.live.len(), 10);
    assert!(frame.live.iter().all(|row| crate::text::row_width(row) <= 40));
}
