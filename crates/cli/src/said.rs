//! What is said first: piped input, files and messages of the command line.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_cli::options::Options;
use pinch_embed::coding_agent::images;
use pinch_embed::coding_agent::session::Prompt;
use pinch_embed::llm::message::Image;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;

use crate::exit::Failure;
use crate::folders;

/// Bytes of a file on the command line at most.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The messages to send: what is piped in, the files, and the first message together; then the others.
pub(crate) fn prompts(args: &Options, host: &Host, cancel: &Cancel) -> Result<Vec<Prompt>, Failure> {
    let cwd = folders::working_directory()?;
    let mut parts = Vec::new();
    let mut images = Vec::new();
    let wants_input = args.print || args.mode.is_some() || !args.messages.is_empty();
    parts.extend(piped_input(wants_input)?);
    let has_piped = !parts.is_empty();
    for file in &args.files {
        let path = cwd.join(folders::expand_home(Path::new(file), host));
        parts.extend(file_part(&path, &mut images)?);
    }
    let mut texts = args.messages.iter().filter(|message| !message.is_empty());
    parts.extend(texts.next().cloned());
    if has_piped && parts.len() > 1 {
        // Files end with a line feed of their own; what is piped in stands by itself.
        parts[0].push_str("\n\n");
    }
    let mut prompts = Vec::new();
    if !parts.is_empty() || !images.is_empty() {
        prompts.push(Prompt { text: parts.concat(), images, cancel: cancel.clone(), ..Prompt::default() });
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
