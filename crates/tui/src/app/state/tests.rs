mod components;
mod dialogs;
mod expand;
mod fullscreen;
mod lines;
mod shortcuts;

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
        changelog: CHANGELOG,
        offline: false,
    };
    App::new(options, &TerminalCapabilities::of(&Env::default()))
}

/// Asks a question at this time.
fn ask(app: &mut App, now_ms: i64) -> Option<String> {
    let (reply, _answer) = oneshot::channel();
    let question = Dialog::new("Go on?", DialogKind::Confirm { message: String::new() });
    app.ask(&question, reply, now_ms);
    app.take_notification(NotificationKind::Osc9).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn questions_notify_a_user_who_has_been_away() {
    let mut app = app();
    assert_eq!(ask(&mut app, 50_000), None, "a terminal that reports no focus");
    app.input(&TerminalInput::Focus(false), Size::new(80, 24), 60_000);
    assert_eq!(ask(&mut app, 65_000), None, "just left");
    // A repeated report changes nothing.
    app.input(&TerminalInput::Focus(false), Size::new(80, 24), 66_000);
    let shown = "\u{1b}]9;pinch: A question waits for you (/work)\u{1b}\\";
    assert_eq!(ask(&mut app, 70_000).as_deref(), Some(shown));
    assert_eq!(app.take_notification(NotificationKind::Osc9), None, "once");
    app.input(&TerminalInput::Focus(true), Size::new(80, 24), 71_000);
    assert_eq!(ask(&mut app, 90_000), None, "back again");
}

const CHANGELOG: &str = "## [Unreleased]\n- soon\n## [1.0.0]\n- everything\n## [0.9.0]\n- nine\n## [0.8.0]\n- eight\n";

/// Creates the state after the start of an empty session with these settings.
fn started(settings: &serde_json::Value, vars: &[(&str, &str)]) -> App {
    let mut app = app();
    app.options.version = "1.0.0".to_owned();
    app.options.host = Host::builder().clock(0, 0).env(Env::default().with(vars.iter().copied())).build();
    let document = settings.as_object().unwrap().clone();
    let manager = pinch_coding_agent::settings::SettingsManager::in_memory(
        document,
        serde_json::Map::new(),
        &Host::builder().build(),
    );
    app.interface = Some(manager.settings().interface.clone());
    app
}

fn screen(app: &mut App) -> String {
    let frame = app.view(Size::new(80, 24), false, 0);
    frame.finished.iter().chain(&frame.live).map(|row| format!("{}\n", row.to_string().trim_end())).collect()
}

#[test]
fn changes_since_the_last_version_are_shown_once() {
    let note = ChangelogNews::Note("1.0.0".to_owned());
    let mut app = started(&serde_json::json!({"lastChangelogVersion": "0.8.0"}), &[]);
    assert_eq!(app.show_changes(), note);
    let shown = screen(&mut app);
    assert!(shown.contains("everything") && shown.contains("nine") && !shown.contains("eight"), "{shown}");
    let mut app = started(&serde_json::json!({"lastChangelogVersion": "1.0.0"}), &[]);
    assert_eq!(app.show_changes(), ChangelogNews::Nothing);
    let mut app = started(&serde_json::json!({}), &[]);
    assert_eq!(app.show_changes(), note, "the first start notes the version");
    assert!(!screen(&mut app).contains("everything"));
    let settings = serde_json::json!({"lastChangelogVersion": "0.8.0", "collapseChangelog": true});
    let mut app = started(&settings, &[]);
    assert_eq!(app.show_changes(), note);
    let shown = screen(&mut app);
    assert!(shown.contains("Updated to v1.0.0. /changelog") && !shown.contains("everything"), "{shown}");
    let mut app = started(&serde_json::json!({"lastChangelogVersion": "1.5.2"}), &[]);
    assert_eq!(app.show_changes(), ChangelogNews::Nothing, "settings that are shared with a later program");
}

#[test]
fn a_server_is_asked_for_a_later_version_only_if_configured() {
    let url = serde_json::json!({"versionCheckUrl": "https://example.com/v"});
    assert_eq!(started(&serde_json::json!({}), &[]).version_check(), None);
    assert_eq!(started(&url, &[]).version_check().as_deref(), Some("https://example.com/v"));
    for name in ["PI_OFFLINE", "PINCH_OFFLINE", "PI_SKIP_VERSION_CHECK", "PINCH_SKIP_VERSION_CHECK"] {
        assert_eq!(started(&url, &[(name, "1")]).version_check(), None, "{name}");
    }
    let mut app = started(&url, &[]);
    app.options.offline = true;
    assert_eq!(app.version_check(), None);
}

#[test]
fn the_system_theme_follows_the_terminal() {
    for theme in [serde_json::json!({"theme": "system"}), serde_json::json!({})] {
        let mut app = started(&theme, &[]);
        assert_eq!(app.chosen_theme(), None);
        let mut capabilities = TerminalCapabilities::of(&Env::default());
        for (color, expected) in [([250, 250, 250], "light"), ([0, 0, 0], "dark")] {
            let report = crate::terminal::Report::Background(color);
            capabilities.apply_report(&report);
            app.learn(&report, &capabilities);
            assert_eq!(app.theme.name(), expected);
        }
    }
    let app = started(&serde_json::json!({"theme": "light"}), &[]);
    assert_eq!(app.chosen_theme(), Some("light"));
}

#[test]
fn the_terminals_own_cursor_is_shown_unless_disabled() {
    let is_visible = |settings: &serde_json::Value| {
        let mut app = started(settings, &[]);
        app.view(Size::new(80, 24), false, 0).cursor.map(|cursor| cursor.visible)
    };
    assert_eq!(is_visible(&serde_json::json!({})), Some(true));
    assert_eq!(is_visible(&serde_json::json!({"showHardwareCursor": false})), Some(false));
}

#[test]
fn the_status_reported_to_the_terminal_follows_runs_and_questions() {
    let mut app = app();
    let status = |app: &mut App| app.view(Size::new(80, 24), false, 0).status;
    assert_eq!(status(&mut app), ProgramStatus::Idle);
    app.begin(SessionActivity::Working, 0);
    assert_eq!(status(&mut app), ProgramStatus::Working);
    let (reply, answer) = oneshot::channel();
    app.ask(&Dialog::new("Go on?", DialogKind::Confirm { message: String::new() }), reply, 0);
    assert_eq!(status(&mut app), ProgramStatus::Blocked);
    drop(answer);
    app.close_stale_questions();
    app.begin(SessionActivity::Idle, 0);
    app.outcome = ProgramStatus::Done;
    assert_eq!(status(&mut app), ProgramStatus::Done);
    app.input(&TerminalInput::Key(crate::key::KeyPress::typed('a')), Size::new(80, 24), 0);
    assert_eq!(status(&mut app), ProgramStatus::Idle);
}

#[test]
fn the_footer_shows_the_branch_that_was_read_last() {
    let mut app = app();
    let branch = |name: &str| Some(Head::Branch(name.to_owned()));
    assert!(app.set_head(branch("main")));
    assert!(screen(&mut app).contains("/work (main)"));
    assert!(!app.set_head(branch("main")), "nothing has changed");
    assert!(app.set_head(branch("feature/x")));
    assert!(screen(&mut app).contains("/work (feature/x)"));
}

#[test]
fn unknown_commands_from_before_the_session_go_back_to_the_editor() {
    let mut app = app();
    app.editor.set_text("/gret Bob");
    let enter = TerminalInput::Key(crate::key::KeyPress::of("enter".parse().unwrap()));
    let effects = app.input(&enter, Size::new(80, 24), 0);
    let [crate::effect::Effect::Submit(message)] = &effects[..] else { panic!("{effects:?}") };
    app.commands = vec!["greet".to_owned()];
    assert!(!app.is_held_back(&SubmittedMessage { text: "/greet Bob".to_owned(), images: Vec::new() }));
    assert!(!app.is_held_back(&SubmittedMessage { text: "hello".to_owned(), images: Vec::new() }));
    assert!(app.is_held_back(message));
    assert_eq!(app.editor_text(), "/gret Bob");
    assert!(screen(&mut app).contains("Unknown command /gret, did you mean /greet?"));
    // What was typed meanwhile is kept.
    app.editor.set_text("more");
    assert!(app.is_held_back(message));
    assert_eq!(app.editor_text(), "/gret Bob\n\nmore");
}
