//! Where suggestions come from.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::stdx::cancel::Cancel;
use pinch_coding_agent::stdx::text::fuzzy;

use super::index::PathIndex;
use super::listing::{list, split_path, suggestion};
use super::query::CompletionQuery;

/// Paths that are suggested for a mention.
const MAX_MENTIONS: usize = 20;

/// A command that can be completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSuggestion {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Its arguments, for people: `[path]`.
    pub argument_hint: Option<String>,
    /// Where it comes from, for people: `[u]`.
    pub origin: Option<String>,
    /// Arguments that it takes. They are found by their label and their value.
    pub arguments: Vec<Completion>,
}

impl CommandSuggestion {
    /// A command without arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: Some(description.into()), ..Self::default() }
    }

    /// `[u] <path> — what it does`.
    fn details(&self) -> Option<String> {
        let hint = self.argument_hint.as_deref().filter(|hint| !hint.is_empty());
        let text = self.description.as_deref().filter(|text| !text.is_empty());
        let details: Vec<&str> = hint.into_iter().chain(text).collect();
        let parts = self.origin.iter().cloned().chain((!details.is_empty()).then(|| details.join(" — ")));
        let all: Vec<String> = parts.collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// What suggestions are made from.
#[derive(Clone, Debug, Default)]
pub struct CompletionSources {
    /// The commands. Those that match equally well stay in this order.
    pub commands: Vec<CommandSuggestion>,
    /// The directory that relative paths are in.
    pub root: PathBuf,
    /// The directory that `~` stands for.
    pub home: Option<PathBuf>,
    /// The paths below `root`; until they are known one directory after another is listed.
    pub files: Option<Arc<PathIndex>>,
}

impl CompletionSources {
    /// Paths below a directory, and nothing else.
    pub fn new(root: PathBuf) -> Self {
        Self { root, ..Self::default() }
    }

    /// The suggestions, best first. Blocks while files are read: see [`CompletionQuery::touches_files`]. There are none for
    /// [`CompletionQuery::Hash`], and none for arguments of commands that are not known here: those come from extensions.
    pub fn complete(&self, query: &CompletionQuery, cancel: &Cancel) -> Vec<Completion> {
        match query {
            CompletionQuery::Command { typed } => {
                let found = fuzzy::filter(&self.commands, typed, |command| command.name.clone());
                let found = found.into_iter();
                found
                    .map(|command| Completion { description: command.details(), ..Completion::new(&command.name) })
                    .collect()
            }
            CompletionQuery::Argument { command, typed } => {
                let command = self.commands.iter().find(|known| known.name == *command);
                let arguments = command.map_or(&[][..], |command| &command.arguments);
                let text = |argument: &&Completion| match &argument.label {
                    Some(label) => format!("{label} {}", argument.value),
                    None => argument.value.clone(),
                };
                fuzzy::filter(arguments, typed, text).into_iter().cloned().collect()
            }
            CompletionQuery::Mention { typed, .. } => self.mentions(typed, cancel),
            CompletionQuery::Path { typed, .. } => list(typed, &self.root, self.home.as_deref()),
            CompletionQuery::Hash { .. } => Vec::new(),
        }
    }

    fn mentions(&self, typed: &str, cancel: &Cancel) -> Vec<Completion> {
        let is_elsewhere = ["/", "~", "./", "../"].iter().any(|start| typed.starts_with(start)) || typed == "..";
        let (folder, rest) = split_path(typed);
        let Some(index) = self.files.as_ref().filter(|_| !is_elsewhere) else {
            return list(typed, &self.root, self.home.as_deref());
        };
        let (folder, letters) =
            if index.has_folder(folder.trim_end_matches('/')) { (folder, rest) } else { ("", typed) };
        let found = index.search(folder, letters, MAX_MENTIONS, cancel);
        if found.is_empty() && typed.contains('/') {
            // Directories that are ignored are not in the index.
            return list(typed, &self.root, self.home.as_deref());
        }
        let mention = |(path, is_dir): (&str, bool)| {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            suggestion(path.to_owned(), is_dir, folder)
        };
        found.into_iter().map(mention).collect()
    }
}
