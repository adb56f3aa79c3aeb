//! Files: the workspace is usable, and nothing else can be read or changed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use pinch_machine::search::{FindQuery, GrepQuery, SearchItem};
use pinch_sandbox::confinement::PathAccess;

use crate::bench::{SECRET, SandboxBench, in_each, sh, skipped};

#[tokio::test]
async fn the_workspace_is_usable() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let file = bench.workspace.join("new/b.txt");
        machine.write(&file, "b\n".into()).await.unwrap();
        assert_eq!(machine.read(&file, 100).await.unwrap(), "b\n", "{name}");
        let script = "cat a.txt new/b.txt && echo c > c.txt && mv c.txt new/ && ls new && echo $((6*7)) > $TMPDIR/t && cat $TMPDIR/t";
        assert_eq!(sh(&*machine, &bench.workspace, script).await, (0, "inside\nb\nb.txt\nc.txt\n42\n".into()), "{name}");
        assert_eq!(machine.real_path(&file).await.unwrap(), file);
        machine.remove(&file).await.unwrap();
        assert_eq!(machine.list(&bench.workspace.join("new")).await.unwrap(), ["c.txt"], "{name}");
        let found: Vec<_> = machine.find(FindQuery::new(bench.workspace.clone(), "*.txt")).collect().await;
        assert_eq!(found.len(), 2, "{name}: {found:?}");
        let hits: Vec<_> = machine.grep(GrepQuery::new(bench.workspace.clone(), "ins")).collect().await;
        assert!(matches!(&hits[..], [Ok(SearchItem::Hit(line))] if line.text == "inside"), "{name}: {hits:?}");
        let pieces: Vec<_> = machine.read_pieces(&bench.workspace.join("a.txt")).collect().await;
        assert!(matches!(&pieces[..], [Ok(piece)] if piece == "inside\n"), "{name}: {pieces:?}");
    })
    .await;
}

#[tokio::test]
async fn commands_cannot_read_or_change_files_outside() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let (secret, outside) = (bench.secret.display(), bench.secret.parent().unwrap().display());
        for script in [
            format!("cat {secret}"),
            format!("echo x > {secret}"),
            format!("echo x >> {secret}"),
            format!("touch {outside}/new && test -e {outside}/new"),
            format!("rm -f {secret}; false"),
            format!("mv {secret} ."),
            format!("mkdir {outside}/dir && false"),
            format!("ln -s {secret} link && cat link"),
            format!("ln {secret} hard && cat hard"),
            format!("cat /proc/self/root{secret}"),
            format!("cat /proc/$PPID/root{secret}"),
            format!("cat /proc/$PPID/cwd/../{secret}"),
            format!("cd {outside} && cat secret.txt"),
            format!("truncate -s 0 {secret} && false"),
            "cat /etc/shadow".to_owned(),
            "ls /root/. /home/*/. && false".to_owned(),
            format!("cat /proc/{}/environ", std::process::id()),
        ] {
            let (status, output) = sh(&*machine, &bench.workspace, &script).await;
            assert!(status != 0, "{name}: {script}: {output}");
            assert!(!output.contains(SECRET), "{name}: {script}: {output}");
        }
        assert_eq!(std::fs::read_to_string(&bench.secret).unwrap(), SECRET, "{name}");
        assert_eq!(std::fs::read_dir(bench.secret.parent().unwrap()).unwrap().count(), 1, "{name}");
    })
    .await;
}

#[tokio::test]
async fn tools_cannot_read_or_change_files_outside() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        std::os::unix::fs::symlink(&bench.secret, bench.workspace.join("link")).unwrap();
        std::os::unix::fs::symlink(bench.secret.parent().unwrap(), bench.workspace.join("dir")).unwrap();
        let paths = [
            bench.secret.clone(),
            bench.workspace.join("link"),
            bench.workspace.join("dir/secret.txt"),
            bench.workspace.join("../outside/secret.txt"),
        ];
        for path in paths {
            let shown = path.display();
            assert!(machine.read(&path, 100).await.is_err(), "{name}: {shown}");
            assert!(machine.stat(&path).await.is_err(), "{name}: {shown}");
            assert!(machine.real_path(&path).await.is_err(), "{name}: {shown}");
            assert!(machine.write(&path, "x".into()).await.is_err(), "{name}: {shown}");
            let pieces: Vec<_> = machine.read_pieces(&path).collect().await;
            assert!(pieces.iter().all(Result::is_err), "{name}: {shown}");
            let root = path.parent().unwrap();
            let hits: Vec<_> = machine.grep(GrepQuery::new(root.to_owned(), "secret")).collect().await;
            assert!(hits.iter().all(|hit| !matches!(hit, Ok(SearchItem::Hit(_)))), "{name}: {shown}: {hits:?}");
        }
        assert!(machine.remove(&bench.secret).await.is_err(), "{name}");
        assert!(machine.list(bench.secret.parent().unwrap()).await.is_err(), "{name}");
        assert!(machine.read(Path::new("/etc/shadow"), 1 << 20).await.is_err(), "{name}");
        assert_eq!(std::fs::read_to_string(&bench.secret).unwrap(), SECRET, "{name}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_swapped_during_access_lead_nowhere() {
    in_each(SandboxBench::asked, |name, machine, bench| async move {
        let (inside, trap) = (bench.workspace.join("real"), bench.workspace.join("trap"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("secret.txt"), "harmless").unwrap();
        std::os::unix::fs::symlink(&inside, &trap).unwrap();
        let outside = bench.secret.parent().unwrap().to_owned();
        let is_done = std::sync::Arc::new(AtomicBool::new(false));
        let swapper = {
            let (is_done, trap) = (is_done.clone(), trap.clone());
            let next = bench.workspace.join("next");
            std::thread::spawn(move || {
                for target in [&inside, &outside].into_iter().cycle() {
                    if is_done.load(Ordering::Relaxed) {
                        return;
                    }
                    std::os::unix::fs::symlink(target, &next).unwrap();
                    std::fs::rename(&next, &trap).unwrap();
                }
            })
        };
        let file = trap.join("secret.txt");
        let mut n_read = 0;
        for _ in 0..1_000 {
            if let Ok(text) = machine.read(&file, 100).await {
                assert_ne!(text, SECRET, "{name}");
                n_read += 1;
            }
            drop(machine.write(&file, "harmless".into()).await);
        }
        is_done.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
        assert!(n_read > 0, "{name}: the link led inside at times");
        assert_eq!(std::fs::read_to_string(&bench.secret).unwrap(), SECRET, "{name}");
    })
    .await;
}

#[tokio::test]
async fn a_read_only_workspace_is_not_changed() {
    in_each(
        |bench| bench.asked().read_only(),
        |name, machine, bench| async move {
            assert_eq!(sh(&*machine, &bench.workspace, "cat a.txt").await, (0, "inside\n".into()), "{name}");
            assert_ne!(sh(&*machine, &bench.workspace, "echo x > a.txt").await.0, 0, "{name}");
            assert_ne!(sh(&*machine, &bench.workspace, "rm a.txt").await.0, 0, "{name}");
            let file = bench.workspace.join("a.txt");
            let shown = file.display();
            let error = machine.write(&file, "x".into()).await.unwrap_err().to_string();
            assert!(error.ends_with(&format!("Sandbox path is read-only; cannot write: {shown}")), "{name}: {error}");
            let error = machine.remove(&file).await.unwrap_err().to_string();
            assert!(error.ends_with(&format!("Sandbox path is read-only; cannot remove: {shown}")), "{name}: {error}");
            assert_eq!(sh(&*machine, &bench.workspace, "echo x > $TMPDIR/x && cat $TMPDIR/x").await.1, "x\n", "{name}");
            assert_eq!(std::fs::read_to_string(bench.workspace.join("a.txt")).unwrap(), "inside\n", "{name}");
        },
    )
    .await;
}

#[tokio::test]
async fn other_directories_are_visible_if_named() {
    let asked = |bench: &SandboxBench| bench.asked().root(bench.secret.parent().unwrap(), PathAccess::Read);
    in_each(asked, |name, machine, bench| async move {
        let script = format!("cat {}", bench.secret.display());
        assert_eq!(sh(&*machine, &bench.workspace, &script).await, (0, SECRET.into()), "{name}");
        assert_eq!(machine.read(&bench.secret, 100).await.unwrap(), SECRET, "{name}");
        assert!(machine.write(&bench.secret, "x".into()).await.is_err(), "{name}");
    })
    .await;
}

#[tokio::test]
async fn a_home_directory_exposes_its_toolchains_but_no_keys() {
    let home = |bench: &SandboxBench| bench.secret.parent().unwrap().to_owned();
    let asked = move |bench: &SandboxBench| {
        let home = home(bench);
        std::fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        std::fs::write(home.join(".cargo/bin/tool"), "#!/bin/sh\necho works\n").unwrap();
        std::fs::write(home.join(".cargo/credentials.toml"), SECRET).unwrap();
        std::fs::create_dir_all(home.join(".config/git")).unwrap();
        std::fs::write(home.join(".config/git/credentials"), SECRET).unwrap();
        std::fs::write(home.join(".config/git/ignore"), "*.tmp\n").unwrap();
        std::fs::write(home.join(".npmrc"), format!("//r.example/:_authToken={SECRET}\nloglevel=warn\n")).unwrap();
        std::fs::write(home.join(".gitconfig"), "[user]\n\tname = N\n\temail = n@example.org\n").unwrap();
        bench.asked().toolchains_of(home)
    };
    in_each(asked, |name, machine, bench| async move {
        if matches!(name, "runc" | "podman") {
            return skipped("a container has toolchains of its own");
        }
        let script = "sh ~/.cargo/bin/tool && git config --global user.name && grep -q tmp ~/.config/git/ignore && mkdir -p ~/.cache/x && echo done";
        assert_eq!(sh(&*machine, &bench.workspace, script).await, (0, "works\nN\ndone\n".into()), "{name}");
        let (status, npm) = sh(&*machine, &bench.workspace, "cat ~/.npmrc").await;
        // After the configuration of this machine, if it has one.
        assert!(status == 0 && npm.ends_with("loglevel=warn\n"), "{name}: {npm}");
        let script = format!(
            "cat {0}/.cargo/credentials.toml ~/.cargo/credentials.toml {0}/.config/git/credentials ~/.config/git/credentials {0}/.npmrc",
            bench.secret.parent().unwrap().display()
        );
        let (status, output) = sh(&*machine, &bench.workspace, &script).await;
        assert!(status != 0 && !output.contains(SECRET), "{name}: {output}");
        assert_ne!(sh(&*machine, &bench.workspace, "echo x > ~/.cargo/bin/tool").await.0, 0, "{name}");
    })
    .await;
}

#[tokio::test]
async fn above_the_workspace_only_files_needed_by_builds_are_readable() {
    let asked = |bench: &SandboxBench| {
        let above = bench.workspace.parent().unwrap();
        std::fs::create_dir(above.join(".cargo")).unwrap();
        std::fs::write(above.join(".cargo/config.toml"), "[build]\n").unwrap();
        std::fs::write(above.join(".cargo/credentials.toml"), SECRET).unwrap();
        std::fs::write(above.join(".npmrc"), SECRET).unwrap();
        std::os::unix::fs::symlink(&bench.secret, above.join("package.json")).unwrap();
        bench.asked()
    };
    in_each(asked, |name, machine, bench| async move {
        if matches!(name, "runc" | "podman") {
            return skipped("a container has toolchains of its own");
        }
        assert_eq!(
            sh(&*machine, &bench.workspace, "cat ../.cargo/config.toml").await,
            (0, "[build]\n".into()),
            "{name}"
        );
        for file in [".cargo/credentials.toml", ".npmrc", "package.json"] {
            let (status, output) = sh(&*machine, &bench.workspace, &format!("cat ../{file}")).await;
            assert!(status != 0 && !output.contains(SECRET), "{name}: {file}: {output}");
        }
        assert_ne!(sh(&*machine, &bench.workspace, "echo x > ../.cargo/config.toml").await.0, 0, "{name}");
    })
    .await;
}
