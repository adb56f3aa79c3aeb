//! `pinch skills list`: the skills of an embedded agent.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::help::TestUser;

#[tokio::test]
async fn skills_are_listed_with_their_requirements() {
    let user = TestUser::new().await;
    assert_eq!(user.run_program(&["skills", "list"]).await.out, "No skills found.\n");
    user.write(".pinch/skills/notes/SKILL.md", "---\nname: notes\ndescription: Takes notes\n---\n");
    user.write(
        ".pinch/skills/rare/SKILL.md",
        "---\nname: rare\ndescription: Rare {}\nmetadata: {openclaw: {requires: {bins: ['no-such-program']}, \
         install: [{kind: 'brew', formula: 'rare', label: 'Install rare'}]}}\n---\n"
            .replace("Rare {}", &format!("Rare {}", "x".repeat(200)))
            .as_str(),
    );
    user.write(".pinch/skills/notes/templates/weekly.md", "---\ndescription: Sums up a week\n---\nSum up week $1.");
    let listed = user.run_program(&["skills", "list"]).await;
    let expect = "notes (/notes): Takes notes\n  /notes:weekly: Sums up a week\nrare: Rare {}…\n  not usable: needs the program no-such-program\n  install: Install rare (brew rare)\n"
        .replace("{}", &"x".repeat(95));
    assert_eq!((listed.code, listed.out.as_str(), listed.err.as_str()), (Some(0), expect.as_str(), ""));
    let usable = user.run_program(&["skills", "list", "--eligible", "--json"]).await.out;
    let usable: Value = serde_json::from_str(&usable).unwrap();
    assert_eq!(usable.as_array().map(Vec::len), Some(1));
    assert_eq!(usable[0]["templates"], json!([{"name": "notes:weekly", "description": "Sums up a week"}]));
    assert_eq!((&usable[0]["name"], &usable[0]["source"]), (&json!("notes"), &json!("openclaw-managed")));
}

/// A skill whose program every package manager can install.
const INSTALLABLE: &str = "---\nname: rare\ndescription: Rare\nmetadata: {openclaw: {requires: {bins: ['rare-tool']}, install: [\
    {id: 'get', kind: 'download', url: 'https://example.com/rare'}, {kind: 'go', module: 'example.com/rare@latest'}, \
    {id: 'js', kind: 'node', package: '@a/rare'}, {kind: 'brew', formula: 'rare'}, {kind: 'uv', package: '--index-url=x'}, \
    {id: 'win', kind: 'uv', package: 'rare', os: ['win32']}]}}\n---\n";

#[cfg(unix)]
#[tokio::test]
async fn the_programs_of_a_skill_are_installed_by_the_package_manager_of_the_machine() {
    let user = TestUser::new().await;
    user.write(".pinch/skills/rare/SKILL.md", INSTALLABLE);
    let program = |name: &str, script: &str| {
        let path = user.write(&format!("bin/{name}"), script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    // Nothing else: no package manager of this machine may be called.
    let path = user.path("bin");
    let run = async |args: &[&str]| {
        let mut command = user.program(&[&["skills", "install"], args].concat());
        user.ran(command.env("PATH", &path).output().await.unwrap())
    };
    let missing = run(&["rare"]).await;
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    assert!(missing.err.contains("rare: none of the package managers is installed: brew, go, npm"), "{}", missing.err);
    for (args, expect) in [
        (&["nothing"][..], "there is no skill \"nothing\""),
        (&["rare", "--installer", "get"], "it must be downloaded by hand from https://example.com/rare"),
        (&["rare", "--installer", "5"], "its installer uv names no valid package"),
        (&["rare", "--installer", "win"], "has no installer \"win\" for this system; it has: get, 2, js, 4, 5"),
    ] {
        let refused = run(args).await;
        assert!(refused.code == Some(2) && refused.err.contains(expect), "{args:?}: {}", refused.err);
    }
    program("go", "#!/bin/sh\nexit 3\n");
    let failed = run(&["rare"]).await;
    assert!(failed.err.contains("go install example.com/rare@latest: exit status 3"), "{}", failed.err);
    program("npm", "#!/bin/sh\n/bin/sleep 60\n");
    let stopped = run(&["rare", "--installer", "js", "--timeout", "1"]).await;
    assert!(stopped.err.contains("stopped after 1 seconds"), "{}", stopped.err);
    program(
        "brew",
        "#!/bin/sh\necho \"$@\"; printf '#!/bin/sh\\n' > \"${0%/*}/rare-tool\"; /bin/chmod +x \"${0%/*}/rare-tool\"\n",
    );
    let dry = run(&["rare", "--dry-run"]).await;
    assert_eq!((dry.code, dry.out.as_str()), (Some(0), "brew install rare\n"));
    let installed = run(&["rare"]).await;
    let expect = "brew install rare\ninstall rare\nrare can be used now.\n";
    assert_eq!((installed.code, installed.out.as_str()), (Some(0), expect), "{}", installed.err);
    user.write(".pinch/pinch.json", r#"{"skills": {"install": {"nodeManager": "pnpm", "preferBrew": false}}}"#);
    assert_eq!(run(&["rare", "--dry-run"]).await.out, "go install example.com/rare@latest\n");
    let node = run(&["rare", "--dry-run", "--installer", "js"]).await;
    assert_eq!(node.out, "pnpm add --global --ignore-scripts @a/rare\n");
}
