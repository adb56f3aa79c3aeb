//! Keys of extensions.

use futures::future::BoxFuture;
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionError, ExtensionHandle, Extensions, Points, Registrations,
};

use super::*;
use crate::effect::Effect;
use crate::key::{Key, KeyCode, KeyPress};

struct NamedCommand(&'static str);

impl Command for NamedCommand {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> Option<&str> {
        Some("Count words")
    }

    fn run<'a>(&'a self, _: &'a str, _: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async { Ok(()) })
    }
}

/// An extension that binds these keys.
struct KeyExtension(&'static str, &'static [&'static str]);

impl Extension for KeyExtension {
    fn name(&self) -> &str {
        self.0
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        for key in self.1 {
            to.shortcut(*key, Arc::new(NamedCommand(self.0)));
        }
        Ok(())
    }
}

fn press(app: &mut App, key: &str) -> Vec<Effect> {
    let press = KeyPress::of(key.parse().unwrap());
    app.input(&TerminalInput::Key(press), Size::new(80, 24), 0)
}

#[test]
fn extensions_bind_keys_that_are_not_reserved_and_the_last_one_wins() {
    let all: [Arc<dyn Extension>; 2] = [
        Arc::new(KeyExtension("one", &["shift+ctrl+x", "ctrl+c", "ctrl+x m", "hyper+q", "f5"])),
        Arc::new(KeyExtension("two", &["Ctrl+Shift+X", "ctrl+y"])),
    ];
    let mut app = started(&serde_json::json!({}), &[]);
    app.bind_shortcuts(&Extensions::load(&app.options.host.clone(), all), true);
    let name = |app: &App, key: &str| app.shortcut(key.parse().unwrap()).map(|found| found.name.clone());
    assert_eq!(name(&app, "ctrl+shift+x").as_deref(), Some("two"));
    assert_eq!(name(&app, "f5").as_deref(), Some("one"));
    assert_eq!(name(&app, "ctrl+y").as_deref(), Some("two"));
    assert_eq!(name(&app, "ctrl+c"), None);
    let f5 = Key::plain(KeyCode::F(5));
    assert_eq!(press(&mut app, "f5"), [Effect::Shortcut(f5)]);
    assert_ne!(press(&mut app, "ctrl+c"), [Effect::Shortcut(Key::ctrl('c'))]);
    let shown = screen(&mut app).split_whitespace().collect::<Vec<_>>().join(" ");
    for warning in [
        "\"ctrl+c\" from one conflicts with a built-in shortcut",
        "\"ctrl+y\" from two overrides a built-in shortcut",
        "\"Ctrl+Shift+X\" of one is taken by two",
        "\"ctrl+x m\" from one is not a key",
        "\"hyper+q\" from one is not a key",
    ] {
        assert!(shown.contains(warning), "{warning:?}:\n{shown}");
    }
    assert!(app.extension_keys().contains("- `f5`: Count words"), "{}", app.extension_keys());
}

#[test]
fn a_dialog_gets_its_keys_before_extensions() {
    let mut app = started(&serde_json::json!({}), &[]);
    app.bind_shortcuts(
        &Extensions::load(&app.options.host.clone(), [Arc::new(KeyExtension("one", &["up"])) as _]),
        false,
    );
    ask(&mut app, 0);
    assert_eq!(press(&mut app, "up"), []);
}
