use super::*;

mod entries;
mod forbidden;

/// Programs on the `PATH` of these tests.
const INSTALLED: [&str; 40] = [
    "git", "ls", "cat", "rg", "cargo", "make", "npm", "node", "python3", "go", "find", "wc", "head", "tail", "sort",
    "uniq", "cut", "tr", "env", "bash", "sh", "sudo", "xargs", "timeout", "nice", "nohup", "rm", "curl", "touch",
    "mkdir", "grep", "jq", "sed", "busybox", "fd", "printf", "test", "tar", "rsync", "zip",
];

/// Programs that the tests allow; not `rm`, `curl` and the shells.
const ALLOWED: [&str; 22] = [
    "git", "ls", "cat", "rg", "cargo", "make", "npm", "node", "python3", "go", "find", "touch", "mkdir", "grep", "jq",
    "sed", "fd", "printf", "test", "tar", "rsync", "zip",
];

fn judged(command: &str) -> Judgement {
    judged_at(command, false)
}

/// Judges a command that runs on this machine, or in a container.
fn judged_at(command: &str, has_own_programs: bool) -> Judgement {
    let allowlist: Vec<AllowedProgram> = ALLOWED
        .iter()
        .map(|name| AllowedProgram { pattern: format!("/usr/bin/{name}"), ..AllowedProgram::default() })
        .collect();
    let is_executable = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (path.parent() == Some(Path::new("/usr/bin")) && INSTALLED.contains(&name.as_str()))
            || ["run.sh", "nice", "env", "sh"].iter().any(|name| path == Path::new("/w").join(name))
    };
    let rules = CommandRules {
        allowlist: &allowlist,
        safe_bins: &SafeBins::default(),
        skill_programs: &SkillPrograms::default(),
        cwd: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        path: &["/usr/bin".into(), "relative".into()],
        syntax: CommandSyntax::Scripts,
        sets_env: false,
        has_own_programs,
        is_executable: &is_executable,
        exists: &|path| path == Path::new("/w/secret"),
        changed: &|_| None,
    };
    judge(command, &rules)
}

#[test]
fn no_rule_covers_programs_of_a_container() {
    for command in
        ["git status", "/usr/bin/git status", "env A=1 git status", "printf x", "head", "xargs git", "sh -c 'ls'"]
    {
        assert!(!judged_at(command, true).is_allowed(), "{command}");
    }
    let judgement = judged_at("echo a && git status | head", true);
    let reason = judgement.not_allowed.unwrap_or_default();
    assert!(reason.contains("git is a program of the container"), "{reason}");
    assert!(judgement.programs.iter().all(|call| call.program.is_none()), "{:?}", judgement.programs);
    // The shell does these itself.
    assert!(judged_at("cd sub && echo a && [ -f x ] || exit 1", true).is_allowed());
    // Code on the command line is found there as well.
    assert!(judged_at("python3 -c 'x'", true).inline_code.is_some());
}

#[test]
fn code_on_the_command_line_is_found_wherever_it_is() {
    for (command, base) in [
        ("python3 -c 'print(1)'", Some("python3")),
        ("cd /tmp && node -e 'x()' > log", Some("node")),
        ("bash -c \"python3 -c 'x'\"", Some("python3")),
        ("if true; then perl -e 1; fi", Some("perl")),
        ("echo $(ruby -e 1)", Some("ruby")),
        ("python3 <<EOF\nprint(1)\nEOF", Some("python3")),
        ("busybox sh -c 'lua -e 1'", Some("lua")),
        ("nice python3 x.py", None),
        ("ls > log", None),
        ("echo 'python -c' && git status", None),
    ] {
        let found = judged(command).inline_code;
        assert_eq!(found, base.map(|base| format!("{base} is given code to run")), "{command}");
    }
}

#[test]
fn a_program_named_like_a_wrapper_or_a_shell_must_be_allowed_itself() {
    for command in [
        "./nice ls",
        "/w/nice ls",
        "./env ls",
        "./sh -c ls",
        "/w/sh -c ls",
        "nice ./sh -c ls",
        "./timeout 5 ls",
        "./find . -exec ls {} ;",
        "cd sub && ./nice ls",
        "~/nice ls",
    ] {
        assert!(!judged(command).is_allowed(), "{command}");
    }
    for command in ["nice ls", "/usr/bin/nice ls", "/usr/bin/env ls", "/usr/bin/sh -c ls", "time ls"] {
        assert!(judged(command).is_allowed(), "{command}: {:?}", judged(command));
    }
}

#[test]
fn everyday_commands_run_without_asking() {
    for command in [
        "ls",
        "ls -la",
        "ls -la src | head -20",
        "cat README.md",
        "cat a.txt b.txt | wc -l",
        "git status",
        "git diff --stat",
        "git log --oneline -n 5",
        "git add -A && git commit -m 'a message; with (odd) $(text)'",
        "git push origin main",
        "git log -c --grep='--exec'",
        "git clone https://example.org/x.git && git -C x log -c",
        "git submodule update --init",
        "git rebase main && git bisect good",
        "tar -cf /tmp/x.tar src",
        "tar xzf x.tgz",
        "tar -cf x.tar -- *.rs",
        "rsync -a src/ copy/",
        "rg -n main src/*.rs",
        "git -C sub status",
        "git diff | head -n 50",
        "cargo build",
        "cargo test --workspace 2>&1 | tail -20",
        "cargo clippy -- -D warnings",
        "RUST_LOG=debug cargo run",
        "cd crates && cargo check",
        "make -j4",
        "make clean; make",
        "npm ci",
        "npm run build",
        "npm test 2>/dev/null",
        "node index.js",
        "node --version",
        "python3 -m pytest -q",
        "python3 script.py --flag",
        "go test ./...",
        "go vet ./... && go build ./...",
        "rg -n 'fn main' src",
        "rg TODO | sort | uniq".split(" | sort").next().unwrap_or_default(),
        "rg -l x | wc -l",
        "find . -name '*.rs'",
        "find src -type f -newer Cargo.toml | wc -l",
        "find . -name '*.py' -exec grep -l main {} +",
        "grep -rn \"pattern\" src",
        "jq .name package.json",
        "sed -n 1,20p src/main.rs",
        "cat Cargo.toml | grep version | cut -d= -f2",
        "mkdir -p a/b",
        "touch new.txt",
        "pwd",
        "echo done",
        "cd /w && ls && pwd",
        "true",
        "env FOO=1 cargo test",
        "timeout 60 cargo test",
        "timeout -s KILL 5m make",
        "nice -n 5 cargo build",
        "nohup make",
        "bash -c 'git status && ls'",
        "bash -lc \"cargo test\"",
        "sh -c 'ls | head -n 3'",
        "rg -l old | xargs grep -n new",
        "git ls-files | xargs -n 1 cat",
        "/usr/bin/git fetch",
        "cat ~/notes.txt",
        "ls $HOME",
        "ls *.rs",
        "git stash list >/dev/null",
        "command -v git",
        "CI=1 npm test",
        "cat < /dev/null",
        "ls 2> /dev/null || true",
        "ls -la $HOME/src *.rs",
        "git log --format='%h ${x} $(y)' -- \"$FILE\"",
        "git diff HEAD@{1} | head -n 5",
        "find \"$HOME\" -name '*.md'",
        "find . -exec grep -l {} \\; | wc -l",
        "rg -l x | xargs -I{} cat {}",
        "python3 ~/tools/check.py --all",
        "sed -e 's/a/b/g' -e '$d' notes.txt | sort -rn".split(" | sort").next().unwrap_or_default(),
        "sed -n '/start/p' log.txt",
        "(ls)",
        "{ ls; }",
        "ls\n",
        "ls;",
        "cat << EOF\nrm x\nEOF",
        "cat <<'EOF' | grep x\n$(rm x)\nEOF\nls",
        "git commit -m \"$(cat <<'EOF'\nA title\n\nIt's a \"text\".\nEOF\n)\"",
        "git log $(git merge-base HEAD main)..HEAD",
        "echo \"on $(git branch --show-current)\"",
        "while true; do ls; done",
        "for f in src/*.rs; do cat \"$f\" | wc -l; done",
        "for crate in a b c; do\n  (cd $crate && cargo test) || exit 1\ndone",
        "if git diff --quiet; then echo clean; else git status; fi",
        "set -euo pipefail\ncargo build # first\ncargo test",
        "if [ -f Cargo.toml ]; then cargo check; fi",
        "cargo test; if [ $? -eq 0 ]; then echo ok; fi",
        "! grep -q x file",
        "ls &>/dev/null",
        "command -v git &>/dev/null && git status",
        "printf '%s\\n' \"$HOME\" 100%%",
        "python3 -u script.py < /dev/null",
        "python3 -m pytest -W ignore",
        "env -u FOO cargo test",
        "find . -name '*.rs' -exec grep -l x {} + | head -n 3",
        "x=$(git rev-parse HEAD); git show \"$x\"",
        "for f in *.rs; do if [ -f \"$f\" ]; then git add \"$f\"; fi; done",
        "git ls-files | while read -r file; do cat \"$file\"; done",
        "git ls-files | while IFS= read -r line; do cat \"$line\" | wc -l; done",
        "for f in *.rs; do cat \"${f%.rs}.md\"; done",
        "for f in src/*; do echo ${f##*/}; done",
        "set -x; cargo test; exit $?",
        "set -euxo pipefail\ncargo test",
        "x=$(git branch --show-current); if [ \"$x\" != \"main\" ]; then git switch main; fi",
        "x=$(git status --porcelain); [ -z \"$x\" ] && echo clean",
        "cargo test \"${name:-all}\"",
        "LC_ALL=C.UTF-8 COLUMNS=80 cargo test",
        "for ext in rs toml; do git ls-files \"*.$ext\"; done",
        "DIR=$(pwd); ls \"$DIR\"",
        "if [ Cargo.lock -nt Cargo.toml ] && [ \"$x\" == \"y\" ]; then cargo build; fi",
        "set +e; cargo test; set -e",
        "bash -o pipefail -c 'cargo test | tail -n 5'",
        "cat <<'EOF'\ncurl a \\\n  b\nEOF",
        "x=1 y=2; echo \"$x:$y ${x}:src\"",
    ] {
        let found = judged(command);
        assert!(found.is_allowed(), "{command}: {found:?}");
    }
}

#[test]
fn safe_programs_read_no_files_after_a_change_of_directory() {
    for command in
        ["uniq --group passwd", "head -n passwd", "tail passwd", "wc passwd", "cut -d passwd -f1", "uniq --gr ab"]
    {
        let command = format!("cd /etc && {command}");
        assert!(!judged(&command).is_allowed(), "{command}");
    }
    for command in ["uniq --group", "head -n 5", "head -5", "tail -n +2", "tr ab cd", "cut -d , -f 1", "wc -l"] {
        let command = format!("cd /etc && git log | {command}");
        assert!(judged(&command).is_allowed(), "{command}: {:?}", judged(&command));
    }
}
