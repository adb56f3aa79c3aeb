//! Terminal programs driven by keys.

use super::*;

/// A terminal program in the background.
struct OnTerminal {
    process: BackgroundTool,
    exec: ExecTool,
    id: String,
    pid: u32,
    shown: String,
    /// How far into `shown` earlier waits have matched.
    awaited: usize,
}

impl OnTerminal {
    async fn start(dir: &Path, command: &str) -> Self {
        let (exec, process) = tools(options(dir));
        let (_, details) = call(&exec, json!({"command": command, "background": true, "pty": true})).await.unwrap();
        let id = details["sessionId"].as_str().unwrap().to_owned();
        let pid = u32::try_from(details["pid"].as_u64().unwrap()).unwrap();
        Self { process, exec, id, pid, shown: String::new(), awaited: 0 }
    }

    async fn act(&self, action: &str, more: Value) -> String {
        let mut input = json!({"action": action, "sessionId": self.id});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call(&self.process, input).await.unwrap().0
    }

    async fn keys(&self, literal: &str, keys: &[&str]) {
        let done = self.act("send-keys", json!({"literal": literal, "keys": keys})).await;
        assert!(done.starts_with("Sent "), "{done}");
    }

    /// Polls until the program shows a text after the previous match.
    async fn until(&mut self, text: &str) {
        for _ in 0..100 {
            let polled = self.act("poll", json!({"timeout": 200})).await;
            self.shown.push_str(polled.strip_prefix("(no new output)").unwrap_or(&polled));
            if let Some(at) = self.shown[self.awaited..].find(text) {
                self.awaited += at + text.len();
                return;
            }
        }
        panic!("{text:?} was not shown: {:?}", &self.shown[self.awaited..]);
    }
}

async fn ends(pid: u32) {
    for _ in 0..200 {
        if !pinch_stdx::process::is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{pid} is still running");
}

#[tokio::test]
async fn a_command_gets_a_terminal_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, _) = tools(options(dir.path()));
    let command = "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM && echo x > /dev/tty; exit 3";
    let (text, details) = call(&exec, json!({"command": command, "pty": true})).await.unwrap();
    assert_eq!(text, "30 120\r\nxterm-256color\r\nx\n\nCommand exited with code 3");
    assert_eq!(details["exitCode"], 3);
    let (text, _) = call(&exec, json!({"command": "test -t 0 || echo none"})).await.unwrap();
    assert_eq!(text, "none");
}

#[tokio::test]
async fn an_interpreter_is_driven_by_keys() {
    if !Path::new("/usr/bin/python3").exists() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut python = OnTerminal::start(dir.path(), "exec /usr/bin/python3 -q -i").await;
    python.until(">>>").await;
    python.keys("print(6 * 7 * 1000)", &["Enter"]).await;
    python.until("42000").await;
    python.act("paste", json!({"text": "name = 'world'", "bracketed": false})).await;
    python.act("submit", json!({})).await;
    python.act("write", json!({"data": "print('hello', name)\n"})).await;
    python.until("hello world").await;
    python.keys("import time; print('asl' + 'eep'); time.sleep(300)", &["Enter"]).await;
    // Any earlier, and the line editor would receive the key.
    python.until("asleep").await;
    python.keys("", &["C-c"]).await;
    python.until("KeyboardInterrupt").await;
    // End-of-input only works at the prompt: the line editor discards it while setting up the terminal.
    python.until(">>>").await;
    python.act("write", json!({"data": "", "eof": true})).await;
    // After an interrupt, it ends by that signal.
    python.until("Process exited with").await;
}

/// Makes the test [`deaf_host`] run commands.
const IS_DEAF: &str = "PINCH_TEST_DEAF_HOST";

/// Not a test by itself: the host that [`commands_on_a_terminal_start_with_default_signals`] runs, which ignores signals.
#[tokio::test]
async fn deaf_host() {
    if std::env::var_os(IS_DEAF).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (exec, _) = tools(options(dir.path()));
    let command = "for signal in HUP INT QUIT TERM ALRM; do sh -c \"kill -$signal \\$\\$; echo ignores $signal\"; done";
    for (pty, n_ignored) in [(true, 0), (false, 5)] {
        let (text, _) = call(&exec, json!({"command": command, "pty": pty, "timeout": 20})).await.unwrap();
        assert_eq!(text.matches("ignores").count(), n_ignored, "{text:?}");
    }
}

#[test]
fn commands_on_a_terminal_start_with_default_signals() {
    let host = std::process::Command::new("/bin/sh")
        .args(["-c", "trap '' HUP INT QUIT TERM ALRM; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "process::exec_tool::tests::terminal::deaf_host", "--nocapture"])
        .env(IS_DEAF, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&host.stdout);
    assert!(host.status.success() && told.contains("1 passed"), "{told}");
}

#[tokio::test]
async fn a_full_screen_program_is_driven_by_keys() {
    if !Path::new("/usr/bin/vim").exists() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text"), "one\ntwo\nthree\n").unwrap();
    let mut vim = OnTerminal::start(dir.path(), "exec /usr/bin/vim -u NONE -N text").await;
    vim.until("three").await;
    vim.keys("", &["Down"]).await;
    vim.keys("ddGoend", &["Escape"]).await;
    vim.keys(":wq", &["Enter"]).await;
    vim.until("Process exited with code 0.").await;
    assert_eq!(std::fs::read_to_string(dir.path().join("text")).unwrap(), "one\nthree\nend\n");
    assert!(!vim.shown.contains('\u{1b}') && !vim.shown.contains("[?"), "{:?}", vim.shown);
}

#[tokio::test]
async fn cursor_position_requests_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let command = "stty raw -echo; printf '\\033[6n'; head -c 6 | od -An -c; stty sane; echo done";
    let (exec, _) = tools(options(dir.path()));
    let (text, _) = call(&exec, json!({"command": command, "pty": true, "timeout": 20})).await.unwrap();
    assert!(text.contains("033   [   1   ;   1   R") && text.contains("done"), "{text:?}");
}

// Other systems cannot find processes that left both the session and the group.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn everything_started_from_a_terminal_shell_ends_with_it() {
    for kills in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = OnTerminal::start(dir.path(), "exec bash --norc --noprofile -i").await;
        shell.keys("sleep 300 & echo $! > a; nohup setsid sleep 300 > /dev/null 2>&1 & echo $! > b", &["Enter"]).await;
        shell.keys("sleep 300 | cat & echo $! > c; echo all$((1 + 1))", &["Enter"]).await;
        shell.until("all2").await;
        let pid = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap().trim().parse::<u32>().unwrap();
        let mut pids = ["a", "b", "c"].map(pid).to_vec();
        pids.push(shell.pid);
        if kills {
            shell.act("kill", json!({})).await;
        } else {
            drop((shell.process, shell.exec));
        }
        for pid in pids {
            ends(pid).await;
        }
    }
}

#[tokio::test]
async fn a_flood_on_a_terminal_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, _) = tools(options(dir.path()));
    let command = "yes '\u{1b}[31m0123456789' | head -c 3000000; echo; echo end";
    let (_, details) = call(&exec, json!({"command": command, "pty": true})).await.unwrap();
    let kept = details["aggregated"].as_str().unwrap();
    assert!(kept.ends_with("end") && kept.len() <= 200_000 && !kept.contains("[31m"), "{} bytes", kept.len());
}
