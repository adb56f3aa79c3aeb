//! Discovered resources: their order, and what an untrusted project may not provide.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::packages::{PackageEntry, PackageFilter};
use pinch_coding_agent::resources::trust::{self, DefaultTrust, Project, TrustDecision, TrustInputs, TrustStore};
use pinch_coding_agent::resources::{
    Commands, ExtraPaths, ResourceInputs, ResourceLoader, ResourceOrigin, ResourceScope, Resources, Without,
};
use pinch_stdx::host::Host;
use serde_json::json;

/// A user with a project.
struct ProjectFixture {
    dir: tempfile::TempDir,
}

impl ProjectFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(place.path("w")).unwrap();
        files.iter().for_each(|(name, text)| place.write(name, text));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn inputs(&self) -> ResourceInputs {
        let mut inputs = ResourceInputs::new(self.path("w"), self.path("home/agent"), Some(&self.path("home")));
        inputs.trusted = true;
        inputs
    }

    fn load(&self, change: impl FnOnce(&mut ResourceInputs)) -> Resources {
        let mut inputs = self.inputs();
        change(&mut inputs);
        ResourceLoader::load(inputs).resources().as_ref().clone()
    }

    /// Returns a path without the test's generated prefix.
    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap_or(path).display().to_string()
    }

    fn skills(&self, resources: &Resources) -> Vec<String> {
        resources.skills().iter().map(|skill| format!("{} {}", skill.name, self.short(&skill.path))).collect()
    }

    fn problems(&self, resources: &Resources) -> Vec<String> {
        let root = self.path("").display().to_string();
        let problems = resources.diagnostics.iter().map(|one| format!("{}: {}", self.short(&one.path), one.message));
        problems.map(|text| text.replace(&root, "")).collect()
    }
}

fn skill(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nBody\n")
}

#[test]
fn the_nearest_resource_wins_and_every_source_is_recorded() {
    let d = skill("d");
    let files = [
        "home/agent/skills/a",
        "home/agent/skills/group/b",
        "home/.agents/skills/c",
        "w/.pi/skills/a",
        ".agents/skills/up",
        "w/.agents/skills/deep/here",
        "home/named/n",
        "pkg/skills/p",
        "pkg/skills/a",
        "cli/x",
    ];
    let files: Vec<(String, &str)> = files.iter().map(|name| (format!("{name}/SKILL.md"), d.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let place = ProjectFixture::new(&files);
    place.write("w/.agents/skills/loose.md", &d);
    place.write("w/.pi/skills/loose.md", &d);
    place.write("w/.pi/skills/README.md", "no head");
    let found = place.load(|inputs| {
        inputs.command_line.skills.push("../cli".into());
        inputs.settings.user.skills.push("~/named".into());
        inputs.settings.user.packages.push(PackageEntry::whole("../../pkg"));
    });
    assert_eq!(
        place.skills(&found),
        [
            "x cli/x/SKILL.md",
            "a w/.pi/skills/a/SKILL.md",
            "loose w/.pi/skills/loose.md",
            "here w/.agents/skills/deep/here/SKILL.md",
            "up .agents/skills/up/SKILL.md",
            "n home/named/n/SKILL.md",
            "b home/agent/skills/group/b/SKILL.md",
            "c home/.agents/skills/c/SKILL.md",
            "p pkg/skills/p/SKILL.md",
        ]
    );
    assert_eq!(
        place.problems(&found),
        ["home/agent/skills/a/SKILL.md: name \"a\" collision", "pkg/skills/a/SKILL.md: name \"a\" collision"]
    );
    let info = |at: usize| {
        let info = &found.skills()[at].info;
        let base = place.short(info.base_dir.as_deref().unwrap());
        (info.source.clone(), info.scope, info.origin, base)
    };
    assert_eq!(info(0), ("cli".into(), ResourceScope::Temporary, ResourceOrigin::TopLevel, "cli".into()));
    assert_eq!(info(1), ("auto".into(), ResourceScope::Project, ResourceOrigin::TopLevel, "w/.pi".into()));
    assert_eq!(info(5), ("local".into(), ResourceScope::User, ResourceOrigin::TopLevel, "home/agent".into()));
    assert_eq!(info(8), ("../../pkg".into(), ResourceScope::User, ResourceOrigin::Package, "pkg".into()));
    let value = found.skills()[1].info.to_value();
    assert_eq!((&value["scope"], &value["origin"]), (&json!("project"), &json!("top-level")));
}

#[test]
fn templates_are_the_markdown_files_of_a_directory() {
    let place = ProjectFixture::new(&[
        ("home/agent/prompts/b.md", "\n\nB"),
        ("home/agent/prompts/a.md", "---\nx: [\n---\nA"),
        ("home/agent/prompts/c.txt", "C"),
        ("home/agent/prompts/sub.md/d.md", "D"),
        ("w/more/b.md", "another B"),
    ]);
    let found = place.load(|inputs| inputs.command_line.prompts.push("more".into()));
    let templates = found.commands.templates.iter();
    let templates: Vec<_> = templates.map(|one| (one.name.as_str(), one.content.trim())).collect();
    assert_eq!(templates, [("b", "another B")]);
    let problems = place.problems(&found);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("prompts/a.md") && problems[1].contains("\"/b\" collision"), "{problems:?}");
}

#[test]
fn settings_disable_and_enable_single_files() {
    let d = skill("d");
    let place = ProjectFixture::new(&[
        ("home/agent/skills/a/SKILL.md", &d),
        ("home/agent/skills/b/SKILL.md", &d),
        ("home/agent/prompts/x.md", "X"),
        ("home/agent/prompts/y.md", "Y"),
    ]);
    let found = place.load(|inputs| {
        inputs.settings.user.skills.push("-skills/a".into());
        inputs.settings.user.prompts = vec!["!prompts/*".into(), "+prompts/y.md".into(), "nowhere.md".into()];
    });
    assert_eq!(place.skills(&found), ["b home/agent/skills/b/SKILL.md"]);
    assert_eq!(found.commands.templates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["y"]);
    assert_eq!(place.problems(&found), ["home/agent/nowhere.md: prompt path does not exist"]);
    let none = place.load(|inputs| {
        inputs.without = Without { skills: true, prompts: true, ..Without::default() };
        inputs.command_line.prompts.push("../home/agent/prompts/x.md".into());
    });
    assert!(none.skills().is_empty());
    assert_eq!(none.commands.templates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["x"]);
}

#[test]
fn packages_provide_what_their_manifest_lists_and_settings_allow() {
    let d = skill("d");
    let manifest = json!({"name": "m", "pi": {
        "skills": ["./work/*", "!work/no", "../home"], "prompts": ["./p"], "extensions": ["./ext/main.ts"],
    }});
    let place = ProjectFixture::new(&[
        ("m/package.json", &manifest.to_string()),
        ("m/work/yes/SKILL.md", &d),
        ("m/work/no/SKILL.md", &d),
        ("m/skills/unlisted/SKILL.md", &d),
        ("m/p/one.md", "1"),
        ("m/p/two.md", "2"),
        ("m/themes/t.json", "{}"),
        ("m/ext/main.ts", ""),
        ("home/SKILL.md", &d),
        ("plain/index.ts", ""),
        ("plain/prompts/three.md", "3"),
    ]);
    let entry = PackageEntry {
        source: "../../m".into(),
        filter: Some(PackageFilter { prompts: Some(vec!["p/t*".into()]), ..PackageFilter::default() }),
    };
    let found = place.load(|inputs| {
        inputs.settings.user.packages =
            vec![entry.clone(), PackageEntry::whole("../../plain"), PackageEntry::whole("npm:gone")];
        inputs.settings.project.packages = vec![PackageEntry::whole(place.path("plain").display().to_string())];
    });
    assert_eq!(place.skills(&found), ["yes m/work/yes/SKILL.md"]);
    let names: Vec<&str> = found.commands.templates.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["three", "two"]);
    let extensions: Vec<String> = found.extensions.iter().map(|one| place.short(&one.path)).collect();
    assert_eq!(extensions, ["plain/index.ts", "m/ext/main.ts"]);
    assert_eq!(
        found.extensions[0].info.scope,
        ResourceScope::Project,
        "of one package in both settings the project's counts"
    );
    assert_eq!(found.themes.len(), 2, "a manifest that names no themes brings none");
    assert_eq!(place.problems(&found), ["home/agent/npm/node_modules/gone: package npm:gone is not installed"]);
    let nothing = PackageFilter { skills: Some(vec![]), prompts: Some(vec![]), ..PackageFilter::default() };
    let found = place.load(|inputs| {
        inputs.settings.user.packages = vec![PackageEntry { filter: Some(nothing), ..entry }];
    });
    assert_eq!((found.skills().len(), found.commands.templates.iter().count(), found.extensions.len()), (0, 0, 1));
}

#[test]
fn an_untrusted_project_provides_only_context_files() {
    let d = skill("d");
    let place = ProjectFixture::new(&[
        ("w/AGENTS.md", "rules"),
        ("w/.pi/SYSTEM.md", "custom"),
        ("w/.pi/skills/s/SKILL.md", &d),
        ("w/.agents/skills/t/SKILL.md", &d),
        ("home/agent/APPEND_SYSTEM.md", "more"),
    ]);
    let seen = |trusted: bool| {
        let found = place.load(|inputs| {
            inputs.trusted = trusted;
            inputs.settings.project.prompts.push("nowhere.md".into());
        });
        let texts: Vec<String> = found.context_files.iter().map(|file| file.text.clone()).collect();
        assert_eq!((texts, found.addendum()), (vec!["rules".to_owned()], Some("more".to_owned())));
        (found.system_prompt.clone(), found.skills().len(), place.problems(&found))
    };
    let (system, n_skills, problems) = seen(false);
    assert_eq!((system, n_skills), (None, 0));
    assert!(problems[0].contains("not trusted") && problems.len() == 1, "{problems:?}");
    assert_eq!(seen(true).0.as_deref(), Some("custom"));
    assert_eq!(seen(true).1, 2);
}

#[cfg(unix)]
#[test]
fn the_same_file_is_used_once() {
    let place = ProjectFixture::new(&[("home/agent/skills/a/SKILL.md", &skill("d")), ("w/AGENTS.md", "rules")]);
    std::fs::create_dir_all(place.path("w/.pi")).unwrap();
    std::os::unix::fs::symlink(place.path("home/agent/skills"), place.path("w/.pi/skills")).unwrap();
    std::os::unix::fs::symlink(place.path("w/AGENTS.md"), place.path("AGENTS.md")).unwrap();
    let found = place.load(|_| {});
    assert_eq!(place.skills(&found), ["a w/.pi/skills/a/SKILL.md"]);
    assert_eq!((found.context_files.len(), found.diagnostics), (1, vec![]));
}

#[test]
fn given_prompts_replace_files_and_may_name_files() {
    let place = ProjectFixture::new(&[
        ("w/.pi/SYSTEM.md", "no"),
        ("w/s.md", "\u{feff}from a file"),
        ("home/agent/SYSTEM.md", "user"),
    ]);
    let found = place.load(|inputs| {
        inputs.system_prompt = Some("s.md".into());
        inputs.append_system_prompt = vec!["literal".into(), "s.md".into()];
    });
    assert_eq!(found.system_prompt.as_deref(), Some("from a file"));
    assert_eq!(found.addendum().as_deref(), Some("literal\n\nfrom a file"));
    assert_eq!(place.load(|inputs| inputs.trusted = false).system_prompt.as_deref(), Some("user"));
}

#[test]
fn reloading_sees_changes_and_extensions_add_resources() {
    let place = ProjectFixture::new(&[("brought/e/SKILL.md", &skill("d"))]);
    let adjust = Arc::new(|resources: &mut Resources| resources.append_system_prompt.push("last word".into()));
    let mut loader = ResourceLoader::load_with(place.inputs(), Some(adjust));
    assert!(loader.resources().skills().is_empty());
    place.write("w/.pinch/prompts/new.md", "N");
    loader.reload();
    assert_eq!(loader.resources().commands.templates.iter().count(), 1);
    loader.extend_resources(vec![ExtraPaths {
        extension: "ext".into(),
        skills: vec![place.path("brought"), "gone".into()],
        ..ExtraPaths::default()
    }]);
    let found = loader.resources();
    assert_eq!(found.skills()[0].info.source, "extension:ext");
    assert_eq!(place.problems(found), ["w/gone: skill path does not exist"]);
    assert_eq!(found.append_system_prompt, ["last word"]);
    loader.reload();
    assert!(loader.resources().skills().is_empty());
}

#[test]
fn themes_are_loaded_and_mistakes_reported() {
    let place =
        ProjectFixture::new(&[("home/agent/themes/bad.json", "{\"name\": \"bad\", \"colors\": {}}"), ("w/t.txt", "")]);
    let colors = pinch_coding_agent::resources::themes::COLORS.map(|name| (name.to_owned(), json!("")));
    let colors: serde_json::Map<String, serde_json::Value> = colors.into_iter().collect();
    let theme = |name: &str| json!({"name": name, "colors": colors}).to_string();
    place.write("w/.pi/themes/own.json", &theme("own"));
    place.write("w/.pi/themes/taken.json", &theme("dark"));
    let found = place.load(|inputs| inputs.command_line.themes.push("t.txt".into()));
    assert_eq!(found.themes.iter().map(|theme| theme.name.as_str()).collect::<Vec<_>>(), ["dark", "light", "own"]);
    let problems = place.problems(&found);
    assert_eq!(
        problems[..2],
        ["w/t.txt: theme path is not a json file", "w/.pi/themes/taken.json: name \"dark\" collision"]
    );
    assert!(
        problems[2].starts_with("home/agent/themes/bad.json: is not a theme: colors: missing accent, border"),
        "{problems:?}"
    );
}

#[test]
fn a_slash_names_skills_and_templates() {
    let place =
        ProjectFixture::new(&[("home/agent/skills/a/SKILL.md", &skill("d")), ("home/agent/prompts/a.md", "T $1")]);
    let commands: Commands = place.load(|_| {}).commands;
    let folder = place.path("home/agent/skills/a").display().to_string();
    let block = format!(
        "<skill name=\"a\" location=\"{folder}/SKILL.md\">\nReferences are relative to {folder}.\n\nBody\n</skill>"
    );
    assert_eq!(commands.expand("/skill:a").text, block);
    assert_eq!(commands.expand("/skill:a  x y ").text, format!("{block}\n\nx y"));
    assert_eq!(commands.expand("/skill:b x").text, "/skill:b x");
    assert_eq!(commands.expand("/a x").text, "T x");
    std::fs::remove_file(place.path("home/agent/skills/a/SKILL.md")).unwrap();
    let lost = commands.expand("/skill:a x");
    assert!(lost.text == "/skill:a x" && lost.problem.is_some());
}

/// Returns the decision about the project in a store with this content.
fn decision(place: &ProjectFixture, text: &str) -> Option<bool> {
    place.write("home/agent/trust.json", &text.replace("$", &place.path("").display().to_string()));
    let (store, problems) = TrustStore::load(&place.path("home/agent/trust.json"));
    assert_eq!(problems, []);
    store.decision(&place.path("w/sub"))
}

#[test]
fn the_nearest_decision_applies_in_both_formats() {
    let place = ProjectFixture::new(&[("w/sub/x", "")]);
    assert_eq!(decision(&place, "{}"), None);
    assert_eq!(decision(&place, "{\"$w\": true}"), Some(true));
    assert_eq!(decision(&place, "{\"$w\": true, \"$w/sub\": {\"trusted\": false, \"at\": \"x\"}}"), Some(false));
    assert_eq!(decision(&place, "{\"$w\": true, \"$w/sub\": null, \"$w/su\": false}"), Some(true));
}

#[test]
fn stored_decisions_preserve_existing_content() {
    let place = ProjectFixture::new(&[("home/agent/trust.json", "{\"note\": {\"x\": 1}}")]);
    let path = place.path("home/agent/trust.json");
    let host = Host::builder().build();
    let (mut store, _) = TrustStore::load(&path);
    store.decide(&place.path("w"), Some(true), &host).unwrap();
    let (mut other, _) = TrustStore::load(&path);
    assert_eq!(other.decision(&place.path("w")), Some(true));
    place.write(
        "home/agent/trust.json",
        &format!("{{\"note\": {{\"x\": 1}}, \"{0}\": {{\"trusted\": true, \"by\": 2}}}}", place.path("w").display()),
    );
    other.decide(&place.path("w"), Some(false), &host).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let entry = &kept[place.path("w").to_str().unwrap()];
    assert_eq!((&kept["note"], &entry["trusted"], &entry["by"]), (&json!({"x": 1}), &json!(false), &json!(2)));
    other.decide(&place.path("w"), None, &host).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"note\": {\n    \"x\": 1\n  }\n}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    place.write("home/agent/trust.json", "{oops");
    assert!(store.decide(&place.path("w"), Some(true), &host).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{oops");
}

#[test]
fn trust_decisions_have_an_order_of_precedence() {
    let place = ProjectFixture::new(&[
        ("bare/.pi/other", ""),
        ("skills/.agents/skills/x", ""),
        ("home/.pi/settings.json", "{}"),
        ("own/.pi/SYSTEM.md", ""),
    ]);
    place.write("home/agent/trust.json", &format!("{{\"{}\": false}}", place.path("bare").display()));
    let (store, _) = TrustStore::load(&place.path("home/agent/trust.json"));
    let home = place.path("home");
    let decide = |folder: &str, given, extension, default| {
        let cwd = place.path(folder);
        let project = Project::look(&cwd, Some(&home));
        let question = TrustInputs { project: &project, given, extension, default };
        trust::decide(&question, &store)
    };
    let ask = |folder| decide(folder, None, None, DefaultTrust::Ask);
    assert_eq!(ask("w"), TrustDecision::NotNeeded);
    assert_eq!(ask("home"), TrustDecision::NotNeeded, "the user's own folder is no project");
    assert_eq!(ask("bare"), TrustDecision::Decided(false), "a kept no stands where nothing needs trust");
    assert_eq!(
        (ask("own"), ask("skills"), ask("skills/deep")),
        (TrustDecision::Ask, TrustDecision::Ask, TrustDecision::Ask)
    );
    assert!(!ask("own").is_trusted());
    assert_eq!(decide("own", None, None, DefaultTrust::Always), TrustDecision::Decided(true));
    assert_eq!(decide("own", None, None, DefaultTrust::Never), TrustDecision::Decided(false));
    assert_eq!(decide("own", None, Some(false), DefaultTrust::Always), TrustDecision::Decided(false));
    assert_eq!(decide("bare", Some(true), Some(false), DefaultTrust::Never), TrustDecision::Decided(true));
}

#[test]
fn many_resources_load_quickly() {
    let place = ProjectFixture::new(&[]);
    let long = "text ".repeat(20_000);
    for at in 0..200 {
        place.write(&format!("home/agent/skills/s{at}/SKILL.md"), &format!("{}{long}", skill("d")));
        place.write(&format!("home/agent/skills/s{at}/node_modules/m/SKILL.md"), "x");
    }
    for at in 0..50 {
        place.write(&format!("home/agent/prompts/p{at}.md"), &"line\n".repeat(100));
    }
    let begun = std::time::Instant::now();
    let found = place.load(|_| {});
    let taken = begun.elapsed();
    assert_eq!((found.skills().len(), found.commands.templates.iter().count()), (200, 50));
    // An unoptimized build on a busy machine takes some tens of milliseconds; reading everything takes longer than the limit.
    assert!(taken < std::time::Duration::from_secs(2), "{taken:?}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_skipped() {
    let place = ProjectFixture::new(&[
        ("home/agent/skills/a/x", ""),
        ("home/agent/prompts/x", ""),
        ("home/agent/themes/x", ""),
    ]);
    for name in [
        "home/agent/skills/a/SKILL.md",
        "home/agent/prompts/p.md",
        "home/agent/themes/t.json",
        "w/AGENTS.md",
        "w/p.md",
        "w/t.json",
    ] {
        assert!(std::process::Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
    }
    let found = place.load(|inputs| {
        inputs.command_line.skills.push("p.md".into());
        inputs.command_line.prompts.push("p.md".into());
        inputs.command_line.themes.push("t.json".into());
        inputs.system_prompt = Some("p.md".into());
    });
    assert_eq!((found.skills().len(), found.commands.templates.iter().count(), found.themes.len()), (0, 0, 2));
    assert_eq!((found.context_files.len(), found.diagnostics.len()), (0, 3));
    assert_eq!(found.system_prompt.as_deref(), Some("p.md"));
}

#[tokio::test]
async fn a_session_expands_skills_in_prompts_and_queues() {
    use pinch_coding_agent::session::Prompt;
    use pinch_llm::provider::scripted::ScriptedReply;
    let place = ProjectFixture::new(&[("home/agent/skills/a/SKILL.md", &skill("d"))]);
    let skills = place.load(|_| {}).commands.skills;
    let mut scene = crate::session::scene_with(crate::session::in_memory(), [ScriptedReply::text("ok")], |parts| {
        let mut parts = parts;
        parts.skills = skills;
        parts
    })
    .await;
    crate::session::follow(scene.session.prompt(Prompt::text("/skill:a now")), |_| {}).await;
    let prompts: Vec<String> = scene
        .session
        .messages()
        .iter()
        .filter_map(|message| match &**message {
            pinch_llm::message::Message::User(user) => Some(user.content.text("")),
            _ => None,
        })
        .collect();
    assert!(
        prompts.len() == 1 && prompts[0].starts_with("<skill name=\"a\"") && prompts[0].ends_with("</skill>\n\nnow"),
        "{prompts:?}"
    );
    let control = scene.session.control();
    control.steer("/skill:a later", Vec::new());
    assert!(control.waiting().0[0].ends_with("</skill>\n\nlater"));
}

#[test]
fn skills_provide_task_templates() {
    let place = ProjectFixture::new(&[
        ("home/agent/skills/review/SKILL.md", "---\ndescription: Reviews code\n---\n"),
        ("home/agent/skills/review/templates/quick.md", "---\ndescription: A quick look\n---\nLook at $1 quickly.\n"),
        ("home/agent/skills/review/prompts/deep.md", "Look at $ARGUMENTS deeply.\n"),
        ("home/agent/skills/review/templates/below/no.md", "no\n"),
        ("home/agent/skills/review/templates/no.txt", "no\n"),
        ("home/agent/prompts/own.md", "own\n"),
    ]);
    let templates = |resources: &Resources| -> Vec<String> {
        resources.commands.templates.iter().map(|one| format!("{}: {}", one.name, one.description)).collect()
    };
    let resources = place.load(|_| {});
    let expect = ["own: own", "review:quick: A quick look", "review:deep: Look at $ARGUMENTS deeply."];
    assert_eq!(templates(&resources), expect);
    assert_eq!(resources.commands.expand("/review:quick src/a.rs").text, "Look at src/a.rs quickly.");
    assert_eq!(resources.commands.expand("/review:deep a b").text, "Look at a b deeply.\n");
    assert_eq!(
        place.short(&resources.commands.templates.get("review:deep").unwrap().path),
        "home/agent/skills/review/prompts/deep.md"
    );
    assert_eq!(templates(&place.load(|inputs| inputs.without.prompts = true)), [""; 0]);
    assert_eq!(templates(&place.load(|inputs| inputs.without.skills = true)), ["own: own"]);
}
