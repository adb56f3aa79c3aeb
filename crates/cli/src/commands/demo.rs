//! `pinch demo`: the main job, needing nothing.
//!
//! It runs the production code on a scripted model server of its own, or on a real provider with `--provider` and `--model`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pinch_embed::config::Config;
use pinch_embed::engine::Engine;
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::replies::chunk::{BreakPreference, Chunking};
use pinch_embed::run::request::BlockReplies;
use pinch_embed::run::{RunRequest, RunResult};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::fs::atomic::{Access, write_atomic};
use pinch_embed::stdx::host::Host;
use pinch_testing::server::Server;
use serde_json::{Value, json};

use super::agent;
use crate::demo_script as script;
use crate::exit::{Failure, warn_of};
use crate::show::events::EventLines;
use crate::show::payloads;
use crate::show::timeline::Timeline;
use crate::signals;

/// What `pinch demo` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Runs the same job on this real provider.
    #[arg(long, value_name = "NAME", requires = "model")]
    provider: Option<String>,

    /// The model of the real provider.
    #[arg(long, value_name = "ID", requires = "provider")]
    model: Option<String>,

    /// Prints every event as a line of JSON.
    #[arg(long)]
    json: bool,

    /// Works in this folder, in place of a new temporary one; a session that is there is taken up.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Milliseconds between two pieces of the scripted answers.
    #[arg(long, value_name = "MS", default_value_t = 12)]
    pace: u64,
}

/// Where things lie.
struct Place {
    root: PathBuf,
    workspace: PathBuf,
    state: PathBuf,
    notes: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let system = Host::system();
    let place = prepare(&args, &system)?;
    let is_scripted = args.provider.is_none();
    let host = Host::builder().env(system.env().clone()).home(&place.root).temp(system.temp()).build();
    let server = if is_scripted { Some(start_server(&place, Duration::from_millis(args.pace)).await?) } else { None };
    let config = config(&place, server.as_ref())?;
    let mut builder = Engine::builder(host, Arc::new(config), &place.state);
    if !is_scripted && let Some(home) = system.home() {
        // A real provider is asked with the user's own credentials.
        builder = builder.agent_dir(home.join(".pinch/agent"));
    }
    let engine = builder.build();
    warn_of(engine.problems());
    let cancel = Cancel::new();
    let request = request(&args, &engine, &place, &cancel);
    if !args.json {
        introduce(&args, server.as_ref());
    }
    let (done, code) = signals::guard(&cancel, watch(&engine, request, args.json)).await;
    let result = done?;
    if !args.json {
        conclude(&place, &result);
    }
    Ok(code.unwrap_or(ExitCode::SUCCESS))
}

/// Pulls the run and shows it as it happens.
async fn watch(engine: &Engine, request: RunRequest, as_json: bool) -> Result<RunResult, Failure> {
    let mut run = engine.run(request);
    let mut timeline = Timeline::new();
    let mut lines = EventLines::new();
    while let Some(event) = run.next().await {
        if as_json {
            print!("{}", lines.line(&event));
        } else {
            print!("{}", timeline.lines(&event));
        }
    }
    let result = run.result().map_err(agent::failure)?;
    if as_json {
        println!("{}", json!({"type": "result", "result": result.to_json()}));
    }
    Ok(result)
}

fn introduce(args: &Args, server: Option<&Server>) {
    match (server, &args.provider, &args.model) {
        (Some(server), ..) => println!(
            "The model server at {} is scripted: it speaks Anthropic's wire format over real HTTP and plays a model.\n\
             Everything else is the production code on real files.",
            server.url()
        ),
        (None, Some(provider), Some(model)) => println!("Asking {provider}/{model}."),
        _ => {}
    }
    println!("> {}\n", script::REQUEST);
}

fn conclude(place: &Place, result: &RunResult) {
    println!("\n{}\n", payloads::text(result));
    let meta = &result.meta;
    let usage = &meta.agent.usage;
    println!(
        "{} attempts, {} compaction(s), {} tokens in, {} out, {} ms",
        meta.attempts.len(),
        meta.agent.compaction_count,
        usage.input,
        usage.output,
        meta.duration_ms
    );
    let saved = place.root.join(script::SUMMARY_PATH.trim_start_matches("~/"));
    if saved.is_file() {
        println!("file     {}", saved.display());
    }
    println!("session  {}", session_file(place).display());
}

fn session_file(place: &Place) -> PathBuf {
    place.state.join("agents/main/sessions/demo.jsonl")
}

/// Lays the workspace out: today's notes and an empty desktop.
fn prepare(args: &Args, host: &Host) -> Result<Place, Failure> {
    let root = match &args.dir {
        Some(dir) => crate::wiring::working_directory()?.join(dir),
        None => host.temp().join(format!("pinch-demo-{}", host.ids().hex8())),
    };
    let date = host.now_iso()[..10].to_owned();
    let workspace = root.join("workspace");
    let notes = format!("notes/{date}-product-sync.md");
    let make = |folder: &Path| {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::internal(format!("Cannot make {}: {error}", folder.display())))
    };
    make(&workspace.join("notes"))?;
    make(&root.join("Desktop"))?;
    let place = Place { state: root.join("state"), root, workspace, notes };
    make(&place.state.join("agent"))?;
    write(&place.workspace.join(&place.notes), &script::notes(&date))?;
    // The script's conversation is short: little of it is kept, so that there is something to compact.
    let settings = json!({"compaction": {"keepRecentTokens": 500}});
    write(&place.state.join("agents/main/agent/settings.json"), &settings.to_string())?;
    Ok(place)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder
        .and_then(|()| write_atomic(path, text.as_bytes(), Access::Keep))
        .map_err(|error| Failure::internal(format!("Cannot write {}: {error}", path.display())))
}

async fn start_server(place: &Place, pace: Duration) -> Result<Server, Failure> {
    let server = Server::start()
        .await
        .map_err(|error| Failure::internal(format!("Cannot open a port on the loopback: {error}")))?;
    let notes = place.notes.clone();
    server.answer_with(move |request| script::answer(request, &notes, pace));
    Ok(server)
}

/// The configuration as a real document: two keys of one provider, and where it is.
fn config(place: &Place, server: Option<&Server>) -> Result<Config, Failure> {
    let document: Value = match server {
        None => json!({"agents": {"defaults": {"workspace": place.workspace}}}),
        Some(server) => json!({
            "agents": {"defaults": {
                "workspace": place.workspace,
                "model": {"primary": format!("anthropic/{}", script::MODEL)},
            }},
            "auth": {"profiles": [
                {"id": "primary", "provider": "anthropic", "apiKey": script::TIRED_KEY},
                {"id": "backup", "provider": "anthropic", "apiKey": script::GOOD_KEY},
            ]},
            "models": {"providers": {"anthropic": {"baseUrl": server.url()}}},
        }),
    };
    let path = place.state.join("pinch.json");
    write(&path, &document.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| Failure::internal(format!("Cannot protect {}: {error}", path.display())))?;
    }
    let (config, problems) = Config::load(&path);
    warn_of(&problems);
    Ok(config)
}

fn request(args: &Args, engine: &Engine, place: &Place, cancel: &Cancel) -> RunRequest {
    let replies = BlockReplies {
        break_at: BlockBreak::TextEnd,
        chunking: Some(Chunking {
            min_chars: 400,
            max_chars: 800,
            preference: BreakPreference::Paragraph,
            flush_on_paragraph: true,
        }),
    };
    let mut request = engine.request("demo", None, None, script::REQUEST).cancel(cancel.clone()).block_replies(replies);
    request.session_file = session_file(place);
    request.workspace_dir.clone_from(&place.workspace);
    request.provider.clone_from(&args.provider);
    request.model.clone_from(&args.model);
    request
}
