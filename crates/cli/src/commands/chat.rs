//! `pinch -p …`: a conversation in this folder, printed as text or as events.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_embed::coding_agent::images;
use pinch_embed::coding_agent::modes::print::Printed;
use pinch_embed::coding_agent::modes::{json, print};
use pinch_embed::coding_agent::session::Prompt;
use pinch_embed::llm::message::Image;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;

use crate::args::{ChatArgs, Mode};
use crate::exit::{Failure, Kind, warn};
use crate::{folders, signals, wiring};

/// Bytes of a file on the command line at most.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Runs the command.
pub(crate) async fn run(args: ChatArgs) -> Result<ExitCode, Failure> {
    let host = Host::system();
    let cancel = Cancel::new();
    let prompts = prompts(&args, &host, &cancel)?;
    if prompts.is_empty() {
        return Err(nothing_to_say(&args));
    }
    let (mut session, auth) = wiring::session(&args, &host).await?;
    let mut out = std::io::stdout();
    if args.mode == Some(Mode::Json) {
        let (done, code) = signals::guard(&cancel, json::json(&mut session, prompts, &mut out)).await;
        auth.settle().await;
        done?;
        return Ok(code.unwrap_or(ExitCode::SUCCESS));
    }
    let (printed, code) = signals::guard(&cancel, print::print(&mut session, prompts, &mut out)).await;
    auth.settle().await;
    let printed = printed?;
    if let Some(code) = code {
        return Ok(code);
    }
    match printed {
        Printed::Answer => Ok(ExitCode::SUCCESS),
        Printed::CutOff => {
            warn("The answer was cut off: the model reached its output limit");
            Ok(ExitCode::from(Kind::User as u8))
        }
        Printed::Failed { text } => Err(Failure::bare(Kind::Provider, text)),
        Printed::Aborted { text } => Err(Failure::bare(Kind::User, text)),
    }
}

fn nothing_to_say(args: &ChatArgs) -> Failure {
    if args.print.is_some() || args.mode.is_some() {
        Failure::user("There is no message. Write one after -p, or pipe it in")
    } else {
        Failure::user(
            "The interactive mode is not part of this version. Ask with: pinch -p \"…\"\nSee a whole run with: pinch demo",
        )
    }
}

/// The messages to send: what is piped in, the files, and the first message together; then the others.
fn prompts(args: &ChatArgs, host: &Host, cancel: &Cancel) -> Result<Vec<Prompt>, Failure> {
    let cwd = folders::working_directory()?;
    let mut parts = Vec::new();
    let mut images = Vec::new();
    let wants_input = args.print.is_some() || args.mode.is_some() || !args.messages.is_empty();
    if let Some(piped) = piped_input(wants_input)? {
        parts.push(piped);
    }
    let (files, texts): (Vec<&String>, Vec<&String>) =
        args.print.iter().chain(&args.messages).filter(|m| !m.is_empty()).partition(|m| m.starts_with('@'));
    for file in files {
        let path = cwd.join(folders::expand_home(Path::new(&file[1..]), host));
        parts.extend(file_part(&path, &mut images)?);
    }
    let mut texts = texts.into_iter();
    parts.extend(texts.next().cloned());
    let mut prompts = Vec::new();
    if !parts.is_empty() || !images.is_empty() {
        prompts.push(Prompt { text: parts.join("\n\n"), images, cancel: cancel.clone(), ..Prompt::default() });
    }
    prompts.extend(texts.map(|text| Prompt { cancel: cancel.clone(), ..Prompt::text(text) }));
    Ok(prompts)
}

/// What is piped in. A terminal, a closed input and a program that holds its input open without being asked to be read are none.
fn piped_input(wants_input: bool) -> Result<Option<String>, Failure> {
    let mut input = std::io::stdin();
    if !wants_input || input.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    match input.read_to_end(&mut bytes) {
        Ok(_) => {}
        // A closed input is no input.
        Err(_) => return Ok(None),
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

fn file_part(path: &Path, images: &mut Vec<Image>) -> Result<Option<String>, Failure> {
    let meta = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::user(format!("File not found: {}", path.display())),
        _ => Failure::user(format!("Cannot read {}: {error}", path.display())),
    })?;
    if !meta.is_file() {
        return Err(Failure::user(format!("Not a file: {}", path.display())));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(Failure::user(format!("File is larger than 64 MiB: {}", path.display())));
    }
    let bytes =
        std::fs::read(path).map_err(|error| Failure::user(format!("Cannot read {}: {error}", path.display())))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let name = path.display();
    if let Some(mime_type) = images::sniff(&bytes) {
        let data = STANDARD.encode(&bytes);
        if data.len() >= images::MAX_ENCODED_BYTES {
            return Err(Failure::user(format!("Image is too large to send: {name}. Make it smaller than 3.3 MB")));
        }
        images.push(Image { data, mime_type: mime_type.to_owned() });
        return Ok(Some(format!("<file name=\"{name}\"></file>\n")));
    }
    Ok(Some(format!("<file name=\"{name}\">\n{}\n</file>\n", String::from_utf8_lossy(&bytes))))
}
