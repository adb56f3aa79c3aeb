//! `pinch …` without a command: a conversation in this directory, interactive, or printed as text or as events.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use pinch_cli::options::{CliOptions, Mode, help, misnamed};
use pinch_embed::coding_agent::modes::print::Printed;
use pinch_embed::coding_agent::modes::{json, print};
use pinch_embed::coding_agent::runtime::SessionRuntime;
use pinch_embed::stdx::cancel::{Cancel, CancelReason, Deadline};
use pinch_embed::stdx::host::Host;

use crate::commands::{export, interactive, list_models, rpc};
use crate::exit::{Blame, CommandFailure, extension_failed, unwritten, warn};
use crate::folders::{expand_home, trimmed_text};
use crate::messages::Messages;
use crate::wiring::SessionUser;
use crate::{exit, output, signals, wiring};

/// Runs the command.
pub(crate) async fn run(mut options: CliOptions) -> Result<ExitCode, CommandFailure> {
    check(&options)?;
    let host = Host::system();
    options.offline |= ["PINCH_OFFLINE", "PI_OFFLINE"].iter().any(|name| host.env().is_on(name));
    if options.help {
        return print_help();
    }
    if let Some(search) = &options.list_models {
        return list_models::run(wiring::available_models(&options, &host)?, search.as_deref());
    }
    if let Some(session) = options.export {
        let args = export::Args {
            session,
            out: options.messages.into_iter().next(),
            theme: None,
            session_dir: options.session_dir,
            agent_dir: options.agent_dir,
        };
        return export::run(args).await;
    }
    if let Some(path) = &options.api_key_file {
        options.api_key = Some(api_key(path, &host)?);
    }
    if options.mode == Some(Mode::Rpc) {
        return rpc::run(&options, &host).await;
    }
    if interactive::is_wanted(&options) {
        return interactive::run(&options, &host).await;
    }
    show(&options, &host).await
}

/// Sends the prompts, and shows the answer as text or as events.
async fn show(options: &CliOptions, host: &Host) -> Result<ExitCode, CommandFailure> {
    let messages = Messages::read(options, host)?;
    if messages.is_empty() {
        check_unknown(options, host).await?;
        return Err(nothing_to_say(options));
    }
    let mut runtime = wiring::runtime(options, host, SessionUser::Nobody, None).await?;
    let limit = options.timeout.or_else(|| set_limit(&runtime));
    let cancel = limit.map_or_else(Cancel::new, |limit| Cancel::new().child_until(Deadline::after(limit)));
    let session = runtime.session_mut();
    let prompts = messages.into_prompts(&session.control(), &cancel).await;
    let extensions = session.control().extensions().clone();
    let mut out = output::stdout();
    let (printed, code) = if options.mode == Some(Mode::Json) {
        let (done, code) = signals::guard(&cancel, json::json(session, prompts, &mut out, &mut extension_failed)).await;
        // The last lines report how it ended.
        (done.map(|()| Printed::Answer), code)
    } else {
        signals::guard(&cancel, print::print(session, prompts, &mut out, &mut extension_failed)).await
    };
    runtime.close().await;
    extensions.take_failures().iter().for_each(extension_failed);
    runtime.take_notes().iter().for_each(|note| warn(note));
    let printed = printed?;
    if let Some(code) = code {
        // A user who presses Ctrl+C needs no message.
        if let Printed::Aborted { text } = printed
            && cancel.reason() == Some(CancelReason::Shutdown)
        {
            exit::tell(&CommandFailure::bare(Blame::User, text));
        }
        return Ok(code);
    }
    if let Some(limit) = limit.filter(|_| cancel.reason() == Some(CancelReason::Deadline)) {
        let text =
            format!("the run was stopped after {} s\nhint: raise --timeout or runTimeoutMs", limit.as_secs_f64());
        return Err(CommandFailure::new(Blame::Provider, text));
    }
    match printed {
        Printed::Answer => Ok(ExitCode::SUCCESS),
        Printed::CutOff => {
            warn("the answer was cut off: the model reached its output limit");
            Ok(ExitCode::from(Blame::User as u8))
        }
        Printed::Failed { text } => Err(CommandFailure::bare(Blame::Provider, text)),
        Printed::Aborted { text } => Err(CommandFailure::bare(Blame::User, text)),
    }
}

/// Fails if an unknown option belongs to no extension: its value may be the missing message.
async fn check_unknown(options: &CliOptions, host: &Host) -> Result<(), CommandFailure> {
    if !options.unknown.is_empty() {
        let unsaved = CliOptions { no_session: true, ..options.clone() };
        wiring::runtime(&unsaved, host, SessionUser::Nobody, None).await?.close().await;
    }
    Ok(())
}

/// Sets the time limit of a run from the settings.
fn set_limit(runtime: &SessionRuntime) -> Option<Duration> {
    let ms = runtime.services().settings().value("runTimeoutMs")?.as_f64()?;
    (ms >= 1.0).then(|| Duration::from_millis(ms as u64))
}

/// Checks the options, also for conflicts.
fn check(options: &CliOptions) -> Result<(), CommandFailure> {
    for complaint in options.complaints.iter().filter(|complaint| !complaint.is_error) {
        warn(&complaint.text);
    }
    let errors: Vec<String> = options.errors().collect();
    if !errors.is_empty() {
        return Err(CommandFailure::user(errors.join("\nError: ")));
    }
    if options.help {
        return Ok(());
    }
    if options.export.is_none()
        && let Some(text) = options.bare_message.as_deref().and_then(misnamed::complaint)
    {
        return Err(CommandFailure::user(text));
    }
    if options.resume && !interactive::is_wanted(options) {
        return Err(CommandFailure::user(
            "--resume needs a terminal, because it lets you choose a session\nhint: continue the most recent session with --continue, or \
             name one with --session",
        ));
    }
    if options.provider.is_some() && options.model.is_none() {
        return Err(CommandFailure::user("--provider requires --model"));
    }
    let key_flag = match (&options.api_key, &options.api_key_file) {
        (Some(_), Some(_)) => {
            return Err(CommandFailure::user("--api-key and --api-key-file cannot be used together"));
        }
        (Some(_), None) => Some("--api-key"),
        (None, Some(_)) => Some("--api-key-file"),
        (None, None) => None,
    };
    if let Some(flag) = key_flag.filter(|_| options.model.is_none() && options.models.is_none()) {
        return Err(CommandFailure::user(format!(
            "{flag} requires a model to be specified via --model, --provider/--model, or --models"
        )));
    }
    Ok(())
}

/// Maximum bytes of a file with an API key.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Reads an API key from a file, which may be a pipe.
fn api_key(path: &Path, host: &Host) -> Result<String, CommandFailure> {
    let path = expand_home(path, host);
    let failed = |why| CommandFailure::user(format!("cannot read the API key in {}: {why}", path.display()));
    trimmed_text(&path, MAX_KEY_BYTES).map_err(failed)
}

fn print_help() -> Result<ExitCode, CommandFailure> {
    let text = help::text(&[]);
    output::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn nothing_to_say(options: &CliOptions) -> CommandFailure {
    if options.print || options.mode.is_some() {
        CommandFailure::user("no message\nhint: write one after -p, or pipe it in")
    } else {
        CommandFailure::user(
            "the interactive mode needs a terminal as standard input and output\nhint: to ask something, use: pinch -p \"…\"\nhint: to see a whole run, use: pinch demo",
        )
    }
}
