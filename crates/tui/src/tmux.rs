//! How tmux passes keys with modifiers on. By default it drops the modifiers of keys such as shift+enter.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinch_coding_agent::document::{ChangeError, change_object};
use pinch_stdx::fs::Access;
use pinch_stdx::host::{Env, Host};
use tokio::process::Command;

use crate::keymap::{KeyAction, Keymap};
use crate::terminal::reads_older_format;

/// Time limit for an answer of tmux.
const LIMIT: Duration = Duration::from_secs(2);
/// Name of the file in the agent directory that names the server whose problem was shown last.
const FILE: &str = "tmux-notice.json";

/// How a tmux server passes keys on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TmuxKeys {
    /// With all their modifiers, if a program asks for it.
    Extended,
    /// Without the modifiers of keys such as enter.
    Off,
    /// With all their modifiers, but in a format that is not understood.
    UnknownFormat,
}

impl TmuxKeys {
    /// Interprets the options `extended-keys` and, since tmux 3.5, `extended-keys-format`.
    fn of(keys: &str, format: Option<&str>) -> Self {
        match (keys, format) {
            ("on" | "always", None | Some("csi-u")) => Self::Extended,
            ("on" | "always", Some("xterm")) if reads_older_format() => Self::Extended,
            ("on" | "always", Some(_)) => Self::UnknownFormat,
            _ => Self::Off,
        }
    }

    /// Asks the server that the program runs in; `None`: there is none, or it does not answer.
    pub(crate) async fn query(env: &Env) -> Option<Self> {
        let socket = env.non_empty("TMUX")?.split(',').next()?;
        let (keys, format) = tokio::join!(option(socket, "extended-keys"), option(socket, "extended-keys-format"));
        Some(Self::of(&keys?, format.as_deref()))
    }

    /// Returns the problem and its remedy, if there is one.
    pub(crate) fn problem(self, keymap: &Keymap) -> Option<String> {
        let (what, line) = match self {
            Self::Extended => return None,
            Self::Off => ("tmux passes shift+enter on as enter", "set -g extended-keys on"),
            Self::UnknownFormat => (
                "tmux passes keys such as shift+enter on in a format that is not supported",
                "set -g extended-keys-format csi-u",
            ),
        };
        let keys = keymap.keys(KeyAction::NewLine).iter().map(ToString::to_string).filter(|keys| keys != "shift+enter");
        let instead = keys.chain(["\\ and enter".to_owned()]).collect::<Vec<_>>().join(", or ");
        Some(format!("{what}. Add `{line}` to ~/.tmux.conf and restart tmux. For a new line, press {instead}"))
    }
}

/// Returns the value of a global option; `None`: it is unknown, or the server does not answer.
async fn option(socket: &str, name: &str) -> Option<String> {
    let mut command = Command::new("tmux");
    command.args(["-S", socket, "show-options", "-gv", name]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = tokio::time::timeout(LIMIT, command.kill_on_drop(true).output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Records that the problem of a server is shown. Returns whether it was not shown before. Blocks while another process is writing.
///
/// # Errors
/// The record cannot be written.
pub(crate) fn record_notice(agent_dir: &Path, host: &Host) -> Result<bool, ChangeError> {
    // The socket, and the process id of the server.
    let server = host.env().get("TMUX").unwrap_or_default().splitn(3, ',').take(2).collect::<Vec<_>>().join(",");
    change_object(&agent_dir.join(FILE), Access::NewPrivate, host, |document| {
        let before = document.insert("server".to_owned(), server.as_str().into());
        Ok(before.as_ref().and_then(serde_json::Value::as_str) != Some(&server))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_fits_the_options() {
        let problem = |keys, format| TmuxKeys::of(keys, format).problem(&Keymap::default());
        assert_eq!(problem("on", None), None);
        assert_eq!(problem("always", Some("csi-u")), None);
        let off = problem("off", Some("xterm")).unwrap();
        assert!(off.contains("`set -g extended-keys on`") && off.ends_with("press ctrl+j, or \\ and enter"), "{off}");
        assert_eq!(problem("on", Some("xterm")).is_some(), !reads_older_format());
        assert!(problem("on", Some("other")).unwrap().contains("`set -g extended-keys-format csi-u`"));
    }

    #[test]
    fn the_problem_of_a_server_is_shown_once() {
        let dir = tempfile::tempdir().unwrap();
        let record = |tmux: &str| {
            let host = Host::builder().env(Env::default().with([("TMUX", tmux)])).build();
            record_notice(dir.path(), &host).unwrap()
        };
        assert!(record("/tmp/tmux-1000/default,12,0"));
        assert!(!record("/tmp/tmux-1000/default,12,3"), "another pane");
        assert!(record("/tmp/tmux-1000/default,99,0"), "restarted");
    }

    #[tokio::test]
    async fn there_is_no_answer_outside_tmux() {
        assert_eq!(TmuxKeys::query(&Env::default()).await, None);
        let gone = Env::default().with([("TMUX", "/no/such/socket,1,0")]);
        assert_eq!(TmuxKeys::query(&gone).await, None);
    }
}
