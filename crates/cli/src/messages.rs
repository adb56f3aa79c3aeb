//! The command line's prompts: piped input, files and messages.

use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::Path;

use pinch_cli::options::CliOptions;
use pinch_embed::coding_agent::images;
use pinch_embed::coding_agent::session::{Prompt, SessionControl};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::fs::read_regular;
use pinch_embed::stdx::host::Host;

use crate::exit::CommandFailure;
use crate::{folders, wiring};

/// Maximum bytes of a file on the command line.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How far a file is searched for a NUL to detect binary files, as in git.
const BINARY_LOOK: usize = 8000;

/// The command line's input, before images are resized for the model.
pub(crate) struct Messages {
    /// Piped input, files, and the first message.
    first: Vec<MessagePart>,
    has_piped: bool,
    then: Vec<String>,
}

enum MessagePart {
    Text(String),
    Image { name: String, content: Vec<u8>, mime_type: &'static str },
}

impl Messages {
    /// Reads piped input and the named files.
    pub(crate) fn read(args: &CliOptions, host: &Host) -> Result<Self, CommandFailure> {
        let cwd = folders::working_directory()?;
        let wants_input = args.print || args.mode.is_some() || !args.messages.is_empty();
        let max_input = || wiring::max_input_bytes(args, host);
        let mut first: Vec<MessagePart> =
            piped_input(wants_input, max_input)?.map(MessagePart::Text).into_iter().collect();
        let has_piped = !first.is_empty();
        for file in &args.files {
            let path = cwd.join(folders::expand_home(Path::new(file), host));
            first.extend(file_part(&path)?);
        }
        let mut texts = args.messages.iter().filter(|message| !message.is_empty()).cloned();
        first.extend(texts.next().map(MessagePart::Text));
        Ok(Self { first, has_piped, then: texts.collect() })
    }

    /// Returns whether there is no input at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the messages to send: piped input, files and the first message combined; then the others. The session resizes images; a note
    /// replaces those that cannot be sent.
    pub(crate) async fn into_prompts(self, session: &SessionControl, cancel: &Cancel) -> Vec<Prompt> {
        let mut texts = Vec::with_capacity(self.first.len());
        let mut images = Vec::new();
        for part in self.first {
            texts.push(match part {
                MessagePart::Text(text) => text,
                MessagePart::Image { name, content, mime_type } => {
                    let notes = match session.admit_image(content.into(), mime_type).await {
                        Ok(admitted) => {
                            images.push(admitted.image);
                            admitted.notes.join("\n")
                        }
                        Err(refused) => refused.note(),
                    };
                    format!("<file name=\"{name}\">{notes}</file>\n")
                }
            });
        }
        if self.has_piped && texts.len() > 1 {
            // Files end with their own line feed; piped input is separated by an empty line.
            texts[0].push_str("\n\n");
        }
        let mut prompts = Vec::new();
        if !texts.is_empty() {
            prompts.push(Prompt { text: texts.concat(), images, cancel: cancel.clone(), ..Prompt::default() });
        }
        prompts.extend(self.then.into_iter().map(|text| Prompt { cancel: cancel.clone(), ..Prompt::text(text) }));
        prompts
    }
}

/// Returns piped input; `None` for a terminal, a closed stdin, and if stdin is not used.
fn piped_input(
    wants_input: bool,
    max: impl FnOnce() -> Result<u64, CommandFailure>,
) -> Result<Option<String>, CommandFailure> {
    let input = std::io::stdin();
    if !wants_input || input.is_terminal() {
        return Ok(None);
    }
    let max = max()?;
    let mut bytes = Vec::new();
    // A closed input reads as an empty one.
    let read = input.lock().take(max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| CommandFailure::user(format!("cannot read stdin: {error}")))?;
    if bytes.len() as u64 > max {
        return Err(CommandFailure::user(format!(
            "stdin is longer than {max} bytes\nhint: raise maxInputBytes in settings.json, or name a file for the model to read"
        )));
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

fn file_part(path: &Path) -> Result<Option<MessagePart>, CommandFailure> {
    let meta = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CommandFailure::user(format!("File not found: {}", path.display())),
        _ => CommandFailure::user(format!("cannot read {}: {error}", path.display())),
    })?;
    if !meta.is_file() {
        return Err(CommandFailure::user(format!("not a file: {}", path.display())));
    }
    let bytes = read_regular(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => CommandFailure::user(format!("file is larger than 64 MiB: {}", path.display())),
        // Some system files block.
        ErrorKind::WouldBlock => CommandFailure::user(format!("not a file: {}", path.display())),
        _ => CommandFailure::user(format!("cannot read {}: {error}", path.display())),
    })?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let name = path.display();
    Ok(Some(match images::sniff(&bytes) {
        Some(mime_type) => MessagePart::Image { name: name.to_string(), content: bytes, mime_type },
        None if bytes[..bytes.len().min(BINARY_LOOK)].contains(&0) => {
            return Err(CommandFailure::user(format!("{name} is a binary file, and only text and images can be sent")));
        }
        None => MessagePart::Text(format!("<file name=\"{name}\">\n{}\n</file>\n", String::from_utf8_lossy(&bytes))),
    }))
}
