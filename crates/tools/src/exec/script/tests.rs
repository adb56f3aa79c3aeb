use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;

fn programs(script: &str) -> Result<Vec<String>, String> {
    match parse(script, false) {
        Ok(found) => Ok(found.segments().map(|words| words.join(" ")).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn every_program_of_a_script_is_found() {
    for (script, expect) in [
        ("a\nb; c && d |\n e # f", &["a", "b", "c", "d", "e"][..]),
        ("(a; b) | c", &["a", "b", "c"]),
        ("{ a; b; } 2>/dev/null && c", &["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a | b; do\n  c\ndone", &["a", "b", "c"]),
        ("until a; do b; done | c", &["a", "b", "c"]),
        ("for f in x y*; do a \"$f\"; done", &["a $f"]),
        ("for f\ndo a; done", &["a"]),
        ("! a || ! b", &["a", "b"]),
        ("a $(b $(c) | d) \"$(e 'f)')\"", &["c", "b $(c)", "d", "e f)", "a $(b $(c) | d) $(e 'f)')"]),
        ("a 'x\ny' \"z\n$(b)\"", &["b", "a x\ny z\n$(b)"]),
        ("cat <<'EOF' | a\n$(b) `c`\nEOF\nd", &["cat", "a", "d"]),
        ("cat <<A <<-B\n$(b)\nA\n\t$(c)\n\tB\nd", &["cat", "b", "c", "d"]),
        ("x=$(a) b", &["a", "x=$(a) b"]),
        ("a\\\nb \\\n  c", &["ab c"]),
        ("a>/dev/null 2>&1 </dev/null b &>/dev/null", &["a b"]),
        ("a;", &["a"]),
        ("a # 'b\nc # d'", &["a", "c"]),
        ("a b#c '#d' \\#e", &["a b#c #d #e"]),
        ("[ -f x ] && a", &["[ -f x ]", "a"]),
    ] {
        assert_eq!(
            programs(script).as_deref(),
            Ok(&expect.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..]),
            "{script}"
        );
    }
}

#[test]
fn what_shells_read_differently_or_what_does_more_is_rejected() {
    for (script, found) in [
        ("a &", "&"),
        ("a && ", "&"),
        ("a || ; b", "||"),
        ("a & b", "&"),
        ("a |& b", "|&"),
        ("a > b", ">"),
        ("(a) >> b", ">"),
        ("a 3>/dev/null", ">"),
        ("a &>/dev/null b", "&"),
        ("a 2\\\n>/dev/null", ">"),
        ("a {b}>/dev/null", ">"),
        ("'a=b' c", "="),
        ("a\\=b c", "="),
        ("'~/a' b", "~"),
        ("(\\\n(a))", "(("),
        ("a $(\\\n(b))", "$(("),
        ("a 2>&3", ">"),
        ("a > /dev/nullx", ">"),
        ("a < b", "<"),
        ("a <(b)", "<"),
        ("a <<< b", "<<"),
        ("a <<E$x\nb\nE$x", "<<"),
        ("a <<E\nb", "<<"),
        ("a <<E\nb\\\nE\nE", "<<"),
        ("a <<E\n$(b\n)\nE", "<<"),
        ("a <<E 'x\ny'\nE", "<<"),
        ("a <<E $(b)\nE", "<<"),
        ("a $(b <<E)\nE", "<<"),
        ("a <<E\n`b`\nE", "`"),
        ("a `b`", "`"),
        ("a \"`b`\"", "`"),
        ("a() { b; }", "("),
        ("a *(e:b:)", "("),
        ("((a))", "(("),
        ("a $((b))", "$(("),
        ("a $[b]", "$["),
        ("a ${b:=c}", "${"),
        ("a $b[c]", "["),
        ("a $'b'", "$'"),
        ("a $=b", "$"),
        ("case a in b) c;; esac", "case"),
        ("[[ a ]]", "[["),
        ("function a { b; }", "function"),
        ("select a in b; do c; done", "select"),
        ("for PATH in a; do b; done", "for PATH"),
        ("for path in a; do b; done", "for path"),
        ("for 'f' in a; do b; done", "for f"),
        ("for f in a; b", "b"),
        ("if a; b; fi", "fi"),
        ("if a { b }", "{"),
        ("a }", "}"),
        ("{ a }", "}"),
        ("(a) b", "b"),
        ("{ a; } b", "b"),
        ("then a", "then"),
        ("a)", ")"),
        ("; a", ";"),
        ("a ;; b", ";"),
    ] {
        assert_eq!(programs(script), Err(format!("unsupported shell token: {found}")), "{script}");
    }
    for (script, error) in [
        ("(a", "unterminated shell quote/escape"),
        ("a $(b", "unterminated shell quote/escape"),
        ("a <<E\n$(b\nE\n)\nE", "unterminated shell quote/escape"),
        ("a 'b", "unterminated shell quote/escape"),
        ("()", "empty pipeline segment"),
        ("a | ", "empty pipeline segment"),
        ("if a; then", "empty pipeline segment"),
        ("if a; then b", "unable to parse shell segment"),
        ("# a", "empty pipeline segment"),
        ("2>/dev/null", "empty pipeline segment"),
    ] {
        assert_eq!(programs(script).unwrap_err(), error, "{script}");
    }
    // Each end would be searched for in the whole rest.
    let open_ended = "a $(cat <<'E'\n(\nE\n)\n";
    assert!(parse(open_ended, false).is_ok());
    assert_eq!(parse(&open_ended.repeat(1_000), false), Err(AnalysisError::TooDeep));
    assert!(parse(&"a $(b $(c) \"$(d)\")\n".repeat(1_000), false).is_ok());
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parse(&deep, false).is_err());
    let deep = format!("{}a{}", "$(".repeat(100_000), ")".repeat(100_000));
    assert!(parse(&deep, false).is_err());
    assert_eq!(parse(&format!("{}a{}", "( ".repeat(99), ")".repeat(99)), false), Err(AnalysisError::TooDeep));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(
        text in prop_oneof![any::<String>(), "[a-z é$(){}<>'\"`;|&#\\\\\n-]{0,60}"]
    ) {
        drop(parse(&text, false));
        drop(parse(&text, true));
    }
}

/// The parts of random scripts.
const PARTS: [&str; 44] = [
    "pa",
    "pb",
    "pc",
    "pd",
    " ",
    " ",
    " ",
    " ",
    ";",
    ";",
    "\n",
    "\n",
    "&&",
    "||",
    "|",
    "(",
    ")",
    "$(",
    ")",
    "\"",
    "\"",
    "'",
    "'",
    "\\",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "while ",
    "for f in a b; do ",
    "; do ",
    "; done",
    "<<E",
    "<<'E'",
    "\nE\n",
    "#",
    "! ",
    "x=1 ",
    " >/dev/null",
    " 2>&1",
    "$f",
    "\\\n",
];

/// Runs a script with a shell, and returns the programs that it starts. The programs record their names.
fn started(shell: &str, script: &str, bin: &Path) -> BTreeSet<String> {
    let log = bin.join("log");
    drop(std::fs::remove_file(&log));
    let mut child = Command::new(shell)
        .args(["-c", script])
        .env_clear()
        .env("PATH", bin)
        .env("LOG", &log)
        .current_dir(bin)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Some of the loops are endless.
    for _ in 0..50 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().and_then(|()| child.wait()).unwrap();
    std::fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn shells_start_no_program_that_was_not_found() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["pa", "pb", "pc", "pd"] {
        let program = dir.path().join(name);
        std::fs::write(&program, "#!/bin/sh\necho ${0##*/} >> \"$LOG\"\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let shells: Vec<&str> =
        ["/bin/bash", "/bin/dash", "/bin/sh", "/bin/zsh"].into_iter().filter(|path| Path::new(path).exists()).collect();
    let script = prop::collection::vec(prop::sample::select(&PARTS[..]), 1..16).prop_map(|parts| parts.concat());
    let mut runner = TestRunner::deterministic();
    let mut n_accepted = 0;
    while n_accepted < 400 {
        let script = script.new_tree(&mut runner).unwrap().current();
        let Ok(found) = parse(&script, false) else { continue };
        let names =
            found.segments().filter_map(|words| words.iter().find(|word| !word.contains('='))).map(String::as_str);
        let known: BTreeSet<&str> = names.collect();
        // Others are rejected when they are looked up.
        if known.iter().any(|name| name.contains(|c: char| !c.is_ascii_alphabetic())) {
            continue;
        }
        n_accepted += 1;
        let shell = shells[n_accepted % shells.len()];
        for name in started(shell, &script, dir.path()) {
            assert!(known.contains(name.as_str()), "{shell} starts {name}, which is not among {known:?}: {script:?}");
        }
    }
}
