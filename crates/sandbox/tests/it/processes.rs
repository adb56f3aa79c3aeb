//! Processes, privileges and the kernel.

use std::time::Duration;

use pinch_machine::{CommandSpec, ProcessEnd};
use pinch_sandbox::confinement::PathAccess;
use pinch_stdx::cancel::Cancel;

use crate::bench::{SandboxBench, backends, in_each, sh, skipped};

#[tokio::test]
async fn signals_do_not_leave_the_sandbox() {
    for sandbox in backends().await {
        if !sandbox.probe().await.unwrap().guarantees.signals {
            skipped(&format!("{} keeps no signals inside on this kernel", sandbox.name()));
            continue;
        }
        let bench = SandboxBench::new();
        let machine = sandbox.enter(&bench.asked()).await.unwrap();
        let mut victim = std::process::Command::new("sleep").arg("60").current_dir("/").spawn().unwrap();
        let script = format!("kill -9 {}", victim.id());
        assert_ne!(sh(&*machine, &bench.workspace, &script).await.0, 0, "{}", sandbox.name());
        assert!(victim.try_wait().unwrap().is_none(), "{}", sandbox.name());
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert_eq!(sh(&*machine, &bench.workspace, "sleep 60 & kill $! && wait $!; echo $?").await.1, "143\n");
    }
}

#[tokio::test]
async fn processes_outside_are_hidden_where_guaranteed() {
    for sandbox in backends().await {
        let bench = SandboxBench::new();
        let hides = sandbox.probe().await.unwrap().guarantees.processes;
        let entered = sandbox.enter(&bench.asked().hide_processes()).await;
        assert_eq!(entered.is_ok(), hides, "{}: what is not guaranteed is refused", sandbox.name());
        let Ok(machine) = entered else { continue };
        let script = format!("test -e /proc/{}/cmdline && grep -q sandbox /proc/[0-9]*/comm", std::process::id());
        assert_ne!(sh(&*machine, &bench.workspace, &script).await.0, 0, "{}", sandbox.name());
    }
}

#[tokio::test]
async fn limits_of_processes_apply_or_are_refused() {
    for sandbox in backends().await.into_iter().filter(|sandbox| !sandbox.has_own_programs()) {
        let bench = SandboxBench::new();
        let limits = |value: &str| vec![("nofile".to_owned(), value.to_owned()), ("core".to_owned(), "0".to_owned())];
        let machine = sandbox.enter(&bench.asked().limits(limits("64:128"))).await.unwrap();
        // Those of descendants, too.
        let script = "bash -c 'ulimit -Sn; ulimit -Hn; ulimit -c'";
        assert_eq!(sh(&*machine, &bench.workspace, script).await, (0, "64\n128\n0\n".to_owned()), "{}", sandbox.name());
        let refused = sandbox.enter(&bench.asked().limits(limits("many"))).await.err().unwrap();
        assert_eq!(refused.remedy, "change docker.ulimits", "{}", sandbox.name());
        // More than the kernel allows anybody.
        let refused = sandbox.enter(&bench.asked().limits(limits("99999999999:99999999999"))).await.err().unwrap();
        assert!(refused.to_string().contains("prlimit: failed to set"), "{refused}");
    }
}

#[tokio::test]
async fn attributes_of_files_outside_are_kept_where_guaranteed() {
    for sandbox in backends().await {
        let bench = SandboxBench::new();
        let machine = sandbox.enter(&bench.asked()).await.unwrap();
        let mode = || std::os::unix::fs::PermissionsExt::mode(&bench.secret.metadata().unwrap().permissions()) & 0o777;
        std::fs::set_permissions(&bench.secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        sh(&*machine, &bench.workspace, &format!("chmod 640 {}", bench.secret.display())).await;
        let is_guaranteed = sandbox.probe().await.unwrap().guarantees.attributes;
        assert_eq!(mode() == 0o600, is_guaranteed, "{}: the guarantee is right", sandbox.name());
    }
}

#[tokio::test]
async fn privileges_are_dropped() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let script = "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t'; grep CapPrm /proc/self/status";
        let (_, output) = sh(&*machine, &bench.workspace, script).await;
        assert!(output.contains("NoNewPrivs:1") && output.contains("Seccomp:2"), "{name}: {output}");
        let held = output.lines().last().and_then(|line| u64::from_str_radix(line.split('\t').nth(1)?, 16).ok());
        // At most those that concern files: chown, dac_override, fowner, fsetid.
        assert_eq!(held.unwrap() & !0b1_1011, 0, "{name}: {output}");
    })
    .await;
}

/// Files are opened, but not written: if this fails, the settings are those of this machine.
#[tokio::test]
async fn kernel_settings_cannot_be_opened_for_writing() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let files = ["kernel/core_pattern", "kernel/hostname", "vm/drop_caches", "net/ipv4/ip_forward"];
        let files = files.map(|file| format!("/proc/sys/{file}")).into_iter().chain(["/proc/sysrq-trigger".to_owned()]);
        for file in files {
            let script = format!("if (: >> {file}) 2>/dev/null; then echo open; fi");
            assert_eq!(sh(&*machine, &bench.workspace, &script).await, (0, String::new()), "{name}: {file}");
        }
    })
    .await;
}

#[tokio::test]
async fn system_calls_that_reach_into_the_kernel_are_blocked() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        if sh(&*machine, &bench.workspace, "python3 -c ''").await.0 != 0 {
            return skipped("there is no python3 to make system calls with");
        }
        // ptrace, keyctl, mount, unshare with a user namespace, bpf, io_uring_setup, userfaultfd, perf_event_open: x86-64 numbers.
        if cfg!(target_arch = "x86_64") {
            let script = "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nfor n in (101, 250, 165, 272, 321, 425, 323, 298):\n  r = l.syscall(n, 0x10000000, 0, 0, 0, 0, 0)\n  print(n, r, ctypes.get_errno())";
            let (_, output) = sh(&*machine, &bench.workspace, &format!("python3 -c '{script}'")).await;
            assert_eq!(output.lines().count(), 8, "{name}: {output}");
            // Podman allows ptrace of the container's own processes, which reaches nothing outside of the container.
            for line in output.lines().skip(usize::from(name == "podman")) {
                assert!(line.ends_with(" -1 1"), "{name}: {line}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn limits_and_shared_memory_of_programs_outside_are_unreachable() {
    let shared = "import ctypes\nl = ctypes.CDLL(None)\nk = 0x70696e63\n";
    let python = async |script: &str| {
        let output = tokio::process::Command::new("python3").args(["-c", script]).current_dir("/").output().await;
        output.is_ok_and(|output| output.status.success())
    };
    // A segment with a known key, which is removed at the end.
    if !python(&format!("{shared}assert l.shmget(k, 4096, 0o1600) >= 0")).await {
        return skipped("there is no python3, or no System V IPC");
    }
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        if sh(&*machine, &bench.workspace, "python3 -c ''").await.0 != 0 {
            return skipped("there is no python3 to make system calls with");
        }
        let mut victim = std::process::Command::new("sleep").arg("60").current_dir("/").spawn().unwrap();
        let limit = format!(
            "import resource\ntry:\n  resource.prlimit({}, resource.RLIMIT_CPU, (1, 1)); print(\"changed\")\nexcept OSError: print(\"refused\")",
            victim.id()
        );
        let (_, output) = sh(&*machine, &bench.workspace, &format!("python3 -c '{limit}'")).await;
        assert_eq!(output, "refused\n", "{name}");
        let own = "python3 -c 'import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))'";
        assert_eq!(sh(&*machine, &bench.workspace, own).await, (0, String::new()), "{name}");
        let (_, output) = sh(&*machine, &bench.workspace, &format!("python3 -c '{shared}print(l.shmget(k, 0, 0))'")).await;
        assert_eq!(output, "-1\n", "{name}");
        victim.kill().unwrap();
        victim.wait().unwrap();
    })
    .await;
    assert!(python(&format!("{shared}assert l.shmctl(l.shmget(k, 0, 0), 0, None) == 0")).await);
}

#[tokio::test]
async fn a_command_in_a_missing_directory_reports_it() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let gone = bench.workspace.join("gone");
        let command = CommandSpec::new("/bin/true".into(), Vec::new(), gone, Vec::new());
        let Err(error) = machine.spawn(command).await else { panic!("{name}: it runs nowhere") };
        assert!(error.to_string().starts_with("ENOENT: no such file or directory, chdir"), "{name}: {error}");
    })
    .await;
}

#[tokio::test]
async fn everyday_work_succeeds_inside() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        for (tool, script) in [
            ("git", "git init -q . && git add -A && git -c user.name=n -c user.email=e@x commit -qm one && git log --oneline | wc -l"),
            ("python3", "python3 -c 'import subprocess, tempfile; print(subprocess.run([\"echo\", \"hi\"], capture_output=True).stdout); open(tempfile.mktemp(), \"w\").write(\"x\")'"),
            ("node", "node -e 'const c = require(\"child_process\"); console.log(c.execSync(\"echo hi\").toString())'"),
            ("bash", "cat <(echo hi) <<< x && seq 3 | sort -r | head -1 && test -n \"$(ls /usr/bin)\" && echo > /dev/null"),
        ] {
            if sh(&*machine, &bench.workspace, &format!("command -v {tool}")).await.0 != 0 {
                skipped(&format!("there is no {tool}"));
                continue;
            }
            let (status, output) = sh(&*machine, &bench.workspace, script).await;
            assert_eq!(status, 0, "{name}: {tool}: {output}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_command_that_times_out_ends_with_everything_it_started() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        // A number that occurs in no other process's arguments.
        let seconds = format!("{}.{}", 1000 + name.len(), std::process::id());
        let script = format!("setsid sleep {seconds} & sleep {seconds}");
        let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let args = vec!["-c".to_owned(), script];
        let command = CommandSpec::new("/bin/bash".into(), args, bench.workspace.clone(), env);
        let mut process = machine.spawn(command).await.unwrap();
        let (limit, grace) = (Duration::from_millis(300), Duration::from_millis(500));
        let end = process.pump(&Cancel::new(), Some(limit), grace, &mut |_| {}).await.unwrap();
        assert!(matches!(end, ProcessEnd::TimedOut(_)), "{name}: {end:?}");
        drop(process);
        pinch_stdx::process::wait_for_killed(Duration::from_secs(4));
        let is_left = || {
            let all = std::fs::read_dir("/proc")
                .unwrap()
                .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
            all.into_iter().any(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word == seconds))
        };
        for _ in 0..50 {
            if !is_left() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{name}: something is left");
    })
    .await;
}

/// Files of a project with a vendored crate, a package with a test, and a Python test.
const PROJECT: [(&str, &str); 9] = [
    (
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ndep = \"1.0.0\"\n\n[workspace]\n",
    ),
    ("src/main.rs", "fn main() { println!(\"{}\", dep::six()); }\n#[test]\nfn six() { assert_eq!(dep::six(), 6); }\n"),
    (
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n[source.vendored-sources]\ndirectory = \"vendor\"\n",
    ),
    ("vendor/dep/Cargo.toml", "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"),
    ("vendor/dep/src/lib.rs", "pub fn six() -> u32 { 6 }\n"),
    ("vendor/dep/.cargo-checksum.json", "{\"files\":{}}"),
    ("package.json", "{\"name\": \"app\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node six.test.js\"}}"),
    ("six.test.js", "require('assert').strictEqual(6, 2 * 3); console.log('1 passed');"),
    ("test_six.py", "def test_six(tmp_path):\n    (tmp_path / 'six').write_text('6')\n    assert 2 * 3 == 6\n"),
];

#[tokio::test]
async fn a_project_is_built_tested_and_committed_without_any_grant() {
    let home = std::env::var("HOME").unwrap_or_default();
    // Containers have no toolchains but those of their images. They get this one instead.
    let rustc = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
    let rust = rustc.ok().map(|rustc| String::from_utf8(rustc.stdout).unwrap().trim().to_owned());
    let asked = |bench: &SandboxBench| {
        for (path, text) in PROJECT {
            let path = bench.workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let asked = bench.asked().toolchains_of(&home);
        rust.iter().fold(asked, |asked, rust| asked.root(rust, PathAccess::Read))
    };
    let path = &format!("PATH=$HOME/.cargo/bin:$PATH:{}/bin", rust.as_deref().unwrap_or_default());
    in_each(asked, |name, machine, bench| async move {
        for (tool, script, expect) in [
            ("cargo", "cargo build --offline -q && cargo test --offline -q && ./target/debug/app", "6\n"),
            ("npm", "npm test", "1 passed"),
            ("pytest", "python3 -m pytest -q", "1 passed"),
            (
                "git",
                "git init -q . && git add -A && git -c user.name=n -c user.email=e@x commit -qm one && git log --format=%s",
                "one\n",
            ),
        ] {
            let find = match tool {
                "pytest" => "python3 -c 'import pytest'".to_owned(),
                tool => format!("command -v {tool} && {tool} --version"),
            };
            if sh(&*machine, &bench.workspace, &format!("{path}; {find}")).await.0 != 0 {
                skipped(&format!("{name} has no {tool} inside"));
                continue;
            }
            let (status, output) = sh(&*machine, &bench.workspace, &format!("{path}; ({script}) 2>&1")).await;
            assert!(status == 0 && output.contains(expect), "{name}: {tool}: {status}: {output}");
        }
    })
    .await;
}
