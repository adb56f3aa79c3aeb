//! Every dialog on screens of three sizes.

use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::extension::ui::{Dialog as Question, DialogKind};
use pinch_coding_agent::login::LoginQuestion;
use pinch_coding_agent::services::{ServiceOptions, Services};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::SessionSummary;
use pinch_llm::message::Message;
use pinch_llm::oauth::SignInPage;
use serde_json::json;

use super::*;
use crate::dialog::{
    ChoiceDialog, FirstLoginDialog, ForkDialog, LoginView, ModelDialog, QueueDialog, ScopedModelDialog, SessionDialog,
    TreeDialog, TreeFilter,
};
use crate::effect::{Effect, WaitingMessage};
use crate::text::row_width;
use crate::widget::PickItem;

const SIZES: [(u16, u16); 3] = [(80, 24), (200, 60), (40, 10)];
/// The current time, and one hour, in milliseconds.
const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;

fn model(provider: &str, id: &str, name: &str) -> Arc<Model> {
    let record = json!({"id": id, "name": name, "provider": provider, "api": "anthropic-messages",
        "baseUrl": "https://example.com", "reasoning": true, "input": ["text", "image"], "contextWindow": 200_000,
        "maxTokens": 64_000, "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}});
    Arc::new(Model::from_record(&record).unwrap())
}

fn models() -> Vec<Arc<Model>> {
    let mut models = vec![
        model("anthropic", "claude-sonnet-4-5", "Claude Sonnet 4.5"),
        model("anthropic", "claude-opus-4-1-20250805-with-a-very-long-id", "Claude Opus 4.1"),
    ];
    models.extend((1..=12).map(|n| model("openai", &format!("gpt-{n}"), &format!("GPT {n}"))));
    models
}

fn summary(n: i64, name: Option<&str>, first: &str) -> SessionSummary {
    SessionSummary {
        path: format!("/sessions/{n}.jsonl").into(),
        id: format!("id-{n}").into(),
        cwd: "/work".to_owned(),
        name: name.map(str::to_owned),
        parent_session: (n == 2).then(|| "/sessions/1.jsonl".to_owned()),
        created: Some(NOW - n * HOUR),
        modified: NOW - n * HOUR,
        file_modified: NOW - n * HOUR,
        message_count: 3 * usize::try_from(n).unwrap(),
        first_message: first.to_owned(),
        search_text: first.into(),
    }
}

fn sessions() -> Vec<SessionSummary> {
    let mut all = vec![
        summary(1, Some("A named session"), "hello"),
        summary(
            2,
            None,
            "A fork with a first message that is much longer than a row of a small screen can be, as they are",
        ),
        summary(3, None, "日本語の最初のメッセージ"),
    ];
    all.extend((4..=15).map(|n| summary(n, None, &format!("Message {n}"))));
    all
}

async fn tree(host: &Host) -> TreeDialog {
    let mut log = SessionLog::in_memory(host, NewSession::in_directory("/work"));
    let root = log.append_message(Message::user("Explain the parser", 0)).await.unwrap();
    for branch in ["left", "right"] {
        log.move_to(&root).unwrap();
        for n in 1..=6 {
            let text = format!("{branch} {n}: a question that is long enough to be cut off on a narrow screen");
            log.append_message(Message::user(text, 0)).await.unwrap();
        }
    }
    TreeDialog::new(&log, TreeFilter::Default, 12, true, host.clone())
}

fn providers() -> Vec<(PickItem, Vec<Effect>)> {
    ["Anthropic", "GitHub Copilot", "OpenAI"]
        .map(|name| (PickItem::new(name).detail("• unconfigured"), vec![Effect::Login(name.to_owned())]))
        .to_vec()
}

fn question(kind: DialogKind) -> Question {
    Question::new("Deploy?\nThe second line of a title", kind)
}

fn asked(app: &mut App, kind: DialogKind) {
    // The question stays open while there is somebody who waits for the answer.
    let (reply, answer) = oneshot::channel();
    app.ask(&question(kind), reply, NOW);
    std::mem::forget(answer);
}

/// Opens a dialog.
async fn open(name: &str, app: &mut App) {
    let host = Host::builder().clock(NOW, 0).build();
    let services = Services::load(&ServiceOptions::in_memory(host.clone()), std::path::Path::new("/work"));
    match name {
        "models" => {
            let problem = Some("models.json: line 3: expected a comma".to_owned());
            let scope = [];
            app.open(Box::new(ModelDialog::new(models(), &scope, models().remove(0), "", problem)));
        }
        "scoped models" => {
            let enabled = vec!["openai/gpt-2".to_owned(), "anthropic/claude-sonnet-4-5".to_owned()];
            app.open(Box::new(ScopedModelDialog::new(&models(), enabled)));
        }
        "thinking" => app.open_thinking(),
        "sessions" => app.open(Box::new(SessionDialog::new(sessions(), Some("/sessions/1.jsonl".into())))),
        "no sessions" => app.open(Box::new(SessionDialog::new(Vec::new(), None))),
        "tree" => app.open(Box::new(tree(&host).await)),
        "fork" => {
            let point = |n: usize| (EntryId::from(&*format!("e{n}")), format!("Question {n}\nwith a second line"));
            app.open(Box::new(ForkDialog::new((1..=14).map(point).collect())));
        }
        "settings" => app.open_settings(&services),
        "themes" => app.open_themes(&services),
        "login" => app.open(Box::new(ChoiceDialog::new("Log in to a provider", providers()))),
        "first login" => app.open(Box::new(FirstLoginDialog::new(providers(), &[]))),
        "login in the browser" => {
            let url =
                "https://claude.ai/oauth/authorize?code=true&client_id=0a1b2c3d-0000-4000-8000-000000000000&scope=user";
            let page = SignInPage::new(url, "Sign in, then return to the terminal");
            let progress = Some("Waiting for the browser".to_owned());
            app.open(Box::new(LoginView::new("Anthropic", Some(page), progress, Some(&LoginQuestion::Paste))));
        }
        "trust" => app.open_trust(&services),
        "queue" => {
            let message = |n: u64| WaitingMessage {
                id: Some(n),
                kind: if n.is_multiple_of(2) { QueueKind::FollowUp } else { QueueKind::Steering },
                text: format!("Message {n} that waits until the model has finished what it does at the moment"),
            };
            app.open(Box::new(QueueDialog::new((1..=10).map(message).collect())));
        }
        "select" => {
            let options = (1..=12).map(|n| format!("Option {n}")).collect();
            asked(app, DialogKind::Select { options });
        }
        "confirm" => asked(app, DialogKind::Confirm { message: "It takes ten minutes.\n".repeat(20) }),
        "input" => asked(app, DialogKind::Input { placeholder: Some("main".to_owned()) }),
        "editor" => asked(app, DialogKind::Editor { prefill: Some("one\ntwo\n".repeat(20)) }),
        other => panic!("unknown dialog {other}"),
    }
}

/// Draws the screen, and checks that it fits.
fn drawn(app: &mut App, size: (u16, u16)) -> String {
    let frame = app.view(Size::new(size.0, size.1), false, NOW);
    assert!(frame.live.len() <= usize::from(size.1), "{} rows on {size:?}", frame.live.len());
    let mut shown = format!("{}x{}\n", size.0, size.1);
    for row in &frame.live {
        assert!(row_width(row) <= usize::from(size.0), "{row} on {size:?}");
        shown.push_str(&format!("{}\n", row.to_string().trim_end()));
    }
    shown
}

#[tokio::test]
async fn every_dialog_fits_on_screens_of_three_sizes() {
    for name in [
        "models",
        "scoped models",
        "thinking",
        "sessions",
        "no sessions",
        "tree",
        "fork",
        "settings",
        "themes",
        "login",
        "first login",
        "login in the browser",
        "trust",
        "queue",
        "select",
        "confirm",
        "input",
        "editor",
    ] {
        let mut app = started(&json!({}), &[]);
        app.model_changed(&models()[0], ThinkingLevel::Medium);
        open(name, &mut app).await;
        let shown: Vec<String> = SIZES.into_iter().map(|size| drawn(&mut app, size)).collect();
        insta::assert_snapshot!(name.replace(' ', "_"), shown.join("\n"));
    }
}
