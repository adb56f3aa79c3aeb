//! Paths of file tools that are confined to a workspace, in the forms that models write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;

/// The parameter with the path.
const PATH: &str = "path";
/// Path of the workspace in containers of other agents.
const CONTAINER_ROOT: &str = "/workspace";

/// A file tool whose paths may also be `file://` URLs, or paths in a container.
struct WorkspacePaths {
    inner: Arc<dyn Tool>,
    workspace: PathBuf,
}

/// Wraps a file tool that is confined to a workspace: `file://` URLs become paths, and `/workspace/x` becomes `x` in the workspace. Whether a
/// path is inside is still checked by the tool's machine.
pub fn in_workspace(tool: Arc<dyn Tool>, workspace: &Path) -> Arc<dyn Tool> {
    Arc::new(WorkspacePaths { inner: tool, workspace: workspace.to_owned() })
}

impl Tool for WorkspacePaths {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        let mut input = self.inner.prepare(raw)?;
        let given = input.get(PATH).and_then(Value::as_str);
        if let Some(path) = given.and_then(|path| translated(path, &self.workspace)) {
            input.insert(PATH.to_owned(), path.into());
        }
        Ok(input)
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.inner.run(input, cx)
    }
}

/// Translates a URL or a path in a container; `None` for other paths.
fn translated(path: &str, workspace: &Path) -> Option<String> {
    let bare = path.strip_prefix('@').unwrap_or(path);
    let url = bare.strip_prefix("file://").map(|rest| rest.strip_prefix("localhost").unwrap_or(rest));
    let decoded = match url.filter(|rest| rest.starts_with('/')) {
        Some(rest) => Some(percent_decoded(rest)?),
        None => None,
    };
    let is_mapped = !workspace.starts_with(CONTAINER_ROOT);
    let in_container = decoded
        .as_deref()
        .unwrap_or(bare)
        .strip_prefix(CONTAINER_ROOT)
        .filter(|rest| is_mapped && (rest.is_empty() || rest.starts_with('/')));
    match in_container {
        Some(rest) => Some(workspace.join(rest.trim_start_matches('/')).to_string_lossy().into_owned()),
        None => decoded,
    }
}

/// Decodes the path of a URL; `None` if it is malformed or not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_container_paths_become_paths_of_the_workspace() {
        for (given, expect) in [
            ("file:///home/w/a%20b.txt", Some("/home/w/a b.txt")),
            ("file://localhost/etc/passwd", Some("/etc/passwd")),
            ("@file:///workspace/src/a.rs", Some("/home/w/src/a.rs")),
            ("/workspace/a.txt", Some("/home/w/a.txt")),
            ("/workspace/../a.txt", Some("/home/w/../a.txt")),
            ("/workspace//etc/passwd", Some("/home/w/etc/passwd")),
            ("/workspace", Some("/home/w/")),
            ("/workspaces/a.txt", None),
            ("file://server/a.txt", None),
            ("file:///a%zz", None),
            ("file:///a%ff", None),
            ("a.txt", None),
            ("@a.txt", None),
        ] {
            assert_eq!(translated(given, Path::new("/home/w")).as_deref(), expect, "{given}");
        }
        assert_eq!(translated("/workspace/a.txt", Path::new("/workspace/sub")), None);
    }
}
