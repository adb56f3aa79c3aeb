//! A working directory, and tools used in it.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{Progress, ToolCx, ToolError, ToolOutput};
use pinch_coding_agent::machine::LocalMachine;
use pinch_coding_agent::tools::bash::Shell;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_coding_agent::tools::{ToolParts, all_tools};
use pinch_llm::ids::ToolCallId;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::Value;

/// A directory with files.
#[cfg(feature = "search")]
pub(crate) struct FileTree(tempfile::TempDir);

#[cfg(feature = "search")]
impl FileTree {
    /// Creates files from `path: content`; a path with a trailing `/` is an empty directory.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            tree.write(name, content);
        }
        tree
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.root().join(name);
        if name.ends_with('/') {
            return std::fs::create_dir_all(path).unwrap();
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), content).unwrap();
    }

    pub(crate) async fn call(&self, tool: &str, input: Value, cancel: &Cancel) -> Result<ToolOutput, ToolError> {
        call(&self.root(), tool, input, cancel).await
    }

    /// Returns the text of a result or an error, with the directory's path replaced by `.`.
    pub(crate) async fn text(&self, tool: &str, input: Value) -> String {
        let text = text_of(self.call(tool, input, &Cancel::new()).await);
        text.replace(&*self.root().to_string_lossy(), ".")
    }
}

/// Calls a tool in a directory.
pub(crate) async fn call(root: &Path, tool: &str, input: Value, cancel: &Cancel) -> Result<ToolOutput, ToolError> {
    let parts = ToolParts::new(
        Arc::new(LocalMachine),
        WorkingDirectory { cwd: root.to_owned(), home: None },
        Shell { program: "/bin/sh".into(), prefix: None, env: Vec::new(), temp: root.to_owned() },
    );
    let (id, progress, host) = (ToolCallId::from("call"), Progress::ignored(), Host::builder().build());
    let cx = ToolCx { call: &id, cancel, progress: &progress, host: &host };
    let input = input.as_object().unwrap().clone();
    all_tools(&parts).get(tool).unwrap().run(input, &cx).await
}

/// Returns the text of a result or an error.
pub(crate) fn text_of(result: Result<ToolOutput, ToolError>) -> String {
    match result {
        Ok(output) => output.content[0].as_text().unwrap().to_owned(),
        Err(error) => format!("error: {}", error.text),
    }
}
