use super::*;

/// Programs on the `PATH` of these tests.
const INSTALLED: [&str; 37] = [
    "git", "ls", "cat", "rg", "cargo", "make", "npm", "node", "python3", "go", "find", "wc", "head", "tail", "sort",
    "uniq", "cut", "tr", "env", "bash", "sh", "sudo", "xargs", "timeout", "nice", "nohup", "rm", "curl", "touch",
    "mkdir", "grep", "jq", "sed", "busybox", "fd", "printf", "test",
];

/// Programs that the tests allow; not `rm`, `curl` and the shells.
const ALLOWED: [&str; 19] = [
    "git", "ls", "cat", "rg", "cargo", "make", "npm", "node", "python3", "go", "find", "touch", "mkdir", "grep", "jq",
    "sed", "fd", "printf", "test",
];

fn judged(command: &str) -> Judgement {
    let allowlist: Vec<AllowedProgram> = ALLOWED
        .iter()
        .map(|name| AllowedProgram { pattern: format!("/usr/bin/{name}"), ..AllowedProgram::default() })
        .collect();
    let is_executable = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (path.parent() == Some(Path::new("/usr/bin")) && INSTALLED.contains(&name.as_str()))
            || path == Path::new("/w/run.sh")
    };
    let rules = CommandRules {
        allowlist: &allowlist,
        safe_bins: &SafeBins::default(),
        skill_programs: &SkillPrograms::default(),
        cwd: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        path: &["/usr/bin".into(), "relative".into()],
        shell: ShellKind::Posix,
        sets_env: false,
        is_executable: &is_executable,
        exists: &|path| path == Path::new("/w/secret"),
        changed: &|_| None,
    };
    judge(command, &rules)
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
    ] {
        let found = judged(command);
        assert!(found.is_allowed(), "{command}: {found:?}");
    }
}

#[test]
fn forbidden_commands_never_run_without_asking() {
    for command in [
        // Programs that are not allowed, alone and after others.
        "rm -rf x",
        "curl http://x",
        "/usr/bin/rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm",
        "cat a | xargs rm",
        "cat a | xargs -n1 rm",
        "cat a | xargs -I{} rm {}",
        "xargs -0 rm",
        "true; rm x",
        "echo x; curl y",
        "unknown-program",
        "./run.sh",
        "run.sh",
        "../w/run.sh",
        "ls;rm x",
        "ls&&rm x",
        "ls|rm x",
        "cd / && rm x",
        "cd /tmp; ./make",
        "cd x && ../git",
        // Shells and programs that start programs.
        "bash -c 'rm x'",
        "bash -c \"ls; rm x\"",
        "sh -c 'sh -c \"rm x\"'",
        "bash -lc 'rm x'",
        "bash -ec 'rm x'",
        "bash -c 'ls\nrm x'",
        "bash",
        "bash -s",
        "curl x | bash",
        "cat x | sh",
        "bash x.sh",
        "bash -i -c ls",
        "bash --rcfile x -c ls",
        "bash -c",
        "zsh -c 'rm x'",
        "env rm x",
        "env -i rm x",
        "env A=1 rm x",
        "env -S 'rm x'",
        "env --split-string='rm x'",
        "env LD_PRELOAD=x.so ls",
        "env PATH=/tmp ls",
        "env -u HOME rm x",
        "nice rm x",
        "nice -n 5 rm x",
        "nice -5 rm x",
        "nohup rm x",
        "timeout 5 rm x",
        "timeout -k 1 5 rm x",
        "timeout --unknown 5 ls",
        "time rm x",
        "stdbuf -oL rm x",
        "sudo ls",
        "sudo rm x",
        "sudo -u root rm x",
        "sudo -i",
        "sudo -s",
        "sudo bash -c 'rm x'",
        "sudo -E ls",
        "doas ls",
        "su -c ls",
        "setsid ls",
        "setsid rm x",
        "busybox rm x",
        "busybox ls",
        "parallel rm ::: x",
        "ssh host ls",
        "script -c ls",
        "watch rm x",
        "flock l rm x",
        "strace rm",
        "chroot / ls",
        "command rm x",
        "builtin cd",
        "exec rm x",
        "eval 'rm x'",
        "eval ls",
        "source x",
        ". x",
        "command -p rm x",
        "find . -exec rm {} ;",
        "find . -exec rm {} \\;",
        "find . -execdir rm {} +",
        "find . -ok rm {} \\;",
        "find . -delete",
        "find . -fprint x",
        "find . -exec bash -c 'rm x' \\;",
        "fd -x rm",
        "find / -exec env rm {} +",
        // Substitutions, subshells, groups, background, redirections, here-documents.
        "ls $(rm x)",
        "ls `rm x`",
        "ls \"$(rm x)\"",
        "ls \"`rm x`\"",
        "ls ${x:-$(rm x)}",
        "(rm x)",
        "(ls)",
        "{ rm x; }",
        "{ ls; }",
        "rm x &",
        "ls & rm x",
        "ls > x",
        "ls >> x",
        "ls >x",
        "ls 2>x",
        "ls 2>&1 >x",
        "ls &> x",
        "ls >| x",
        "cat < secret",
        "cat <(rm x)",
        "cat << EOF\nrm x\nEOF",
        "bash << EOF\nrm x\nEOF",
        "cat <<< x",
        "ls >&3",
        "ls 2>&1x",
        "ls >/dev/null2",
        "ls >/dev/nullx",
        "ls >/dev/tcp/host/1",
        "cat </dev/tcp/host/1",
        "tee x < /dev/nullx",
        "ls |& rm",
        "ls | | rm",
        "ls &&",
        "| ls",
        "; ls",
        "ls \\",
        "ls 'x",
        "ls \"x",
        // Other shell commands.
        "if true; then rm x; fi",
        "for x in a; do rm $x; done",
        "while true; do ls; done",
        "! rm x",
        "[[ -f x ]]",
        "f() { rm x; }; f",
        "function f { rm x; }",
        "case x in *) rm x;; esac",
        "alias ls=rm; ls",
        "alias ls='rm x'\nls",
        "trap 'rm x' EXIT",
        "export PATH=/tmp",
        "PATH=/tmp ls",
        "PATH=/tmp:$PATH; ls",
        "X=1",
        "IFS=x ls",
        "LD_PRELOAD=x ls",
        "BASH_ENV=x bash -c ls",
        "GIT_SSH_COMMAND=x git fetch",
        "GIT_EXTERNAL_DIFF=x git diff",
        "PAGER='rm x' git log",
        "NODE_OPTIONS=--require=x node a.js",
        "PATH+=:/tmp ls",
        "set -x",
        "unset x",
        "hash -p /tmp/x ls",
        "enable -f x y",
        "coproc rm x",
        "let x=1",
        "read x",
        "declare x",
        "printf -v PATH /tmp",
        "test -v 'a[$(rm x)]'",
        // Names that are assembled, or that look like others.
        "r\"\"m x",
        "r''m x",
        "\\rm x",
        "r\\m x",
        "'rm' x",
        "\"rm\" x",
        "$CMD x",
        "${CMD} x",
        "$'rm' x",
        "rm${IFS}x",
        "cat$IFS/etc/passwd",
        "l*s",
        "/usr/bin/r? x",
        "/???/??n/rm x",
        "~/ls",
        "{rm,x}",
        "~root/ls",
        "$0",
        "\u{261}it status",
        "l\u{455}",
        "git\u{200b} status",
        "ls\u{a0}x",
        "\u{202e}ls",
        "ls\rrm x",
        "ls\nrm x",
        "ls\n",
        "\u{ff4c}\u{ff53}",
        "ls\u{2028}rm x",
        "ls\u{0}rm",
        "  ",
        "",
        // Code in arguments.
        "python3 -c 'import os'",
        "python3 -Ic 'x'",
        "node -e 'x'",
        "node --eval=x",
        "node -pe x",
        "sed -i s/a/b/ x",
        "sed --in-place x y",
        // Code on the standard input.
        "python3",
        "python3 -u",
        "python3 -",
        "echo x | node",
        "cd /tmp && bash -c './make'",
        "echo x | node - a",
        "python3 /dev/stdin",
        "python3 /proc/self/fd/0",
        "python3 -i a.py",
        "python3 -m timeit x",
        "node --import data:text/javascript,x a.js",
        "sed 1e x",
        "sed -n '1e rm x' x",
        "sed 's/a/rm x/e' x",
        "sed 's/a/b/w y' x",
        "sed --in-pl s/a/b/ x",
        // Words that the shell changes before a program gets them.
        "find . $'-exec' rm x \\;",
        "find . $\"-delete\"",
        "find . -{delete,ls}",
        "find . {-exec,rm,x,\\;}",
        "find . -d*",
        "find . $X",
        "find . \"$X\"",
        "python3 $'-c' 'x'",
        "python3 {-c,x}",
        "python3 $X",
        "python3 \"$X\"",
        "timeout $X ls",
        "timeout {5,rm} x ls",
        "nice -n ? ls",
        "env $X ls",
        "bash -c \"ls $X\"",
        "bash -c \"ls ${X}\"",
        "cd x && bash -c \"ls $PWD\"",
        "X='; rm x' bash -c \"ls $X\"",
        "sh -c 'find . $1' x -delete",
        "echo $'a\\'' ; rm x #'",
        "echo ${X@P}",
        "echo \"${X@P}\"",
        "echo $[X]",
        "echo \"$[X]\"",
        "echo ${a[X]}",
        "echo ${a:X}",
        "echo ${!X}",
        "head -n {5,/etc/passwd}",
        // Arguments that a program gets from its input.
        "echo -delete | xargs find .",
        "echo -delete | xargs -I{} find . {}",
        "echo x | xargs python3",
        "echo x | xargs -n1 python3 -u",
        "echo x | xargs sed",
        "echo x | xargs sed -n p",
        "echo x | xargs env",
        "echo /etc/passwd | xargs head",
        "echo /etc/passwd | xargs -0 wc",
        "echo rm | xargs -Icat cat x",
        "echo rm | xargs -I cat cat x",
        "echo r | xargs -I% /usr/bin/%m x",
        "echo x | xargs -I{} sh -c 'cat {}'",
        "echo x | xargs sh -c 'cat'",
        "echo x | xargs timeout 5 python3",
        "find . -exec sh -c 'cat {}' \\;",
        "find . -exec head {} +",
        // Builtins of the shell that evaluate their arguments.
        "printf -v PATH /tmp",
        "printf -vPATH /tmp",
        "test -v 'a[$(rm x)]'",
        // Programs that start others with joined flags.
        "fd -xrm",
        "fd -Hxrm",
        "fd --exec=rm",
        "fd . --exec-batch rm",
        "ls \u{3164}x",
        "ls \u{e0061}x",
        // Harmless programs with harmful arguments.
        "head secret",
        "head /etc/passwd",
        "tail -f x",
        "wc --files0-from=x",
        "head ~/x",
        "head ../x",
        "cut -f1 $X",
        "sort -o x",
        "tr a b c",
    ] {
        let found = judged(command);
        assert!(!found.is_allowed(), "{command:?}: {found:?}");
    }
}

#[test]
fn an_entry_with_arguments_applies_to_these_arguments_in_this_directory() {
    let argv = ["git".to_owned(), "push".to_owned()];
    let entry = AllowedProgram {
        pattern: "/usr/bin/git".into(),
        arguments_hash: Some(arguments_hash(&argv)),
        cwd: Some("/w".into()),
        contents: Some(ContentHashes::from([("/usr/bin/git".into(), None)])),
    };
    let check_with = |command: &str, cwd: &str, sets_env: bool| {
        let rules = CommandRules {
            allowlist: std::slice::from_ref(&entry),
            safe_bins: &SafeBins::default(),
            skill_programs: &SkillPrograms::default(),
            cwd: Path::new(cwd),
            home: None,
            path: &["/usr/bin".into()],
            shell: ShellKind::Posix,
            sets_env,
            is_executable: &|path| ["/usr/bin/git", "/usr/bin/xargs"].map(Path::new).contains(&path),
            exists: &|_| false,
            changed: &|known| known.contains_key("/w/changed").then(|| "/w/changed".into()),
        };
        judge(command, &rules).is_allowed()
    };
    let check = |command: &str, cwd: &str| check_with(command, cwd, false);
    assert!(check("git push", "/w") && check("git 'push'", "/w"));
    assert!(check("cd /w; pwd", "/w") && check("bash -c 'git push'", "/w") && check("git push; cd /other", "/w"));
    for other in [
        "git push --force",
        "git",
        "cd /other && git push",
        "cd /other && bash -c 'git push'",
        "A=1 git push",
        "env A=1 git push",
        "echo --force | xargs git push",
        "find . -exec git push {} +",
    ] {
        assert!(!check(other, "/w"), "{other}");
    }
    assert!(!check("git push", "/other") && !check_with("git push", "/w", true));
}

/// Judges a command in `/w` by one entry; only the file `/w/changed` has changed.
fn judge_with(entry: &AllowedProgram, command: &str) -> Judgement {
    let rules = CommandRules {
        allowlist: std::slice::from_ref(entry),
        safe_bins: &SafeBins::default(),
        skill_programs: &SkillPrograms::default(),
        cwd: Path::new("/w"),
        home: None,
        path: &[],
        shell: ShellKind::Posix,
        sets_env: false,
        is_executable: &|_| true,
        exists: &|_| false,
        changed: &|known| known.contains_key("/w/changed").then(|| "/w/changed".into()),
    };
    judge(command, &rules)
}

#[test]
fn an_entry_with_arguments_names_one_file() {
    let argv = ["t".to_owned()];
    let entry = |pattern: &str| AllowedProgram {
        pattern: pattern.into(),
        arguments_hash: Some(arguments_hash(&argv)),
        cwd: None,
        contents: Some(ContentHashes::from([("/w/tool".into(), None)])),
    };
    let check = |pattern: &str, command: &str| judge_with(&entry(pattern), command).is_allowed();
    assert!(check("/w/tool", "./tool"));
    assert!(!check("/w/*", "./tool") && !check("/w/Tool", "./tool"));
}

#[test]
fn an_entry_with_arguments_applies_to_unchanged_files_only() {
    let check = |contents: Option<ContentHashes>, command: &str| {
        let entry = AllowedProgram {
            pattern: "/w/tool".into(),
            arguments_hash: Some(arguments_hash(&["tool".to_owned(), "*".to_owned()])),
            cwd: None,
            contents,
        };
        judge_with(&entry, command).not_allowed
    };
    let known = |path: &str| Some(ContentHashes::from([(path.to_owned(), None)]));
    assert_eq!(check(known("/w/tool"), "./tool '*'"), None);
    let changed = check(known("/w/changed"), "./tool '*'");
    assert_eq!(changed.as_deref(), Some("/w/changed has changed since it was approved"));
    // An entry without contents, and arguments that the shell expands to others each time.
    assert!(check(None, "./tool '*'").is_some() && check(Some(ContentHashes::new()), "./tool '*'").is_some());
    assert!(check(known("/w/tool"), "./tool *").is_some());
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
