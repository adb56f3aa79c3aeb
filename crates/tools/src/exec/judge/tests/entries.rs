//! Entries of the allow list that name arguments.

use super::*;

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
            syntax: CommandSyntax::Scripts,
            sets_env,
            has_own_programs: false,
            is_executable: &|path| ["/usr/bin/git", "/usr/bin/xargs", "/usr/bin/bash"].map(Path::new).contains(&path),
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
        syntax: CommandSyntax::Scripts,
        sets_env: false,
        has_own_programs: false,
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
