//! Links in projects and packages: where an untrusted directory may lead.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use pinch_coding_agent::packages::PackageEntry;
use pinch_coding_agent::resources::{ResourceInputs, ResourceLoader};
use pinch_coding_agent::services::{ServiceOptions, Services};
use pinch_stdx::host::Host;

#[test]
fn instructions_behind_a_link_out_of_the_project_require_trust() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().join("project");
    fs::create_dir(&cwd).unwrap();
    fs::write(dir.path().join("secret"), "root:secret").unwrap();
    symlink("../secret", cwd.join("AGENTS.md")).unwrap();
    let load = |trust| {
        let host = Host::builder().home(dir.path().join("home")).build();
        let mut options = ServiceOptions::new(host, dir.path().join("agent"));
        options.trust = trust;
        let services = Services::load(&options, &cwd);
        let texts: Vec<String> = services.resources().context_files.iter().map(|file| file.text.clone()).collect();
        (texts, services.take_problems().join("\n"))
    };
    for trust in [None, Some(false)] {
        let (texts, problems) = load(trust);
        assert_eq!(texts, Vec::<String>::new());
        assert!(problems.contains("AGENTS.md") && problems.contains("leads out of the project"), "{problems}");
    }
    assert_eq!(load(Some(true)), (vec!["root:secret".to_owned()], String::new()));
    fs::create_dir(dir.path().join("agent")).unwrap();
    fs::write(dir.path().join("agent/settings.json"), r#"{"defaultProjectTrust": "always"}"#).unwrap();
    assert_eq!(load(None).0, ["root:secret"]);
}

#[test]
fn packages_provide_only_files_inside_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let package = root.join("package");
    for folder in ["prompts", "skills/inner", "themes", "shared"] {
        fs::create_dir_all(package.join(folder)).unwrap();
    }
    fs::create_dir_all(root.join("outer/skill")).unwrap();
    let skill = "---\nname: NAME\ndescription: d\n---\ntext";
    fs::write(root.join("outer/secret.md"), "secret").unwrap();
    fs::write(root.join("outer/skill/SKILL.md"), skill.replace("NAME", "outer")).unwrap();
    fs::write(package.join("shared/a.md"), "shared").unwrap();
    fs::write(package.join("skills/inner/SKILL.md"), skill.replace("NAME", "inner")).unwrap();
    symlink("../shared/a.md", package.join("prompts/inside.md")).unwrap();
    symlink("../../outer/secret.md", package.join("prompts/outside.md")).unwrap();
    symlink("../../outer/skill", package.join("skills/outside")).unwrap();
    // The package itself may be reached through a link, as created by package managers.
    symlink(&package, root.join("link")).unwrap();
    for place in ["package", "link"] {
        let mut inputs = ResourceInputs::new(root.join("w"), root.join("agent"), None);
        inputs.trusted = true;
        inputs.links_lead_out = true;
        inputs.settings.user.packages.push(PackageEntry::whole(root.join(place).display().to_string()));
        let resources = ResourceLoader::load(inputs).resources().as_ref().clone();
        let prompts: Vec<&str> = resources.commands.templates.iter().map(|one| one.name.as_str()).collect();
        let skills: Vec<&str> = resources.skills().iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!((prompts, skills), (vec!["inside"], vec!["inner"]), "{place}");
        let messages: Vec<&str> = resources.diagnostics.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages.iter().filter(|text| text.contains("leads out of its package")).count(), 2, "{messages:?}");
    }
}
