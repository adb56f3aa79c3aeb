//! Containers of runc: their root file system, their limits, and what is refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_machine::CommandSpec;
use pinch_sandbox::config::{ContainerConfig, ContainerLimit};
use pinch_sandbox::confinement::{Confinement, NetworkAccess, PathAccess};
use pinch_sandbox::contract::{Sandbox as _, SandboxUnavailable};
use pinch_sandbox::domains::DomainList;

use crate::bench::{SECRET, SandboxBench, runc, sh, skipped};

async fn works() -> bool {
    runc(|_| {}).probe().await.inspect_err(|error| skipped(&format!("{error}; {}", error.remedy))).is_ok()
}

/// Returns the names in a directory, with all below them.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut found: Vec<PathBuf> = entries
        .flat_map(|entry| match entry.file_type().unwrap().is_dir() {
            true => std::iter::once(entry.path()).chain(tree(&entry.path())).collect(),
            false => vec![entry.path()],
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn the_root_file_system_stays_unchanged() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let rootfs = bench.secret.parent().unwrap().join("rootfs");
    for dir in ["usr", "etc", "home/someone", "srv/data"] {
        std::fs::create_dir_all(rootfs.join(dir)).unwrap();
    }
    for name in ["bin", "lib", "lib64"] {
        if let Ok(target) = std::fs::read_link(Path::new("/").join(name)) {
            std::os::unix::fs::symlink(target, rootfs.join(name)).unwrap();
        }
    }
    std::fs::write(rootfs.join("srv/data/x"), "from the image\n").unwrap();
    std::fs::write(rootfs.join("top"), "a file\n").unwrap();
    let before = tree(&rootfs);
    let sandbox = runc(|config| config.rootfs = Some(rootfs.to_string_lossy().into_owned()));
    let machine = sandbox.enter(&bench.asked()).await.unwrap();
    let work = bench.workspace.display();
    let script = "pwd; cat /workspace/a.txt /srv/data/x /top; echo b > b.txt; \
                  for file in /x /usr/x /etc/x /srv/data/x /top; do echo x 2>/dev/null > $file && echo wrote $file; done; \
                  mkdir /new 2>/dev/null && echo made; echo t > /tmp/t && cat /tmp/t; id -u; cat /proc/1/cmdline | tr '\\0' ' ' | cut -c-8";
    let (status, output) = sh(&*machine, &bench.workspace, script).await;
    let owner = bench.workspace.metadata().unwrap().uid();
    // An ordinary user is root inside, without any of its rights.
    let shown = if is_root() { owner } else { 0 };
    assert_eq!((status, output), (0, format!("{work}\ninside\nfrom the image\na file\nt\n{shown}\n/bin/sh \n")));
    assert_eq!(bench.workspace.join("b.txt").metadata().unwrap().uid(), owner);
    assert_eq!(tree(&rootfs), before);
}

#[tokio::test]
async fn commands_of_another_owner_can_use_their_workspace_and_temporary_files() {
    if !works().await || !is_root() {
        return skipped("only root can run commands as others");
    }
    let bench = SandboxBench::new();
    for path in [bench.workspace.as_path(), &bench.workspace.join("a.txt")] {
        std::os::unix::fs::chown(path, Some(1234), Some(1234)).unwrap();
    }
    let machine = runc(|_| {}).enter(&bench.asked()).await.unwrap();
    let script = "id -u; cat a.txt; echo x > b.txt; echo t > $TMPDIR/t && cat $TMPDIR/t; cd && pwd > p && cat p";
    let (status, output) = sh(&*machine, &bench.workspace, script).await;
    let home = machine.temp_dir().unwrap().join("home");
    assert_eq!((status, output), (0, format!("1234\ninside\nt\n{}\n", home.display())));
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().unwrap().uid() == 0
}

#[tokio::test]
async fn limits_apply_or_are_refused() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let limited = runc(|config| {
        config.pids_limit = Some(16.0);
        config.memory = Some(ContainerLimit::Text("64m".to_owned()));
    });
    let machine = match limited.enter(&bench.asked()).await {
        Ok(machine) => machine,
        Err(error) => {
            assert!(!is_root() && error.reason.contains("cannot be enforced without root"), "{error}");
            return;
        }
    };
    let script =
        "for n in $(seq 40); do sleep 5 & done 2>&1 | grep -c -i 'resource'; kill $(jobs -p) 2>/dev/null; true";
    let (_, output) = sh(&*machine, &bench.workspace, script).await;
    assert_ne!(output.lines().next(), Some("0"), "{output}");
    let script = "head -c 200m /dev/zero | tail > /dev/null";
    let (status, output) = sh(&*machine, &bench.workspace, script).await;
    assert_ne!(status, 0, "{output}");
}

#[tokio::test]
async fn the_network_is_the_hosts_or_none() {
    if !works().await {
        return;
    }
    let port = crate::bench::greeting_server("hello\n");
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo >&3 && cat <&3");
    for (network, expect) in [(NetworkAccess::Off, ""), (NetworkAccess::On, "hello\n")] {
        let bench = SandboxBench::new();
        let machine = runc(|_| {}).enter(&bench.asked().network(network)).await.unwrap();
        let (_, output) = sh(&*machine, &bench.workspace, &format!("({script}) 2>/dev/null")).await;
        assert_eq!(output, expect);
    }
}

#[tokio::test]
async fn what_runc_cannot_do_is_refused() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let root = |dir: &Path| Some(dir.to_string_lossy().into_owned());
    let outer = bench.workspace.parent().unwrap().to_owned();
    let empty = bench.secret.parent().unwrap().join("empty");
    std::fs::create_dir(&empty).unwrap();
    type Change<'a> = Box<dyn Fn(&mut ContainerConfig) + 'a>;
    let cases: Vec<(Change<'_>, &str)> = vec![
        (Box::new(|config| config.rootfs = None), "no root file system is configured"),
        (Box::new(|config| config.rootfs = Some("rootfs".to_owned())), "is not a directory with an absolute path"),
        (Box::new(|config| config.rootfs = Some("/".to_owned())), "the root file system / contains /"),
        (Box::new(|config| config.rootfs = root(&outer)), "contains"),
        (Box::new(|config| (config.rootfs, config.binds) = (root(&empty), Vec::new())), "/bin/sh"),
        (Box::new(|config| config.read_only_root = false), "docker.readOnlyRoot: false"),
        (Box::new(|config| config.dns = vec!["1.1.1.1".to_owned()]), "docker.dns"),
        (Box::new(|config| config.setup_command = Some("true".to_owned())), "docker.setupCommand"),
        (Box::new(|config| config.network = "mine".to_owned()), "network with a name"),
        (Box::new(|config| config.network = "host".to_owned()), "Sandbox security: network"),
        (Box::new(|config| config.apparmor_profile = Some("unconfined".to_owned())), "does not confine anything"),
        (Box::new(|config| config.binds = vec!["/etc:/host".to_owned()]), "Sandbox security: bind"),
        (Box::new(|config| config.user = Some("somebody".to_owned())), "docker.user has no numbers"),
        (Box::new(|config| config.workdir = "/usr/none/here".to_owned()), "has no /usr/none/here"),
    ];
    let reason = |error: Option<SandboxUnavailable>| error.map(|error| error.reason).unwrap_or_default();
    for (change, expect) in cases {
        let found = reason(runc(change).enter(&bench.asked()).await.err());
        assert!(found.contains(expect), "{expect}: {found}");
    }
    let listed = bench.asked().network(NetworkAccess::Domains(DomainList::default()));
    let found = reason(runc(|_| {}).enter(&listed).await.err());
    assert!(found.contains("list of servers"), "{found}");
    // A root inside is visible under its own name, and no more than that.
    let asked = Confinement::new(&bench.workspace).root(&bench.secret, PathAccess::Read);
    let machine = runc(|_| {}).enter(&asked).await.unwrap();
    let script = format!("cat {}; ls {}", bench.secret.display(), empty.display());
    let (status, output) = sh(&*machine, &bench.workspace, &script).await;
    assert!(status != 0 && output.contains(SECRET), "{output}");
}

#[tokio::test]
async fn a_dropped_command_leaves_no_container() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let machine = runc(|_| {}).enter(&bench.asked()).await.unwrap();
    let seconds = format!("987654.{}", std::process::id());
    let script = format!("(setsid sleep {seconds} &); touch started; sleep {seconds}");
    let args = vec!["-c".to_owned(), script];
    let command = CommandSpec::new("/bin/bash".into(), args, bench.workspace.clone(), Vec::new());
    let process = machine.spawn(command).await.unwrap();
    let until = async |is_it: &dyn Fn() -> bool| {
        for _ in 0..1000 {
            if is_it() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    assert!(until(&|| bench.workspace.join("started").exists()).await);
    // The cleanup outlives the machine.
    drop((process, machine));
    let is_left = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.into_iter().any(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word == seconds))
    };
    assert!(until(&|| !is_left()).await, "something is left");
}

#[tokio::test]
async fn tools_see_what_the_configuration_mounts() {
    if !works().await {
        return;
    }
    let bench = SandboxBench::new();
    let shared = bench.secret.parent().unwrap().join("shared");
    for dir in ["read", "write"] {
        std::fs::create_dir_all(shared.join(dir)).unwrap();
        std::fs::write(shared.join(dir).join("x"), "shared").unwrap();
    }
    let sandbox = runc(|config| {
        let shown = shared.display();
        config.binds.extend([format!("{shown}/read:/data/read:ro"), format!("{shown}/write:/data/write")]);
    });
    let machine = sandbox.enter(&bench.asked()).await.unwrap();
    for dir in ["read", "write"] {
        let file = Path::new("/data").join(dir).join("x");
        let script = format!("cat {}", file.display());
        assert_eq!(sh(&*machine, &bench.workspace, &script).await, (0, "shared".into()));
        assert_eq!(machine.read(&file, 100).await.unwrap(), "shared", "{dir}");
    }
    machine.write(Path::new("/data/write/x"), "changed".into()).await.unwrap();
    let error = machine.write(Path::new("/data/read/x"), "changed".into()).await.unwrap_err().to_string();
    assert!(error.contains("Sandbox path is read-only; cannot write: /data/read/x"), "{error}");
    assert_eq!(std::fs::read_to_string(shared.join("write/x")).unwrap(), "changed");
    assert_eq!(std::fs::read_to_string(shared.join("read/x")).unwrap(), "shared");
    assert!(machine.read(&bench.secret, 100).await.is_err());
}
