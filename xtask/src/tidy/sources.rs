//! Source files of the workspace.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A text file.
pub(super) struct SourceFile {
    /// Path relative to the root, with slashes.
    pub(super) path: String,
    /// Content of the file.
    pub(super) text: String,
}

impl SourceFile {
    /// Returns whether the file is Rust.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }

    /// The text without the test module at its end.
    pub(super) fn without_tests(&self) -> &str {
        let at = self.text.find("\n#[cfg(test)]\nmod ").or_else(|| self.text.find("\n#[cfg(test)]\npub(crate) mod "));
        at.map_or(&self.text, |at| &self.text[..=at])
    }
}

/// Reads every hand-written text file: Rust, TOML, Markdown and the CI script.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !matches!(&*name, "target" | ".git" | "cases" | "corpus" | "snapshots" | "peers")
                    || name == "cases" && has_rust(&path)
                {
                    folders.push(path);
                }
                continue;
            }
            let is_wanted = path.extension().is_some_and(|e| ["rs", "toml", "md"].iter().any(|wanted| e == *wanted));
            if is_wanted || path.ends_with(".ci/run") {
                let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                sources.push(SourceFile { path, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// `tests/src/cases` contains code, `tests/cases` contains data.
fn has_rust(folder: &Path) -> bool {
    folder.with_extension("rs").is_file()
}
