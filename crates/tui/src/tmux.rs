//! How tmux passes keys with modifiers on. By default it drops the modifiers of keys such as shift+enter.

use std::path::{Path, PathBuf};
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
    pub(crate) fn remedy(self) -> Option<String> {
        let (what, line) = match self {
            Self::Extended => return None,
            Self::Off => ("tmux passes shift+enter on as enter", "set -g extended-keys on"),
            Self::UnknownFormat => (
                "tmux passes keys such as shift+enter on in a format that is not supported",
                "set -g extended-keys-format csi-u",
            ),
        };
        Some(format!("{what}. Add `{line}` to ~/.tmux.conf and restart tmux"))
    }

    /// Like [`Self::remedy`], with other keys for a new line.
    pub(crate) fn problem(self, keymap: &Keymap) -> Option<String> {
        let remedy = self.remedy()?;
        let keys = keymap.keys(KeyAction::NewLine).iter().map(ToString::to_string).filter(|keys| keys != "shift+enter");
        let instead = keys.chain(["\\ and enter".to_owned()]).collect::<Vec<_>>().join(", or ");
        Some(format!("{remedy}. For a new line, press {instead}"))
    }

    /// Formats the problem in Markdown for a list of keys; empty if there is none.
    pub(crate) fn note(self, keymap: &Keymap) -> String {
        self.problem(keymap).map_or_else(String::new, |problem| format!("**tmux**\n\n{problem}\n"))
    }
}

/// Returns the value of a global option; `None`: it is unknown, or the server does not answer.
async fn option(socket: &str, name: &str) -> Option<String> {
    let mut command = Command::new("tmux");
    command.args(["-S", socket, "show-options", "-gv", name]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = tokio::time::timeout(LIMIT, command.kill_on_drop(true).output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Where the problem of a server is shown; once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticePlace {
    /// A program with an editor for messages.
    Conversation,
    /// The list of resources.
    Resources,
}

impl NoticePlace {
    /// Returns its member in the record.
    fn member(self) -> &'static str {
        match self {
            Self::Conversation => "server",
            Self::Resources => "configServer",
        }
    }
}

/// Asks the server that the program runs in how it passes keys on, and records that a problem is shown at this place, if there is room for
/// it. Returns the answer, and whether to show the problem now; `None`: there is no server, or it does not answer.
pub(crate) async fn examine(agent_dir: PathBuf, host: Host, place: Option<NoticePlace>) -> Option<(TmuxKeys, bool)> {
    let keys = TmuxKeys::query(host.env()).await?;
    let Some(place) = place.filter(|_| keys != TmuxKeys::Extended) else { return Some((keys, false)) };
    let record = tokio::task::spawn_blocking(move || record_notice(&agent_dir, &host, place));
    // Without a record, the problem is shown each time.
    Some((keys, record.await.ok().and_then(Result::ok).unwrap_or(true)))
}

/// Records that the problem of a server is shown. Returns whether it was not shown before. Blocks while another process is writing.
///
/// # Errors
/// The record cannot be written.
fn record_notice(agent_dir: &Path, host: &Host, place: NoticePlace) -> Result<bool, ChangeError> {
    // The socket, and the process id of the server.
    let server = host.env().get("TMUX").unwrap_or_default().splitn(3, ',').take(2).collect::<Vec<_>>().join(",");
    change_object(&agent_dir.join(FILE), Access::NewPrivate, host, |document| {
        let before = document.insert(place.member().to_owned(), server.as_str().into());
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
        let record = |tmux: &str, place| {
            let host = Host::builder().env(Env::default().with([("TMUX", tmux)])).build();
            record_notice(dir.path(), &host, place).unwrap()
        };
        let conversation = NoticePlace::Conversation;
        assert!(record("/tmp/tmux-1000/default,12,0", conversation));
        assert!(!record("/tmp/tmux-1000/default,12,3", conversation), "another pane");
        assert!(record("/tmp/tmux-1000/default,99,0", conversation), "restarted");
        assert!(record("/tmp/tmux-1000/default,99,0", NoticePlace::Resources), "another place");
        assert!(!record("/tmp/tmux-1000/default,99,0", conversation), "which does not count here");
    }

    #[tokio::test]
    async fn there_is_no_answer_outside_tmux() {
        assert_eq!(TmuxKeys::query(&Env::default()).await, None);
        let gone = Env::default().with([("TMUX", "/no/such/socket,1,0")]);
        assert_eq!(TmuxKeys::query(&gone).await, None);
    }
}
