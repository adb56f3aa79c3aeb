use std::path::PathBuf;

use pinch_coding_agent::services::{DirectorySettings, ServiceOptions};
use serde_json::{Value, json};

use super::*;
use crate::key::{Key, KeyPress};
use crate::theme::ColorDepth;

struct ListFixture {
    dir: tempfile::TempDir,
}

impl ListFixture {
    fn new(user: &Value, project: Option<&Value>) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["agent/skills/beta", "agent/skills/Alpha", ".agents/skills/shared", "pkg/skills/p"] {
            place.write(&format!("{name}/SKILL.md"), "---\ndescription: d\n---\n");
        }
        for name in ["agent/prompts/hello.md", "agent/extensions/one/index.ts", "agent/extensions/two.ts"] {
            place.write(name, "x");
        }
        place.write("agent/settings.json", &user.to_string());
        if let Some(project) = project {
            place.write("w/.pi/settings.json", &project.to_string());
            place.write("w/.pi/prompts/ours.md", "x");
        }
        std::fs::create_dir_all(place.path("w")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
    }

    fn switches(&self, trust: bool) -> ResourceSwitches {
        let host = Host::builder().home(self.path("")).build();
        let mut options = ServiceOptions::new(host, self.path("agent"));
        options.trust = Some(trust);
        DirectorySettings::read(&options, &self.path("w")).0.resource_switches().unwrap()
    }

    fn settings(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

/// A list, and keys pressed in it.
struct Typist<'a> {
    list: Configure<'a>,
    rows: usize,
}

impl<'a> Typist<'a> {
    fn new(place: &ListFixture, switches: &'a mut ResourceSwitches, scope: WriteScope) -> Self {
        let host = Host::builder().home(place.path("")).build();
        let view = ConfigureView::new(switches.has_project());
        let mut list = Configure { switches, host, view, scope };
        list.fill();
        Self { list, rows: 40 }
    }

    fn press(&mut self, keys: &[&str]) -> ViewEvent {
        let theme = Palette::builtin("dark", ColorDepth::None);
        let keymap = Keymap::default();
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: self.rows, columns: 60, now_ms: 0 };
        let mut last = ViewEvent::Stay;
        for key in keys {
            let press = match key.len() {
                1 => KeyPress::typed(key.chars().next().unwrap()),
                _ => KeyPress::of(key.parse::<Key>().unwrap()),
            };
            last = self.list.view.key(&press, cx);
            match last {
                ViewEvent::Switch(at) => self.list.switch(at),
                ViewEvent::ChangeScope => self.list.change_scope(),
                ViewEvent::Stay | ViewEvent::Close => {}
            }
        }
        last
    }

    fn shown(&mut self) -> String {
        self.shown_in(60)
    }

    fn shown_in(&mut self, columns: usize) -> String {
        let theme = Palette::builtin("dark", ColorDepth::None);
        let keymap = Keymap::default();
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: self.rows, columns, now_ms: 0 };
        let (rows, _) = self.list.view.rows(cx);
        assert!(rows.len() <= self.rows && rows.iter().all(|row| crate::text::row_width(row) <= columns));
        rows.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect()
    }
}

#[test]
fn resources_are_listed_by_package_and_location() {
    let place = ListFixture::new(&json!({"packages": ["../pkg"], "skills": ["-skills/beta"]}), None);
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    insta::assert_snapshot!(typist.shown());
    typist.press(&["h", "e", "l"]);
    insta::assert_snapshot!(typist.shown());
    assert_eq!(typist.press(&["x", "space"]), ViewEvent::Stay, "there is nothing to switch");
    assert!(typist.shown().contains("No resources found"));
    assert_eq!(typist.press(&["escape"]), ViewEvent::Close);
}

#[test]
fn space_and_enter_toggle_and_write_immediately() {
    let place = ListFixture::new(&json!({}), None);
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    typist.press(&["space", "down", "down", "enter"]);
    let written = json!({"skills": ["-skills/shared/SKILL.md"], "extensions": ["-extensions/two.ts"]});
    assert_eq!(place.settings("agent/settings.json"), written);
    typist.press(&["enter"]);
    assert_eq!(place.settings("agent/settings.json")["extensions"], json!(["+extensions/two.ts"]));
    assert!(typist.shown().contains("→     [x] two.ts"), "{}", typist.shown());
    // A damaged document is reported, and its previous state is shown.
    place.write("agent/settings.json", "{oops");
    typist.press(&["enter"]);
    let shown = typist.shown();
    assert!(shown.contains("→     [x] two.ts") && shown.contains("is not valid JSON"), "{shown}");
    typist.press(&["up"]);
    assert!(!typist.shown().contains("JSON"));
}

#[test]
fn a_project_overrides_inherits_and_leaves_the_user_alone() {
    let place = ListFixture::new(&json!({"packages": ["../pkg"]}), Some(&json!({})));
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    assert!(!typist.shown().contains("ours.md"), "the user's settings say nothing of the project");
    typist.press(&["tab", "space", "down", "space", "space"]);
    insta::assert_snapshot!(typist.shown());
    let project = place.settings("w/.pi/settings.json");
    assert_eq!(
        project["packages"],
        json!([{"source": "../../pkg", "autoload": false, "skills": ["-skills/p/SKILL.md"]}])
    );
    typist.press(&["space"]);
    assert_eq!(place.settings("w/.pi/settings.json")["skills"], json!([]));
    assert_eq!(place.settings("agent/settings.json"), json!({"packages": ["../pkg"]}));
    typist.press(&["tab"]);
    assert!(typist.shown().contains("Global resources"));
}

#[test]
fn an_untrusted_project_is_not_shown() {
    let place = ListFixture::new(&json!({}), Some(&json!({})));
    let mut switches = place.switches(false);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    typist.press(&["tab"]);
    let shown = typist.shown();
    assert!(shown.contains("Global resources") && !shown.contains("tab project"), "{shown}");
}

#[test]
fn page_keys_stop_at_resources_in_a_small_window() {
    let place = ListFixture::new(&json!({"packages": ["../pkg"]}), None);
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    typist.rows = 12;
    typist.press(&["pageDown"]);
    insta::assert_snapshot!(typist.shown());
    typist.press(&["pageDown", "pageDown", "pageDown", "end", "down"]);
    assert!(typist.shown().contains("(7/7)"), "{}", typist.shown());
    typist.press(&["pageUp", "pageUp", "pageUp", "pageUp", "up", "home"]);
    assert!(typist.shown().contains("(1/7)"), "{}", typist.shown());
}

#[test]
fn the_list_fits_on_screens_of_three_sizes() {
    let place = ListFixture::new(&json!({"packages": ["../pkg"]}), None);
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    let shown = [(80, 24), (200, 60), (40, 10)].map(|(columns, rows)| {
        typist.rows = rows;
        let shown = typist.shown_in(columns);
        assert!(shown.lines().count() <= rows, "{shown}");
        shown
    });
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_notice_leaves_room_for_the_list() {
    let place = ListFixture::new(&json!({"packages": ["../pkg"]}), None);
    let mut switches = place.switches(true);
    let mut typist = Typist::new(&place, &mut switches, WriteScope::Global);
    typist.list.view.set_notice(crate::tmux::TmuxKeys::Off.remedy());
    for (columns, rows) in [(80, 24), (40, 10)] {
        typist.rows = rows;
        insta::assert_snapshot!(format!("notice_{columns}x{rows}"), typist.shown_in(columns));
    }
    // At all sizes, the selected resource is on the screen.
    for (columns, rows) in [(80, 24), (60, 16), (40, 10), (40, 8)] {
        typist.rows = rows;
        typist.press(&["pageDown", "up"]);
        assert!(typist.shown_in(columns).contains('→'), "{columns}x{rows}");
    }
}
