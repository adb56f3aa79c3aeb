//! `pinch skills list`: the skills of an embedded agent.

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
