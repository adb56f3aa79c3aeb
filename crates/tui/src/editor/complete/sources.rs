//! Sources of suggestions.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::stdx::cancel::Cancel;
use pinch_coding_agent::stdx::text::fuzzy;

use super::index::PathIndex;
use super::listing::{list, split_path, suggestion};
use super::query::CompletionQuery;

/// Maximum number of paths suggested for a mention.
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
    /// Its origin, for people: `[u]`.
    pub origin: Option<String>,
    /// Possible arguments, matched by label and value.
    pub arguments: Vec<Completion>,
}

impl CommandSuggestion {
    /// Creates a command without arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: Some(description.into()), ..Self::default() }
    }

    /// Formats `[u] <path> — what it does`.
    fn details(&self) -> Option<String> {
        let hint = self.argument_hint.as_deref().filter(|hint| !hint.is_empty());
        let text = self.description.as_deref().filter(|text| !text.is_empty());
        let details: Vec<&str> = hint.into_iter().chain(text).collect();
        let parts = self.origin.iter().cloned().chain((!details.is_empty()).then(|| details.join(" — ")));
        let all: Vec<String> = parts.collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// The data that suggestions are made from.
#[derive(Clone, Debug, Default)]
pub struct CompletionSources {
    /// The commands. Equally good matches keep this order.
    pub commands: Vec<CommandSuggestion>,
    /// Base directory of relative paths.
    pub root: PathBuf,
    /// Expansion of `~`.
    pub home: Option<PathBuf>,
    /// Paths below `root`; until they are known, directories are listed one at a time.
    pub files: Option<Arc<PathIndex>>,
}

impl CompletionSources {
    /// Creates sources with only the paths below a directory.
    pub fn new(root: PathBuf) -> Self {
        Self { root, ..Self::default() }
    }

    /// Returns the suggestions, best first. Blocks while reading files: see [`CompletionQuery::touches_files`]. There are none for
    /// [`CompletionQuery::Hash`] and for arguments of unknown commands, which come from extensions.
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

    /// Returns whether the arguments of a command are known here; those of other commands come from extensions.
    pub(crate) fn completes_arguments(&self, command: &str) -> bool {
        let command = self.commands.iter().find(|known| known.name == command);
        command.is_some_and(|command| !command.arguments.is_empty())
    }

    fn mentions(&self, typed: &str, cancel: &Cancel) -> Vec<Completion> {
        let is_elsewhere = ["/", "~", "./", "../"].iter().any(|start| typed.starts_with(start)) || typed == "..";
        let (folder, rest) = split_path(typed);
        let Some(index) = self.files.as_ref().filter(|_| !is_elsewhere) else {
            return list(typed, &self.root, self.home.as_deref());
        };
        let (folder, letters) =
            if index.has_directory(folder.trim_end_matches('/')) { (folder, rest) } else { ("", typed) };
        let found = index.search(folder, letters, MAX_MENTIONS, cancel);
        if found.is_empty() && typed.contains('/') {
            // Ignored directories are not in the index.
            return list(typed, &self.root, self.home.as_deref());
        }
        let mention = |(path, is_dir): (&str, bool)| {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            suggestion(path.to_owned(), is_dir, folder)
        };
        found.into_iter().map(mention).collect()
    }
}
