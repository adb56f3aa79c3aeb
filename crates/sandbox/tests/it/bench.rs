//! A test directory with a workspace and a file outside of it, and the backends that work here.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinch_machine::{CommandSpec, Machine, ProcessEnd};
use pinch_sandbox::bubblewrap::BubblewrapSandbox;
use pinch_sandbox::config::{ContainerConfig, ContainerLimit, Ulimit};
use pinch_sandbox::confinement::{Confinement, NetworkAccess};
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::containers::{ContainerEngine, ContainerSandbox, RuncSandbox};
use pinch_sandbox::contract::Sandbox;
use pinch_sandbox::landlock::LandlockSandbox;
use pinch_stdx::cancel::Cancel;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// A workspace, and a file outside that nothing inside may read or change.
pub(crate) struct SandboxBench {
    pub(crate) workspace: PathBuf,
    pub(crate) secret: PathBuf,
    _dir: TempDir,
}

/// Content of the file outside.
pub(crate) const SECRET: &str = "top secret";

impl SandboxBench {
    pub(crate) fn new() -> Self {
        // Not below /tmp, because sandboxes have a private one.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (workspace, secret) = (root.join("work"), root.join("outside/secret.txt"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(root.join("outside")).unwrap();
        std::fs::write(workspace.join("a.txt"), "inside\n").unwrap();
        std::fs::write(&secret, SECRET).unwrap();
        Self { workspace, secret, _dir: dir }
    }

    pub(crate) fn asked(&self) -> Confinement {
        Confinement::new(&self.workspace)
    }
}

/// Returns the backends that work here. Others are reported with the reason.
pub(crate) async fn backends() -> Vec<Box<dyn Sandbox>> {
    let bubblewrap = BubblewrapSandbox::find(&std::env::var("PATH").unwrap_or_default());
    let all: Vec<Box<dyn Sandbox>> = vec![Box::new(LandlockSandbox), Box::new(bubblewrap), Box::new(runc(|_| {}))];
    let mut working: Vec<Box<dyn Sandbox>> = Vec::new();
    for sandbox in all {
        match sandbox.probe().await {
            Ok(_) => working.push(sandbox),
            Err(error) => skipped(&format!("{error}; {}", error.remedy)),
        }
    }
    if let Some(podman) = podman("agent:main:x").await {
        working.push(Box::new(podman));
    }
    working
}

/// Creates a root file system whose programs are those of this machine's `/usr`, once that is mounted.
fn rootfs() -> PathBuf {
    let rootfs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rootfs");
    for dir in ["usr", "etc/alternatives", "var/tmp", "tmp", "proc"] {
        std::fs::create_dir_all(rootfs.join(dir)).unwrap();
    }
    let alternatives = std::fs::read_dir("/etc/alternatives").into_iter().flatten().flatten().map(|entry| entry.path());
    for link in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"].map(PathBuf::from).into_iter().chain(alternatives) {
        // Other tests may create it at the same time.
        if let Ok(target) = std::fs::read_link(&link) {
            drop(std::os::unix::fs::symlink(target, rootfs.join(link.strip_prefix("/").unwrap())));
        }
    }
    rootfs
}

/// Returns the settings of a container with this machine's programs.
fn container() -> ContainerConfig {
    let mut config = ContainerConfig::default();
    config.binds = vec!["/usr:/usr:ro".to_owned()];
    config.allow_external_binds = true;
    config
}

/// Returns runc with a root file system made of this machine's programs.
pub(crate) fn runc(change: impl FnOnce(&mut ContainerConfig)) -> RuncSandbox {
    let mut config = container();
    config.rootfs = Some(rootfs().to_string_lossy().into_owned());
    change(&mut config);
    let options = ContainerOptions::new(config, "agent:main:x").host(None, std::env::vars().collect(), 0);
    RuncSandbox::find(&std::env::var("PATH").unwrap_or_default(), options)
}

/// Returns podman with an image made of this machine's programs, if it can start containers here. Otherwise the reason is reported.
pub(crate) async fn podman(key: &str) -> Option<ContainerSandbox> {
    const IMAGE: &str = "pinch-sandbox-test";
    let mut config = container();
    IMAGE.clone_into(&mut config.image);
    // Podman's own limits are higher than some machines allow.
    for name in ["nofile", "nproc"] {
        config.ulimits.push((name.to_owned(), Ulimit::Both(ContainerLimit::Number(4096.0))));
    }
    let env: Vec<(String, String)> = std::env::vars().collect();
    let options = ContainerOptions::new(config, key).host(None, env, 0);
    let podman = ContainerSandbox::find(ContainerEngine::Podman, &std::env::var("PATH").unwrap_or_default(), options);
    static CAN_START: OnceCell<bool> = OnceCell::const_new();
    let try_it = || async {
        if let Err(error) = podman.probe().await {
            skipped(&error.to_string());
            return false;
        }
        let script = format!("tar -C {} -c . | podman import - {IMAGE}:latest", rootfs().display());
        let made = std::process::Command::new("/bin/sh").args(["-c", &script]).current_dir("/").output().unwrap();
        if !made.status.success() {
            skipped(&format!("podman makes no image: {}", String::from_utf8_lossy(&made.stderr)));
            return false;
        }
        let tried = podman.enter(&SandboxBench::new().asked()).await;
        tried.map_err(|error| skipped(&error.to_string())).is_ok()
    };
    CAN_START.get_or_init(try_it).await.then_some(podman)
}

/// Reports a skipped test and the reason.
pub(crate) fn skipped(why: &str) {
    // Not `eprintln!`, whose output only shows if a test fails.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// Runs a test in each backend.
pub(crate) async fn in_each<F: Future<Output = ()>>(
    asked: impl Fn(&SandboxBench) -> Confinement,
    test: impl Fn(&'static str, Arc<dyn Machine>, Arc<SandboxBench>) -> F,
) {
    for sandbox in backends().await {
        let bench = Arc::new(SandboxBench::new());
        let asked = asked(&bench);
        if let Some(what) = sandbox.probe().await.unwrap().guarantees.lacks(&asked) {
            skipped(&format!("{} cannot {what}", sandbox.name()));
            continue;
        }
        match sandbox.enter(&asked).await {
            Ok(machine) => test(sandbox.name(), machine, bench).await,
            // A network of its own needs more than the container itself, such as a tun device.
            Err(error) if sandbox.name() == "podman" && asked.network == NetworkAccess::On => {
                skipped(&error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Runs a shell script and returns its exit status and output.
pub(crate) async fn sh(machine: &dyn Machine, cwd: &Path, script: &str) -> (i32, String) {
    let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("HOME", "/nowhere")];
    let env = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let args = vec!["-c".to_owned(), script.to_owned()];
    let command = CommandSpec::new(PathBuf::from("/bin/bash"), args, cwd.to_owned(), env);
    let mut process = machine.spawn(command).await.unwrap();
    let mut output = Vec::new();
    let (limit, grace) = (Some(Duration::from_secs(60)), Duration::from_secs(1));
    let end = process.pump(&Cancel::new(), limit, grace, &mut |data| output.extend_from_slice(data)).await.unwrap();
    let ProcessEnd::Exited(exit) = end else { panic!("{script}: {end:?}") };
    (exit.status(), String::from_utf8_lossy(&output).into_owned())
}

/// Starts a server that answers each connection with a greeting, and returns its port.
pub(crate) fn greeting_server(greeting: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut received = [0; 1024];
            drop(client.read(&mut received).and_then(|_| client.write_all(greeting.as_bytes())));
        }
    });
    port
}
