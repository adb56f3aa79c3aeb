//! Completions and the manual, as shells and `man` parse them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use pinch_cli::options::flags::FLAGS;
use pinch_cli::options::help::COMMANDS;
use tokio::process::Command;

use crate::help::TestUser;

async fn form(user: &TestUser, form: &str) -> String {
    let ran = user.run_program(&["completions", form]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.out
}

/// Returns the output of a program for this input, or `None` if it is not installed.
async fn piped(program: &str, args: &[&str], text: &str) -> Option<String> {
    use tokio::io::AsyncWriteExt as _;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.env("MANWIDTH", "200").env("LC_ALL", "C.UTF-8").spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && err.is_empty(), "{program}: {err}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns bash's completions for the last of some words.
async fn offered(script: &str, folder: &Path, words: &[&str]) -> Option<Vec<String>> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let ask = format!(
        "{script}\ncd '{}'\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_pinch\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        folder.display(),
        quoted.join(" "),
        words.len() - 1
    );
    let out = piped("bash", &["--norc", "--noprofile", "-s"], &ask).await?;
    Some(out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Words of a command line, and the completions of the last one.
const LINES: [(&[&str], &[&str]); 15] = [
    (&["pinch", "--mod"], &["--mode", "--model", "--models"]),
    (&["pinch", "--model", ""], &[]),
    (&["pinch", "--mode", ""], &["text", "json", "rpc"]),
    (&["pinch", "--mode", "=", "j"], &["json"]),
    (&["pinch", "--thinking", "m"], &["minimal", "medium", "max"]),
    (&["pinch", "-nt", "--agent-dir", ""], &["dir"]),
    (&["pinch", "--skill", "no"], &["notes one.txt"]),
    (&["pinch", "@no"], &["@notes one.txt"]),
    (&["pinch", "do"], &["doctor"]),
    (&["pinch", "hello", "do"], &[]),
    (&["pinch", "auth", "print-b"], &["print-bearer-token"]),
    (&["pinch", "auth", "check", "--no"], &["--no-refresh"]),
    (&["pinch", "update", "--ext"], &["--extensions", "--extension"]),
    (&["pinch", "completions", "b"], &["bash"]),
    (&["pinch", "agent", "--verbose", "f"], &["full"]),
];

/// Creates a user with a few files, and returns their directory.
async fn with_files() -> (TestUser, PathBuf) {
    let user = TestUser::new().await;
    std::fs::create_dir_all(user.path("w/dir")).unwrap();
    user.write("w/notes one.txt", "");
    let folder = user.path("w");
    (user, folder)
}

/// Checks another shell's completions, ignoring their order and the text before the completed part.
#[track_caller]
fn check_offered(shell: &str, words: &[&str], found: &str, expected: &[&str]) {
    let bare = |text: &str| {
        let text = text.trim_end_matches('/').replace('\\', "");
        text.rsplit(['@', '=']).next().unwrap_or_default().to_owned()
    };
    let mut found: Vec<String> = found.lines().map(bare).filter(|line| !line.is_empty()).collect();
    let mut expected: Vec<String> = expected.iter().map(|text| bare(text)).collect();
    found.sort();
    found.dedup();
    expected.sort();
    assert_eq!(found, expected, "{shell}: {words:?}");
}

#[tokio::test]
async fn bash_completes() {
    let (user, folder) = with_files().await;
    let script = form(&user, "bash").await;
    for (words, expected) in LINES {
        let Some(found) = offered(&script, &folder, words).await else { return skipped("bash") };
        assert_eq!(found, expected, "{words:?}");
    }
}

#[tokio::test]
async fn fish_completes() {
    let (user, folder) = with_files().await;
    let script = user.write("pinch.fish", &form(&user, "fish").await);
    for (words, expected) in LINES {
        let line = words.join(" ").replace(" = ", "=");
        let ask = format!("cd '{}'; source '{}'; complete -C '{line}'", folder.display(), script.display());
        // Completions come with a description.
        let Some(found) = piped("fish", &["--no-config", "-c", &ask], "").await else { return skipped("fish") };
        let found: Vec<&str> = found.lines().filter_map(|line| line.split('\t').next()).collect();
        check_offered("fish", words, &found.join("\n"), expected);
    }
}

/// Types a line into a separate zsh, presses tab, and prints zsh's completions.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "cd ${(q)2}; PROMPT=; autoload -Uz compinit; compinit -D -u; source ${(q)1}
compadd() {
    if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return; fi
    local -a __hits
    builtin compadd -A __hits \"\$@\"
    local __hit
    for __hit in \$__hits; do print; print -r -- \"<\$__hit>\"; done
    builtin compadd \"\$@\"
}
press() { zle complete-word; print; print -r -- THE-END; exit }
zle -N press
bindkey '^I' press
print BE\$((1))GUN"
while zpty -r shell line; do [[ $line == *BE1GUN* ]] && break; done
zpty -w -n shell "$3"$'\t'
while zpty -r shell line; do
    line=${line%%$'\r'*}
    [[ $line == THE-END ]] && break
    [[ $line == '<'*'>' ]] && print -r -- ${${line#<}%>}
done
exit 0
"#;

#[tokio::test]
async fn zsh_completes() {
    let (user, folder) = with_files().await;
    let script = user.write("pinch.zsh", &form(&user, "zsh").await);
    let asking = user.write("ask.zsh", ZSH);
    let asked = futures::future::join_all(LINES.map(|(words, _)| {
        let line = words.join(" ").replace(" = ", "=");
        let (asking, script, folder) = (asking.clone(), script.clone(), folder.clone());
        async move {
            let paths = [&asking, &script, &folder].map(|path| path.to_str().unwrap());
            piped("zsh", &["-f", paths[0], paths[1], paths[2], &line], "").await
        }
    }));
    for ((words, expected), found) in LINES.iter().zip(asked.await) {
        let Some(found) = found else { return skipped("zsh") };
        check_offered("zsh", words, &found, expected);
    }
}

#[expect(clippy::print_stderr, reason = "whoever runs the tests should know")]
fn skipped(shell: &str) {
    eprintln!("skipped: {shell} is not installed here");
}

#[tokio::test]
async fn other_shells_can_parse_their_scripts() {
    let user = TestUser::new().await;
    for (shell, program, args) in [("zsh", "zsh", ["-n"]), ("fish", "fish", ["--no-execute"])] {
        piped(program, &args, &form(&user, shell).await).await;
    }
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = form(&user, shell).await;
        for flag in FLAGS {
            let name = if shell == "fish" { &flag.long[2..] } else { flag.long };
            assert!(script.contains(name), "{shell}: {name}");
        }
        for (name, _) in COMMANDS {
            assert!(script.contains(&format!("pinch {name}")), "{shell}: {name}");
        }
    }
}

#[tokio::test]
async fn the_manual_is_a_manual_page() {
    let user = TestUser::new().await;
    let page = form(&user, "man").await;
    assert!(page.starts_with(".TH PINCH 1 "), "{page}");
    let known = [".TH ", ".SH ", ".SS ", ".TP", ".br"];
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
    }
    let file = user.write("pinch.1", &page);
    let Some(shown) = piped("man", &["--warnings", "-l", file.to_str().unwrap()], "").await else { return };
    for text in ["--thinking <LEVEL>", "pinch auth check", "PINCH_AGENT_DIR (PI_CODING_AGENT_DIR)", "EXIT STATUS"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[tokio::test]
async fn the_generated_documents_are_up_to_date() {
    let user = TestUser::new().await;
    let documents = [
        ("markdown", include_str!("../../../../docs/cli.md")),
        ("settings", include_str!("../../../../docs/settings.md")),
    ];
    for (name, document) in documents {
        assert_eq!(form(&user, name).await, document, "run cargo xtask codegen");
    }
}
