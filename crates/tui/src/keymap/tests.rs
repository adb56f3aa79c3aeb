use std::path::Path;

use super::*;

fn parse(text: &str) -> (Keymap, Vec<String>) {
    let (keymap, problems) = Keymap::parse(Path::new("k.json"), text);
    (keymap, problems.iter().map(ToString::to_string).collect())
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

#[test]
fn every_default_is_valid_and_every_id_is_unique() {
    let keymap = Keymap::default();
    for (at, action) in KeyAction::ALL.iter().enumerate() {
        assert_eq!(*action as usize, at);
        assert_eq!(keymap.keys(*action).len(), action.default_keys().len(), "{}", action.id());
        assert_eq!(KeyAction::ALL.iter().filter(|other| other.id() == action.id()).count(), 1, "{}", action.id());
    }
}

#[test]
fn no_default_hides_another_one_in_the_same_context() {
    let keymap = Keymap::default();
    for action in KeyAction::ALL {
        for chord in keymap.keys(*action) {
            let found = keymap.resolve(action.context(), chord.keys());
            assert_eq!(found, KeyMatch::Action(*action), "{chord} in {:?}", action.context());
        }
    }
}

#[test]
fn the_defaults() {
    let keymap = Keymap::default();
    // Two keys differ on Windows.
    let shown = KeyAction::ALL.iter().filter(|action| !matches!(action, KeyAction::Suspend | KeyAction::PasteImage));
    let lines: Vec<String> = shown.map(|action| format!("{} {}", action.id(), keymap.hint(*action))).collect();
    insta::assert_snapshot!(lines.join("\n"));
    let others = [KeyAction::Suspend, KeyAction::PasteImage].map(|action| keymap.hint(action));
    assert_eq!(others, if cfg!(windows) { ["none", "alt+v"] } else { ["ctrl+z", "ctrl+v"] });
}

#[test]
fn a_list_replaces_the_defaults_of_its_action_only() {
    let (keymap, problems) = parse(r#"{"tui.editor.cursorUp": ["ctrl+p", "f3"], "tui.input.tab": [], "$schema": "x"}"#);
    assert_eq!(problems, [""; 0]);
    assert_eq!(keymap.hint(KeyAction::CursorUp), "ctrl+p/f3");
    assert_eq!(keymap.hint(KeyAction::Tab), "none");
    assert_eq!(keymap.hint(KeyAction::ModelCycleForward), "ctrl+p", "other actions keep their keys");
    assert_eq!(keymap.action(KeyContext::Editor, &key("up")), None);
    assert_eq!(keymap.action(KeyContext::Editor, &key("f3")), Some(KeyAction::CursorUp));
}

#[test]
fn names_of_older_versions_are_used_unless_the_new_name_is_present() {
    let (keymap, problems) = parse(r#"{"submit": "ctrl+s", "cursorUp": "f1", "tui.editor.cursorUp": "f2"}"#);
    assert_eq!(problems, [""; 0]);
    assert_eq!(keymap.hint(KeyAction::Submit), "ctrl+s");
    assert_eq!(keymap.hint(KeyAction::CursorUp), "f2");
}

#[test]
fn bindings_of_the_user_take_precedence_over_defaults() {
    let (keymap, _) = parse(r#"{"tui.editor.undo": "ctrl+k"}"#);
    assert_eq!(keymap.action(KeyContext::Editor, &key("ctrl+k")), Some(KeyAction::Undo));
}

#[test]
fn problems_are_reported_and_the_rest_is_used() {
    let (keymap, problems) = parse(
        r#"{ // comments are fine
        "tui.input.submit": "hyper+x", "tui.editor.undo": ["f5", 3], "tui.editor.yank": {}, "editor.cursorup": "up", "zz": "x" }"#,
    );
    insta::assert_snapshot!(problems.join("\n"), @r#"
    k.json:tui.editor.yank: {} is neither a key nor a list of keys. Write a key such as "ctrl+x", a list such as ["up", "ctrl+p"], or [] for no key
    k.json:tui.editor.undo: 3 is not a key. Write a key such as "ctrl+x", a list such as ["up", "ctrl+p"], or [] for no key
    k.json:tui.input.submit: "hyper+x" is not a key. Write a key such as "ctrl+x", a list such as ["up", "ctrl+p"], or [] for no key
    k.json:editor.cursorup: is not an action. Did you mean tui.editor.cursorUp?
    k.json:zz: is not an action. Remove it, or correct its name; /hotkeys lists all actions
    "#);
    assert_eq!(keymap.hint(KeyAction::Submit), "enter", "a mistake unbinds nothing");
    assert_eq!(keymap.hint(KeyAction::Undo), "f5");
}

#[test]
fn an_unreadable_file_leaves_the_defaults() {
    for (text, problem) in [
        ("{\n\"a\": x}", "k.json:2:6: is not valid JSON: expected value. Fix it there; the file is left unchanged"),
        ("[]", "k.json: must be a JSON object. Write {\"tui.input.submit\": \"ctrl+s\"}, for example"),
    ] {
        assert_eq!(parse(text), (Keymap::default(), vec![problem.to_owned()]));
    }
    assert_eq!(parse(" "), (Keymap::default(), Vec::new()));
}

#[test]
fn a_key_bound_twice_conflicts_only_in_overlapping_contexts() {
    let (_, problems) = parse(
        r#"{"app.model.select": "ctrl+x", "tui.editor.undo": "ctrl+x", "tui.select.up": "ctrl+x", "app.tree.editLabel": ["ctrl+x"]}"#,
    );
    assert_eq!(
        problems,
        [
            "k.json:app.model.select: ctrl+x is also bound to tui.editor.undo. Give one of them another key",
            "k.json:app.tree.editLabel: ctrl+x is also bound to tui.select.up. Give one of them another key",
        ]
    );
}

#[test]
fn keys_sent_as_the_same_byte_are_the_same_key() {
    let keymap = Keymap::default();
    for text in ["ctrl+-", "ctrl+_", "ctrl+7"] {
        assert_eq!(keymap.action(KeyContext::Editor, &key(text)), Some(KeyAction::Undo), "{text}");
    }
    assert_eq!(keymap.action(KeyContext::Editor, &key("alt+_")), None);
    assert_eq!(parse(r#"{"app.redraw": "ctrl+@"}"#).0.hint(KeyAction::Redraw), "ctrl+space");
}

#[test]
fn chords_wait_for_their_next_key() {
    let (keymap, problems) = parse(r#"{"app.editor.external": "ctrl+x ctrl+e"}"#);
    assert_eq!(problems, [""; 0]);
    let resolve =
        |keys: &[&str]| keymap.resolve(KeyContext::App, &keys.iter().map(|text| key(text)).collect::<Vec<_>>());
    assert_eq!(resolve(&["ctrl+x"]), KeyMatch::Prefix);
    assert_eq!(resolve(&["ctrl+x", "ctrl+e"]), KeyMatch::Action(KeyAction::ExternalEditor));
    assert_eq!(resolve(&["ctrl+x", "ctrl+g"]), KeyMatch::None);
    assert_eq!(keymap.action(KeyContext::App, &key("ctrl+x")), None);
    assert_eq!(keymap.hint(KeyAction::ExternalEditor), "ctrl+x ctrl+e");
}

#[test]
fn special_lists_inherit_the_keys_of_lists() {
    let keymap = Keymap::default();
    assert_eq!(keymap.action(KeyContext::Tree, &key("up")), Some(KeyAction::SelectUp));
    assert_eq!(keymap.action(KeyContext::Tree, &key("ctrl+a")), Some(KeyAction::TreeFilterAll));
    assert_eq!(keymap.action(KeyContext::Select, &key("ctrl+a")), None);
    assert_eq!(keymap.action(KeyContext::Editor, &key("enter")), Some(KeyAction::Submit));
}

#[test]
fn shift_changes_nothing_about_backspace_and_delete_unless_it_is_bound() {
    let action = |keymap: &Keymap, name: &str| keymap.action(KeyContext::Editor, &key(name));
    let keymap = Keymap::default();
    assert_eq!(action(&keymap, "shift+backspace"), Some(KeyAction::DeleteCharBackward));
    assert_eq!(action(&keymap, "shift+delete"), Some(KeyAction::DeleteCharForward));
    assert_eq!(action(&keymap, "shift+alt+backspace"), Some(KeyAction::DeleteWordBackward));
    let (keymap, _) = parse(r#"{"tui.editor.undo": "shift+backspace"}"#);
    assert_eq!(action(&keymap, "shift+backspace"), Some(KeyAction::Undo));
}
