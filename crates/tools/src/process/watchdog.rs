//! Ends running commands when the host is killed and cannot do it itself.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sha2::{Digest as _, Sha256};

/// The variable by which descendants of a command are found; see [`pinch_stdx::process`].
const VARIABLE: &str = "PINCH_PROCESS";

/// Reads which commands are running until its input ends, which it does when the host is gone. Then it kills each command's group, and
/// every process that inherited the command's id, until none is left.
const SCRIPT: &str = r#"
ids=' '
while read -r op id pid; do
    case $op in
        +) ids="$ids$id:$pid " ;;
        -) case $ids in *" $id:"*)
            rest=${ids#*" $id:"}
            ids="${ids%%" $id:"*} ${rest#* }" ;;
        esac ;;
    esac
done
set --
for entry in $ids; do
    [ "${entry#*:}" = 0 ] || kill -s KILL -- "-${entry#*:}"
    set -- "$@" -e "${entry%:*}"
done
n=0
while [ $# -gt 0 ] && [ $n -lt 1000 ]; do
    # Its status is useless: some processes cannot be read, and others end meanwhile.
    files=$(grep -ls "$@" /proc/[0-9]*/environ)
    [ -n "$files" ] || break
    for file in $files; do
        file=${file#/proc/}
        kill -s KILL "${file%/environ}"
    done
    n=$((n + 1))
done
"#;

/// A process that outlives the host and ends the commands that were still running. Started with the first command.
#[derive(Default)]
pub(super) struct Watchdog(Mutex<Option<Child>>);

impl Watchdog {
    fn send(&self, lines: &str) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if child.as_mut().is_none_or(|child| write(child, lines).is_err()) {
            end(child.take());
            *child = start().ok();
            if child.as_mut().is_none_or(|child| write(child, lines).is_err()) {
                tracing::warn!("cannot start the process that ends commands if this one is killed");
            }
        }
    }

    fn finish(&self, id: &str) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if child.as_mut().is_some_and(|child| write(child, &format!("- {id}\n")).is_err()) {
            end(child.take());
        }
    }
}

/// A command that is running. Dropping it records that the command has ended; processes that it left running are not affected any more.
pub(super) struct RunningMark {
    watchdog: Weak<Watchdog>,
    id: String,
}

impl RunningMark {
    /// Marks a command that is about to start, so that its descendants can be found.
    pub(super) fn begin(watchdog: &Arc<Watchdog>, env: &mut Vec<(String, String)>) -> Self {
        let id = new_id();
        env.retain(|(name, _)| name != VARIABLE);
        env.push((VARIABLE.to_owned(), id.clone()));
        watchdog.send(&format!("+ {id} 0\n"));
        Self { watchdog: Arc::downgrade(watchdog), id }
    }

    /// Records the process group of the command.
    pub(super) fn started(&self, pid: Option<u32>) {
        if let (Some(watchdog), Some(pid)) = (self.watchdog.upgrade(), pid) {
            watchdog.send(&format!("- {0}\n+ {0} {pid}\n", self.id));
        }
    }
}

impl Drop for RunningMark {
    fn drop(&mut self) {
        if let Some(watchdog) = self.watchdog.upgrade() {
            watchdog.finish(&self.id);
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        end(self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Returns an id that no other command has, in this process or another: 32 hexadecimal digits.
fn new_id() -> String {
    static N_IDS: AtomicU64 = AtomicU64::new(0);
    let random = || RandomState::new().build_hasher().finish();
    let n = N_IDS.fetch_add(1, Ordering::Relaxed);
    let hash = Sha256::digest(format!("{} {n} {} {}", std::process::id(), random(), random()));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn start() -> std::io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).current_dir("/").env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Signals from the host's terminal must not reach it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

fn write(child: &mut Child, line: &str) -> std::io::Result<()> {
    child.stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?.write_all(line.as_bytes())
}

/// Closes the input, after which the process ends by itself, and reaps it elsewhere.
fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        drop(child.stdin.take());
        let reap = move || drop(child.wait());
        // Without a thread it is reaped when the host ends.
        drop(std::thread::Builder::new().name("pinch-watchdog".to_owned()).spawn(reap));
    }
}
