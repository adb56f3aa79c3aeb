//! Enabling and disabling single resources: the resulting settings, and that they determine what loads.

use std::path::{Path, PathBuf};

use pinch_coding_agent::resources::{ListedResource, ProjectOverride, ResourceSwitches};
use pinch_coding_agent::services::{DirectorySettings, ServiceOptions, Services};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

struct SwitchFixture {
    dir: tempfile::TempDir,
}

impl SwitchFixture {
    fn new(user: &Value, project: &Value) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["home/agent/skills/a", "home/.agents/skills/c", "w/.pi/skills/own", "pkg/skills/p", "pkg/skills/q"]
        {
            place.write(&format!("{name}/SKILL.md"), "---\ndescription: d\n---\n");
        }
        place.write("home/agent/prompts/hello.md", "hi");
        place.write("home/agent/settings.json", &user.to_string());
        place.write("w/.pi/settings.json", &project.to_string());
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

    fn options(&self) -> ServiceOptions {
        let host = Host::builder().home(self.path("home")).build();
        let mut options = ServiceOptions::new(host, self.path("home/agent"));
        options.trust = Some(true);
        options
    }

    fn switches(&self) -> ResourceSwitches {
        let (directory, problems) = DirectorySettings::read(&self.options(), &self.path("w"));
        assert_eq!(problems, [""; 0]);
        directory.resource_switches().unwrap()
    }

    fn settings(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn user(&self) -> Value {
        self.settings("home/agent/settings.json")
    }

    fn project(&self) -> Value {
        self.settings("w/.pi/settings.json")
    }

    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap_or(path).display().to_string()
    }

    /// Returns the loaded skills, in order.
    fn loaded(&self) -> Vec<String> {
        let services = Services::load(&self.options(), &self.path("w"));
        let resources = services.resources();
        let mut names: Vec<String> = resources.skills().iter().map(|skill| skill.name.clone()).collect();
        names.sort();
        names
    }

    fn lines(&self, list: &[ListedResource]) -> Vec<String> {
        let sign = |one: &ListedResource| if one.is_enabled { '+' } else { '-' };
        list.iter().map(|one| format!("{}{}", sign(one), self.short(&one.path))).collect()
    }

    #[track_caller]
    fn toggle(&self, name: &str, is_enabled: bool) {
        let mut switches = self.switches();
        let at = switches.global().iter().position(|one| self.short(&one.path) == name).unwrap();
        switches.set_global(at, is_enabled).unwrap();
        assert_eq!(self.switches().global(), switches.global(), "what is shown is what is read again");
    }

    #[track_caller]
    fn set_override(&self, name: &str, state: ProjectOverride) {
        let mut switches = self.switches();
        let at = switches.project().iter().position(|one| self.short(&one.path) == name).unwrap();
        switches.set_override(at, state).unwrap();
        assert_eq!(switches.override_of(&switches.project()[at]), state);
        let now = switches.project()[at].is_enabled;
        let again = self.switches();
        let read = again.project().iter().find(|one| self.short(&one.path) == name).unwrap();
        assert_eq!((read.is_enabled, again.override_of(read)), (now, state), "what is shown is what is read again");
    }
}

#[test]
fn disabled_resources_are_listed_and_the_global_list_excludes_the_project() {
    let place = SwitchFixture::new(
        &json!({"skills": ["-skills/a/SKILL.md"], "packages": [{"source": "../../pkg", "skills": ["-skills/p"]}]}),
        &json!({}),
    );
    let switches = place.switches();
    let global = [
        "-home/agent/skills/a/SKILL.md",
        "+home/.agents/skills/c/SKILL.md",
        "-pkg/skills/p/SKILL.md",
        "+pkg/skills/q/SKILL.md",
        "+home/agent/prompts/hello.md",
    ];
    assert_eq!(place.lines(switches.global()), global);
    assert_eq!(place.lines(switches.project())[..1], ["+w/.pi/skills/own/SKILL.md"]);
    assert_eq!(place.lines(switches.project())[1..], global);
    assert!(switches.has_project());
    assert_eq!(place.loaded(), ["c", "own", "q"]);
}

#[test]
fn a_switch_replaces_the_setting_for_the_file_and_keeps_the_rest() {
    let place = SwitchFixture::new(
        &json!({"z": 1, "prompts": ["!hello.md", "more.md", "+prompts/hello.md"], "packages": ["npm:gone", "../../pkg"]}),
        &json!({}),
    );
    place.toggle("home/agent/prompts/hello.md", false);
    assert_eq!(place.user()["prompts"], json!(["!hello.md", "more.md", "-prompts/hello.md"]));
    place.toggle("home/agent/prompts/hello.md", true);
    assert_eq!(place.user()["prompts"], json!(["!hello.md", "more.md", "+prompts/hello.md"]));
    place.toggle("home/.agents/skills/c/SKILL.md", false);
    assert_eq!(place.user()["skills"], json!(["-skills/c/SKILL.md"]));
    place.toggle("pkg/skills/q/SKILL.md", false);
    let filtered = json!(["npm:gone", {"source": "../../pkg", "skills": ["-skills/q/SKILL.md"]}]);
    assert_eq!((&place.user()["packages"], &place.user()["z"]), (&filtered, &json!(1)));
    assert_eq!(place.loaded(), ["a", "own", "p"]);
}

#[test]
fn a_single_resource_of_a_disabled_package_can_be_enabled() {
    let place =
        SwitchFixture::new(&json!({"packages": [{"source": "../../pkg", "skills": [], "prompts": []}]}), &json!({}));
    place.toggle("pkg/skills/q/SKILL.md", true);
    let expected = json!([{"source": "../../pkg", "skills": ["!**", "+skills/q/SKILL.md"], "prompts": []}]);
    assert_eq!(place.user()["packages"], expected);
    assert_eq!(place.loaded(), ["a", "c", "own", "q"]);
}

#[test]
fn a_project_overrides_the_user_and_can_revert_it() {
    let place = SwitchFixture::new(&json!({"packages": ["../../pkg"]}), &json!({"theme": "x"}));
    let user = place.user();
    let a = place.path("home/agent/skills/a/SKILL.md").display().to_string();
    place.set_override("home/agent/skills/a/SKILL.md", ProjectOverride::Unload);
    assert_eq!(place.project(), json!({"theme": "x", "skills": [a, format!("-{a}")]}));
    assert_eq!(place.loaded(), ["c", "own", "p", "q"]);
    place.set_override("home/agent/skills/a/SKILL.md", ProjectOverride::Load);
    assert_eq!(place.project()["skills"], json!([a, format!("+{a}")]));
    place.set_override("home/agent/skills/a/SKILL.md", ProjectOverride::Inherit);
    assert_eq!(place.project(), json!({"theme": "x", "skills": []}));
    place.set_override("w/.pi/skills/own/SKILL.md", ProjectOverride::Unload);
    assert_eq!(place.project()["skills"], json!(["-skills/own/SKILL.md"]));
    assert_eq!(place.loaded(), ["a", "c", "p", "q"]);
    assert_eq!(place.user(), user, "the user's settings stay");
}

#[test]
fn a_project_changes_what_a_user_package_loads() {
    let place = SwitchFixture::new(
        &json!({"packages": [{"source": "../../pkg", "skills": ["-skills/p/SKILL.md"]}]}),
        &json!({}),
    );
    assert_eq!(place.loaded(), ["a", "c", "own", "q"]);
    place.set_override("pkg/skills/p/SKILL.md", ProjectOverride::Load);
    let delta = json!([{"source": "../../pkg", "autoload": false, "skills": ["+skills/p/SKILL.md"]}]);
    assert_eq!(place.project()["packages"], delta);
    assert_eq!(place.loaded(), ["a", "c", "own", "p", "q"]);
    place.set_override("pkg/skills/q/SKILL.md", ProjectOverride::Unload);
    assert_eq!(place.loaded(), ["a", "c", "own", "p"]);
    place.set_override("pkg/skills/p/SKILL.md", ProjectOverride::Inherit);
    assert_eq!(place.loaded(), ["a", "c", "own"]);
    place.set_override("pkg/skills/q/SKILL.md", ProjectOverride::Inherit);
    assert_eq!(place.project()["packages"], json!([]), "an entry that changes nothing is removed");
    assert_eq!(place.loaded(), ["a", "c", "own", "q"]);
}

#[test]
fn a_damaged_document_is_reported_and_kept() {
    let place = SwitchFixture::new(&json!({}), &json!({}));
    let mut switches = place.switches();
    place.write("home/agent/settings.json", "{oops");
    let before = switches.global().to_vec();
    assert!(switches.set_global(0, false).is_err());
    assert_eq!(switches.global(), before);
    assert_eq!(std::fs::read_to_string(place.path("home/agent/settings.json")).unwrap(), "{oops");
    place.write("home/agent/settings.json", r#"{"skills": 3}"#);
    assert!(switches.set_global(0, false).unwrap_err().to_string().contains("must be a list"));
}
