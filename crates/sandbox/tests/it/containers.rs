//! Containers: the calls of docker and podman, and how tools and commands behave.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_machine::{CommandSpec, ProcessEnd};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::confinement::{Confinement, NetworkAccess, PathAccess};
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::containers::{ContainerEngine, ContainerSandbox};
use pinch_sandbox::contract::{Sandbox as _, SandboxUnavailable};
use pinch_sandbox::domains::DomainList;
use pinch_sandbox::landlock::LandlockSandbox;
use pinch_sandbox::scope::{SandboxScope, WorkspaceAccess};
use pinch_stdx::cancel::Cancel;

use crate::bench::{SECRET, SandboxBench, podman, sh, skipped};

/// An engine that records its calls and runs commands on the host.
const FAKE: &str = include_str!("fake-engine.sh");

/// A directory with the fake engine, as docker and as podman.
struct FakeEngine {
    dir: PathBuf,
    path: String,
}

impl FakeEngine {
    fn new(bench: &SandboxBench) -> Self {
        let dir = bench.secret.parent().unwrap().join("bin");
        std::fs::create_dir(&dir).unwrap();
        for name in ["docker", "podman"] {
            std::fs::write(dir.join(name), FAKE).unwrap();
            std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", dir.display());
        Self { dir, path }
    }

    fn docker(&self, options: ContainerOptions) -> ContainerSandbox {
        ContainerSandbox::find(ContainerEngine::Docker, &self.path, options)
    }

    /// Returns its calls, one per line.
    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        log.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits for a call.
    async fn wait_for(&self, is_it: impl Fn(&str) -> bool) -> String {
        for _ in 0..500 {
            if let Some(line) = self.log().into_iter().find(|line| is_it(line)) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.log());
    }
}

fn options() -> ContainerOptions {
    ContainerOptions::new(ContainerConfig::default(), "agent:main:x")
}

/// Returns whether tools can be confined here.
async fn works() -> bool {
    LandlockSandbox.probe().await.inspect_err(|error| skipped(&error.to_string())).is_ok()
}

#[tokio::test]
async fn a_container_is_hardened_and_ends_with_its_machine() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let shared = bench.secret.parent().unwrap().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let asked = bench.asked().root(&shared, PathAccess::Read);
    let machine = fake.docker(options()).enter(&asked).await.unwrap();
    let log = fake.log();
    let created = log.iter().find(|line| line.starts_with("create ")).unwrap();
    let work = bench.workspace.display();
    let owner = bench.workspace.metadata().unwrap();
    for part in [
        "create --pull never ".to_owned(),
        " --read-only ".to_owned(),
        " --network none ".to_owned(),
        " --cap-drop ALL ".to_owned(),
        " --security-opt no-new-privileges ".to_owned(),
        " --init ".to_owned(),
        format!(" --user {}:{} ", owner.uid(), owner.gid()),
        format!(" -v {work}:/workspace "),
        format!(" --volume {work}:{work} "),
        format!(" --volume {0}:{0}:ro ", shared.display()),
        format!(" --volume {0}:{0} ", machine.temp_dir().unwrap().display()),
    ] {
        assert!(created.contains(&part), "{part}: {created}");
    }
    assert!(created.ends_with("openclaw-sandbox:bookworm-slim sleep infinity"), "{created}");
    let name = created.split(" --name ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert!(name.starts_with("openclaw-sbx-agent-main-x-"), "{name}");
    assert!(log.contains(&format!("start {name}")), "{log:?}");
    // A running command keeps it alive.
    let (status, output) = sh(&*machine, &bench.workspace, "pwd; cat a.txt").await;
    assert_eq!((status, output), (0, format!("{work}\ninside\n")));
    let command =
        CommandSpec::new("/bin/bash".into(), vec!["-c".into(), "sleep 60".into()], bench.workspace.clone(), vec![]);
    let process = machine.spawn(command).await.unwrap();
    drop(machine);
    assert!(!fake.log().iter().any(|line| line.starts_with("rm ")), "{:?}", fake.log());
    drop(process);
    fake.wait_for(|line| line == format!("rm --force --volumes {name}")).await;
}

#[tokio::test]
async fn tools_see_exactly_what_the_container_sees_of_the_host() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let machine = fake.docker(options()).enter(&bench.asked()).await.unwrap();
    let link = bench.workspace.join("link");
    std::os::unix::fs::symlink(&bench.secret, &link).unwrap();
    for path in [bench.secret.as_path(), &link, Path::new("/etc/passwd"), Path::new("/usr/bin/env")] {
        assert!(machine.read(path, 1 << 20).await.is_err(), "{}", path.display());
        assert!(machine.stat(path).await.is_err(), "{}", path.display());
    }
    assert!(machine.write(&bench.secret, "x".into()).await.is_err());
    assert_eq!(std::fs::read_to_string(&bench.secret).unwrap(), SECRET);
    for path in [bench.workspace.join("a.txt"), PathBuf::from("/workspace/a.txt")] {
        assert_eq!(machine.read(&path, 100).await.unwrap(), "inside\n", "{}", path.display());
    }
    machine.write(Path::new("/workspace/new/b.txt"), "b".into()).await.unwrap();
    assert_eq!(std::fs::read_to_string(bench.workspace.join("new/b.txt")).unwrap(), "b");
}

#[tokio::test]
async fn a_read_only_workspace_is_mounted_read_only() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let asked = bench.asked().read_only().network(NetworkAccess::On);
    let machine = fake.docker(options()).enter(&asked).await.unwrap();
    let created = fake.wait_for(|line| line.starts_with("create ")).await;
    let work = bench.workspace.display();
    for part in
        [format!(" -v {work}:/workspace:ro "), format!(" --volume {work}:{work}:ro "), " --network bridge ".into()]
    {
        assert!(created.contains(&part), "{part}: {created}");
    }
    assert!(machine.write(&bench.workspace.join("a.txt"), "x".into()).await.is_err());
    // The agent's workspace is readable next to the copy.
    let agent = bench.secret.parent().unwrap();
    let copy = options().scope(SandboxScope::Agent, "agent:main").agent_workspace(agent, WorkspaceAccess::ReadOnly);
    let asked = bench.asked().root(agent, PathAccess::Read);
    let machine = fake.docker(copy).enter(&asked).await.unwrap();
    fake.wait_for(|line| line.contains(&format!(" -v {}:/agent:ro ", agent.display()))).await;
    assert_eq!(machine.read(Path::new("/agent/secret.txt"), 100).await.unwrap(), SECRET);
    assert!(machine.write(Path::new("/agent/secret.txt"), "x".into()).await.is_err());
}

#[tokio::test]
async fn command_variables_reach_neither_the_client_nor_its_arguments() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let host = vec![("DOCKER_HOST".to_owned(), "unix:///host.sock".to_owned()), ("OTHER".to_owned(), "x".to_owned())];
    let machine = fake.docker(options().host(None, host, 5)).enter(&bench.asked()).await.unwrap();
    let env = [("DOCKER_HOST", "tcp://evil"), ("VISIBLE", "a value"), ("PATH", "/nowhere"), ("LD_PRELOAD", "")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let script = "echo $DOCKER_HOST $VISIBLE ${OTHER-none} $HOME";
    let args = vec!["-c".to_owned(), script.to_owned()];
    let command = CommandSpec::new("/bin/bash".into(), args, bench.workspace.clone(), env);
    let mut process = machine.spawn(command).await.unwrap();
    let mut output = Vec::new();
    let mut keep = |data: &[u8]| output.extend_from_slice(data);
    process.pump(&Cancel::new(), None, Duration::ZERO, &mut keep).await.unwrap();
    let home = machine.temp_dir().unwrap().join("home");
    assert_eq!(String::from_utf8_lossy(&output), format!("tcp://evil a value none {}\n", home.display()));
    let log = fake.log().join("\n");
    assert!(!log.contains("a\\ value") && !log.contains("/nowhere"), "{log}");
    let clients = std::fs::read_to_string(fake.dir.join("env")).unwrap();
    assert!(clients.lines().all(|line| line.starts_with("unix:///host.sock ")), "{clients}");
}

#[tokio::test]
async fn a_command_in_a_container_ends_with_everything_it_started() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let machine = fake.docker(options()).enter(&bench.asked()).await.unwrap();
    let script = "(setsid sleep 300 >/dev/null 2>&1 & echo $! > pid); sleep 300";
    let args = vec!["-c".to_owned(), script.to_owned()];
    let command = CommandSpec::new("/bin/bash".into(), args, bench.workspace.clone(), vec![]);
    let mut process = machine.spawn(command).await.unwrap();
    let limit = Some(Duration::from_millis(500));
    let end = process.pump(&Cancel::new(), limit, Duration::from_millis(100), &mut |_| {}).await.unwrap();
    assert!(matches!(end, ProcessEnd::TimedOut(_)), "{end:?}");
    let pid = std::fs::read_to_string(bench.workspace.join("pid")).unwrap();
    // A finished process may still be a zombie.
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    fake.wait_for(|line| line.starts_with("exec ") && line.contains("PINCH_SANDBOX_COMMAND") && line.contains("kill"))
        .await;
}

#[tokio::test]
async fn an_unavailable_container_is_an_error_with_a_remedy() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let failed = |error: Option<SandboxUnavailable>| error.map(|error| (error.reason, error.remedy)).unwrap();
    let none = ContainerSandbox::find(ContainerEngine::Podman, "/nowhere", options());
    let (reason, remedy) = failed(none.enter(&bench.asked()).await.err());
    assert_eq!(
        (reason.as_str(), remedy.as_str()),
        ("podman is not installed", "install podman, or use another backend")
    );
    let mut missing = options();
    missing.config.image = "missing".to_owned();
    let (reason, remedy) = failed(fake.docker(missing).enter(&bench.asked()).await.err());
    assert!(reason.starts_with("Sandbox image not found: missing. Build or pull it first."), "{reason}");
    assert!(remedy.contains("docker pull missing"), "{remedy}");
    let mut open = options();
    open.config.binds = vec!["/etc:/host".to_owned()];
    let (reason, _) = failed(fake.docker(open).enter(&bench.asked()).await.err());
    assert!(reason.starts_with("Sandbox security: "), "{reason}");
    let odd = bench.workspace.join("a:b");
    std::fs::create_dir(&odd).unwrap();
    let (reason, _) = failed(fake.docker(options()).enter(&Confinement::new(&odd)).await.err());
    assert!(reason.contains("colon"), "{reason}");
    let listed = bench.asked().network(NetworkAccess::Domains(DomainList::default()));
    let (reason, remedy) = failed(fake.docker(options()).enter(&listed).await.err());
    assert!(reason.contains("list of servers") && remedy.contains("bubblewrap"), "{reason}; {remedy}");
    assert!(!fake.log().iter().any(|line| line.starts_with("create ")), "{:?}", fake.log());
    // If a step after creation fails, the container is removed.
    let mut broken = options();
    broken.config.setup_command = Some("echo no; exit 3".to_owned());
    let (reason, _) = failed(fake.docker(broken).enter(&bench.asked()).await.err());
    assert!(reason.contains("exec: no"), "{reason}");
    fake.wait_for(|line| line.starts_with("rm ")).await;
}

#[tokio::test]
async fn containers_of_killed_programs_are_removed() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let fake = FakeEngine::new(&bench);
    let alive = format!("pinch-a-{}-7", std::process::id());
    std::fs::write(fake.dir.join("left"), format!("pinch-a-999999999-0\n{alive}\nodd\n")).unwrap();
    let machine = fake.docker(options()).enter(&bench.asked()).await.unwrap();
    fake.wait_for(|line| line == "rm --force --volumes pinch-a-999999999-0").await;
    let log = fake.log().join("\n");
    assert!(!log.contains(&format!("rm --force --volumes {alive}")) && !log.contains("volumes odd"), "{log}");
    assert!(log.contains("ps --all --filter label=pinch.owner="), "{log}");
    drop(machine);
}

#[tokio::test]
async fn a_real_container_keeps_commands_inside() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let Some(podman) = podman("agent:main:real").await else { return };
    let machine = podman.enter(&bench.asked()).await.unwrap();
    let (secret, work) = (bench.secret.display(), bench.workspace.display());
    let script =
        format!("pwd; cat a.txt /workspace/a.txt; echo new > b.txt; echo t > $TMPDIR/t && cat $TMPDIR/t; cat {secret}");
    let (status, output) = sh(&*machine, &bench.workspace, &script).await;
    assert!(status != 0 && output.starts_with(&format!("{work}\ninside\ninside\nt\n")), "{output}");
    assert!(!output.contains(SECRET), "{output}");
    assert_eq!(std::fs::read_to_string(bench.workspace.join("b.txt")).unwrap(), "new\n");
    assert_eq!(
        bench.workspace.join("b.txt").metadata().unwrap().uid(),
        bench.workspace.metadata().unwrap().uid(),
        "files belong to the owner of the workspace"
    );
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for (what, script) in [
        ("its own files", "echo x > /bin/x".to_owned()),
        ("the network", format!("wget -T 2 http://{}/", outside.local_addr().unwrap())),
        ("processes outside", format!("ls /proc/{}/exe 2>/dev/null && kill -0 {0}", std::process::id())),
        ("devices", "cat /dev/sda /dev/mem".to_owned()),
    ] {
        let (status, output) = sh(&*machine, &bench.workspace, &script).await;
        assert_ne!(status, 0, "{what}: {output}");
    }
    let args = vec!["-c".to_owned(), "(setsid sleep 4321 &); sleep 4321".to_owned()];
    let command = CommandSpec::new("/bin/bash".into(), args, bench.workspace.clone(), vec![]);
    let mut process = machine.spawn(command).await.unwrap();
    let limit = Some(Duration::from_secs(2));
    process.pump(&Cancel::new(), limit, Duration::ZERO, &mut |_| {}).await.unwrap();
    drop(process);
    let (_, output) = sh(&*machine, &bench.workspace, "ps | grep '[4]321'").await;
    assert_eq!(output, "", "nothing goes on");
    drop(machine);
    let listed = || {
        let args = ["ps", "--all", "--filter", "label=openclaw.sessionKey=agent:main:real", "--format", "{{.Names}}"];
        let listed = std::process::Command::new("podman").args(args).current_dir("/").output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().filter(|name| name.contains(&own())).count()
    };
    for _ in 0..100 {
        if listed() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the container is left");
}

/// Returns a part common to the container names of this process.
fn own() -> String {
    format!("-{}-", std::process::id())
}
