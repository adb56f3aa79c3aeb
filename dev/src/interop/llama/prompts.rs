//! What the conversations are about: files and messages of random words, the same on each run, and examples for the model.

use std::path::Path;

use anyhow::Context;

/// Every third message asks for a tool call.
const CALLS_EVERY: usize = 3;
/// Number of files that can be read.
const FILES: usize = 8;
/// How long the texts of a conversation are, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLengths {
    pub(super) file: usize,
    pub(super) message: usize,
}

/// Number of examples in the instructions, for each kind of message.
const EXAMPLES: usize = 24;

const WORDS: [&str; 32] = [
    "river", "stone", "green", "window", "seven", "market", "quiet", "letter", "garden", "north", "silver", "engine",
    "paper", "winter", "bridge", "yellow", "harbor", "music", "little", "corner", "island", "copper", "summer",
    "story", "glass", "mountain", "early", "number", "forest", "simple", "evening", "road",
];

/// A message to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LlamaPrompt {
    pub(super) text: String,
    /// Whether the model has to call a tool.
    pub(super) calls: bool,
}

/// Returns the message of a run, counted from 0.
pub(super) fn prompt(run: usize, lengths: TextLengths) -> LlamaPrompt {
    if run % CALLS_EVERY != 1 {
        let text = format!("Message {run}. {}", text(run, lengths.message));
        return LlamaPrompt { text, calls: false };
    }
    LlamaPrompt { text: format!("Read notes-{}.txt.", run / CALLS_EVERY % FILES), calls: true }
}

/// Writes the files that can be read, and the instructions of the workspace.
pub(super) fn write_files(workspace: &Path, lengths: TextLengths) -> anyhow::Result<()> {
    std::fs::create_dir_all(workspace).with_context(|| format!("cannot create {}", workspace.display()))?;
    let notes = (0..FILES).map(|n| (format!("notes-{n}.txt"), text(1_000 + n, lengths.file)));
    for (name, text) in notes.chain([("AGENTS.md".to_owned(), examples())]) {
        let path = workspace.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns examples, written as in the server's template: this model continues what it has seen, and ignores instructions. They also make
/// the system prompt long. It stays in the server's cache, so that the window fills up with few other tokens.
fn examples() -> String {
    let examples = (0..EXAMPLES).map(|n| {
        let (message, path) = (text(2_000 + n, 6), format!("notes-{}.txt", n % FILES));
        let turns = [
            ("user", format!("Message {n}. {message}")),
            ("assistant", format!("Message {n} is about {}.", WORDS[n % WORDS.len()])),
            ("user", format!("Read {path}.")),
            (
                "assistant",
                format!("<tool_call>\n{{\"name\": \"read\", \"arguments\": {{\"path\": \"{path}\"}}}}\n</tool_call>"),
            ),
            ("user", format!("<tool_response>\n{}\n</tool_response>", text(3_000 + n, 6))),
            ("assistant", format!("I have read {path}.")),
        ];
        turns.map(|(role, text)| format!("### {role}\n{text}\n\n")).concat()
    });
    examples.collect()
}

/// Returns random words, as lines of twelve.
fn text(seed: usize, n_words: usize) -> String {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let words: Vec<&str> = (0..n_words)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            WORDS[(state >> 59) as usize]
        })
        .collect();
    words.chunks(12).map(|line| line.join(" ") + ".").collect::<Vec<_>>().join("\n")
}
