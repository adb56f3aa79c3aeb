//! `pinch demo`: the main job, without any prerequisites.
//!
//! It runs the production code on its own scripted model server, or on a real provider with `--provider` and `--model`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use pinch_embed::coding_agent::store::SessionRef;
use pinch_embed::coding_agent::tools::CODING;
use pinch_embed::config::Config;
use pinch_embed::engine::Engine;
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::replies::chunk::{BreakPreference, Chunking};
use pinch_embed::run::request::BlockReplies;
use pinch_embed::run::{RunRequest, RunResult};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::fs::{Access, create_private_dir, write_atomic};
use pinch_embed::stdx::host::{Env, Host};
use pinch_testing::server::Server;
use serde_json::{Value, json};

use crate::demo_script as script;
use crate::embedded::{self, FailureContext};
use crate::exit::{CommandFailure, tell, unwritten, warn_of};
use crate::folders::{Folders, working_directory};
use crate::output;
use crate::show::events::EventLines;
use crate::show::payloads;
use crate::show::timeline::Timeline;
use crate::signals;

/// Arguments of `pinch demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run the same job on this real provider
    #[arg(long, value_name = "NAME", requires = "model")]
    provider: Option<String>,

    /// Model of the real provider
    #[arg(long, value_name = "ID", requires = "provider")]
    model: Option<String>,

    /// Print events as JSON lines; the last line contains the result and the paths of the file and the session
    #[arg(long)]
    json: bool,

    /// Working directory, instead of a new temporary one; resumes an existing session in it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Milliseconds between two chunks of the scripted answers
    #[arg(long, value_name = "MS", default_value_t = 12)]
    pace: u64,
}

/// The files and directories of a demo.
struct DemoPaths {
    root: PathBuf,
    workspace: PathBuf,
    state: PathBuf,
    notes: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, CommandFailure> {
    let system = Host::system();
    let paths = prepare(&args, &system)?;
    let is_scripted = args.provider.is_none();
    // The job's desktop is in the directory, for commands too.
    let home = paths.root.to_string_lossy().into_owned();
    let host = Host::builder().env(system.env().with([("HOME", home)])).home(&paths.root).temp(system.temp()).build();
    let server = if is_scripted { Some(start_server(&paths, Duration::from_millis(args.pace)).await?) } else { None };
    let config = config(&paths, server.as_ref())?;
    let mut builder = Engine::builder(&paths.state).host(host).config(config).builtin_tools(CODING);
    let mut documents = paths.state.join("agent");
    if !is_scripted {
        // A real provider is called with the user's own credentials.
        documents = Folders::find(None, &system)?.agent_dir;
        builder = builder.agent_dir(&documents);
    }
    let engine = builder.build();
    warn_of(&engine.problems());
    let cancel = Cancel::new();
    let request = request(&args, &engine, &paths, &cancel);
    let around = FailureContext { documents, names_model: true };
    let show = async {
        if !args.json {
            say(&introduction(&args, &paths, server.as_ref()))?;
        }
        let result = watch(&engine, request, &around, args.json).await?;
        say(&if args.json { result_line(&paths, &result) } else { conclusion(&paths, &result) })?;
        Ok(result)
    };
    match signals::guard(&cancel, show).await {
        (Ok(_), Some(code)) => Ok(code),
        (Ok(result), None) => {
            Ok(embedded::failed(&result).map_or(ExitCode::SUCCESS, |kind| ExitCode::from(kind as u8)))
        }
        (Err(failure), None) => Err(failure),
        (Err(failure), Some(code)) => {
            tell(&failure);
            Ok(code)
        }
    }
}

/// Pulls the run and shows it as it happens.
async fn watch(
    engine: &Engine,
    request: RunRequest,
    around: &FailureContext,
    as_json: bool,
) -> Result<RunResult, CommandFailure> {
    let mut run = engine.run(request);
    let mut timeline = Timeline::new();
    let mut lines = EventLines::new();
    while let Some(event) = run.next().await {
        say(&if as_json { lines.line(&event) } else { timeline.lines(&event) })?;
    }
    run.result().map_err(|error| embedded::failure(&error, around))
}

/// Writes to stdout and flushes.
fn say(text: &str) -> Result<(), CommandFailure> {
    let mut out = output::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| unwritten(&error))
}

fn introduction(args: &Args, paths: &DemoPaths, server: Option<&Server>) -> String {
    let who = match (server, &args.provider, &args.model) {
        (Some(server), ..) => format!(
            "The model server at {} is scripted: it speaks Anthropic's wire format over real HTTP and plays a model.\n\
             Everything else is the production code on real files.\n",
            server.url()
        ),
        (None, Some(provider), Some(model)) => format!("Asking {provider}/{model}.\n"),
        _ => String::new(),
    };
    let before = match session_file(paths).is_file() {
        true => "Resuming the session of an earlier run.\n",
        false => "",
    };
    format!("{who}{before}> {}\n\n", script::REQUEST)
}

fn conclusion(paths: &DemoPaths, result: &RunResult) -> String {
    let meta = &result.meta;
    let usage = &meta.agent.usage;
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let file = match saved_file(paths) {
        Some(path) => path.display().to_string(),
        None => "no summary was saved".to_owned(),
    };
    format!(
        "\n{}\n\n{}, {}, {} tokens in, {} out, {} ms\nfile     {file}\nsession  {}\n",
        payloads::text(result),
        count(meta.attempts.len(), "attempt"),
        count(meta.agent.compaction_count as usize, "compaction"),
        usage.input,
        usage.output,
        meta.duration_ms,
        session_file(paths).display(),
    )
}

/// Formats the last line of the events: the result, and the paths of the file and the session.
fn result_line(paths: &DemoPaths, result: &RunResult) -> String {
    let line = json!({
        "type": "result",
        "result": result.clone().into_json(),
        "file": saved_file(paths),
        "session": session_file(paths),
    });
    format!("{line}\n")
}

fn saved_file(paths: &DemoPaths) -> Option<PathBuf> {
    let path = paths.root.join(script::SUMMARY_PATH.trim_start_matches("~/"));
    path.is_file().then_some(path)
}

fn session_file(paths: &DemoPaths) -> PathBuf {
    paths.state.join("agents/main/sessions/demo.jsonl")
}

/// Prepares the workspace: today's notes and an empty desktop.
fn prepare(args: &Args, host: &Host) -> Result<DemoPaths, CommandFailure> {
    let root = match &args.dir {
        Some(dir) => working_directory()?.join(dir),
        None => host.temp().join(format!("pinch-demo-{}", host.ids().hex8())),
    };
    let date = host.now_iso()[..10].to_owned();
    let workspace = root.join("workspace");
    let notes = format!("notes/{date}-product-sync.md");
    let make = |folder: &Path| {
        create_private_dir(folder)
            .map_err(|error| CommandFailure::internal(format!("cannot create {}: {error}", folder.display())))
    };
    make(&workspace.join("notes"))?;
    make(&root.join("Desktop"))?;
    let paths = DemoPaths { state: root.join("state"), root, workspace, notes };
    make(&paths.state.join("agent"))?;
    let notes = paths.workspace.join(&paths.notes);
    if !notes.exists() {
        write(&notes, &script::notes(&date))?;
    }
    // The script's conversation is short, so keep little of it to have something to compact.
    let settings = json!({"compaction": {"keepRecentTokens": 500}});
    write(&paths.state.join("agents/main/agent/settings.json"), &settings.to_string())?;
    Ok(paths)
}

fn write(path: &Path, text: &str) -> Result<(), CommandFailure> {
    let folder = path.parent().map_or(Ok(()), create_private_dir);
    folder
        .and_then(|()| write_atomic(path, text.as_bytes(), Access::NewPrivate))
        .map_err(|error| CommandFailure::internal(format!("cannot write {}: {error}", path.display())))
}

async fn start_server(paths: &DemoPaths, pace: Duration) -> Result<Server, CommandFailure> {
    let server = Server::start()
        .await
        .map_err(|error| CommandFailure::internal(format!("cannot open a port on the loopback interface: {error}")))?;
    let notes = paths.notes.clone();
    server.answer_with(move |request| script::answer(request, &notes, pace));
    Ok(server)
}

/// Writes the configuration as a real document: two keys for one provider, and its address.
fn config(paths: &DemoPaths, server: Option<&Server>) -> Result<Config, CommandFailure> {
    let document: Value = match server {
        None => json!({"agents": {"defaults": {"workspace": paths.workspace}}}),
        Some(server) => json!({
            "agents": {"defaults": {
                "workspace": paths.workspace,
                "model": {"primary": format!("anthropic/{}", script::MODEL)},
            }},
            "auth": {"profiles": [
                {"id": "primary", "provider": "anthropic", "apiKey": script::TIRED_KEY},
                {"id": "backup", "provider": "anthropic", "apiKey": script::GOOD_KEY},
            ]},
            "models": {"providers": {"anthropic": {"baseUrl": server.url()}}},
        }),
    };
    let path = paths.state.join("pinch.json");
    write(&path, &document.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(|error| {
            CommandFailure::internal(format!("cannot set permissions of {}: {error}", path.display()))
        })?;
    }
    let (config, problems) = Config::load(&path, &Env::default());
    warn_of(&problems);
    Ok(config)
}

fn request(args: &Args, engine: &Engine, paths: &DemoPaths, cancel: &Cancel) -> RunRequest {
    let replies = BlockReplies {
        break_at: BlockBreak::TextEnd,
        chunking: Some(Chunking {
            min_chars: 400,
            max_chars: 800,
            preference: BreakPreference::Paragraph,
            flush_on_paragraph: true,
            ..Chunking::default()
        }),
        ..BlockReplies::default()
    };
    let mut request = engine.request("demo", None, None, script::REQUEST).cancel(cancel.clone()).block_replies(replies);
    request.session = SessionRef::Path(session_file(paths));
    request.workspace_dir = Some(paths.workspace.clone());
    request.provider.clone_from(&args.provider);
    request.model.clone_from(&args.model);
    request
}
