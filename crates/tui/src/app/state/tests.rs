mod fullscreen;

use pinch_coding_agent::extension::ui::{Dialog, DialogKind};
use pinch_stdx::host::{Env, Host};
use tokio::sync::oneshot;

use super::*;
use crate::terminal::{NotificationKind, Size, TerminalInput};

fn app() -> App {
    let options = AppOptions {
        host: Host::builder().clock(0, 0).build(),
        version: "1".to_owned(),
        agent_dir: PathBuf::from("/nowhere"),
        cwd: PathBuf::from("/work"),
        theme: None,
        tui_mode: None,
        browser: None,
        verbose: false,
    };
    App::new(options, &TerminalCapabilities::of(&Env::default()))
}

/// Asks something at this time.
fn ask(app: &mut App, now_ms: i64) -> Option<String> {
    let (reply, _answer) = oneshot::channel();
    let question = Dialog::new("Go on?", DialogKind::Confirm { message: String::new() });
    app.ask(&question, reply, now_ms);
    app.take_notification(NotificationKind::Osc9).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn questions_notify_whoever_is_away_for_a_while() {
    let mut app = app();
    assert_eq!(ask(&mut app, 50_000), None, "a terminal that reports no focus");
    app.input(&TerminalInput::Focus(false), Size::new(80, 24), 60_000);
    assert_eq!(ask(&mut app, 65_000), None, "just left");
    // A second report of the same changes nothing.
    app.input(&TerminalInput::Focus(false), Size::new(80, 24), 66_000);
    let shown = "\u{1b}]9;pinch: A question waits for you (/work)\u{1b}\\";
    assert_eq!(ask(&mut app, 70_000).as_deref(), Some(shown));
    assert_eq!(app.take_notification(NotificationKind::Osc9), None, "once");
    app.input(&TerminalInput::Focus(true), Size::new(80, 24), 71_000);
    assert_eq!(ask(&mut app, 90_000), None, "back again");
}
