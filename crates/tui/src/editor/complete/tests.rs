use insta::assert_snapshot;

use super::*;
use crate::editor::{Editor, EditorEvent, TextPosition};
use crate::key::KeyPress;
use crate::keymap::Keymap;
use crate::theme::{ColorDepth, Palette};
use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::stdx::cancel::Cancel;
use std::sync::Arc;

/// An editor with completion in a directory.
struct CompletionHarness {
    editor: Editor,
    completion: Autocomplete,
    sources: CompletionSources,
    _dir: tempfile::TempDir,
}

const FILES: [&str; 7] = [
    "src/main.rs",
    "src/editor.rs",
    "src/editor/keys.rs",
    "docs/a b.md",
    "my dir/file one.txt",
    "Cargo.toml",
    ".gitignore",
];

fn prompt() -> CompletionHarness {
    let dir = tempfile::tempdir().unwrap();
    for path in FILES.iter().chain(&["target/debug/pinch"]) {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        if path.ends_with(".gitignore") {
            std::io::Write::write_all(&mut file, b"target/\n").unwrap();
        }
    }
    let model = CommandSuggestion {
        argument_hint: Some("[ref]".to_owned()),
        arguments: ["anthropic/claude-opus", "openai/gpt-5"]
            .map(|value| Completion {
                label: value.split_once('/').map(|(_, id)| id.to_owned()),
                description: value.split_once('/').map(|(provider, _)| provider.to_owned()),
                ..Completion::new(value)
            })
            .to_vec(),
        ..CommandSuggestion::new("model", "Choose a model")
    };
    let skill =
        CommandSuggestion { origin: Some("[p]".to_owned()), ..CommandSuggestion::new("skill:commit", "Write commits") };
    let commands = vec![
        CommandSuggestion::new("settings", "Settings"),
        model,
        CommandSuggestion::new("compact", "Compact"),
        skill,
    ];
    let files = Some(Arc::new(PathIndex::build(dir.path(), &Cancel::new()).unwrap()));
    let sources = CompletionSources { commands, files, ..CompletionSources::new(dir.path().to_owned()) };
    CompletionHarness { editor: Editor::new(), completion: Autocomplete::default(), sources, _dir: dir }
}

impl CompletionHarness {
    fn press(&mut self, press: &KeyPress) -> EditorEvent {
        let event = self.completion.handle(press, &Keymap::default(), &mut self.editor);
        self.answer();
        event
    }

    fn answer(&mut self) {
        while let Some(request) = self.completion.take_request() {
            let found = self.sources.complete(&request.query, &request.cancel);
            self.completion.offer(&request, found, &mut self.editor);
        }
    }

    fn keys(&mut self, keys: &[&str]) -> EditorEvent {
        let mut event = EditorEvent::Ignored;
        for keys in keys {
            match keys.parse() {
                Ok(key) if keys.len() > 1 => event = self.press(&KeyPress::of(key)),
                _ => keys.chars().for_each(|c| event = self.press(&KeyPress::typed(c))),
            }
        }
        event
    }

    fn shown(&self) -> String {
        let mut line = self.editor.lines()[0].clone();
        line.insert(self.editor.cursor().byte, '|');
        line
    }

    fn rows(&self, columns: usize) -> String {
        let rows = self.completion.rows(columns, &Palette::builtin("dark", ColorDepth::True));
        assert!(rows.iter().all(|row| crate::text::row_width(row) <= columns));
        rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

#[track_caller]
fn check(keys: &[&str], expected: &str) {
    let mut prompt = prompt();
    prompt.keys(keys);
    assert_eq!(prompt.shown(), expected, "{keys:?}");
}

#[test]
fn commands_are_suggested_after_a_slash() {
    let mut prompt = prompt();
    prompt.keys(&["/"]);
    assert_snapshot!(prompt.rows(60), @r"
    → settings      Settings
      model         [ref] — Choose a model
      compact       Compact
      skill:commit  [p] Write commits
    ");
    prompt.keys(&["mo"]);
    assert_snapshot!(prompt.rows(60), @r"
    → model  [ref] — Choose a model
    ");
    prompt.keys(&["x"]);
    assert!(!prompt.completion.is_open());
    prompt.keys(&["backspace", "backspace"]);
    assert_snapshot!(prompt.rows(20), @r"
    → model
      compact
      skill:commit
    ");
}

#[test]
fn tab_accepts_a_command_and_suggests_its_arguments() {
    let mut prompt = prompt();
    prompt.keys(&["/mod", "tab"]);
    assert_eq!(prompt.shown(), "/model |");
    assert_snapshot!(prompt.rows(60), @r"
    → claude-opus  anthropic
      gpt-5        openai
    ");
    prompt.keys(&["gpt"]);
    assert_snapshot!(prompt.rows(60), @r"
    → gpt-5  openai
    ");
    assert_eq!(prompt.keys(&["enter"]), EditorEvent::Changed);
    assert_eq!(prompt.shown(), "/model openai/gpt-5|");
    assert!(!prompt.completion.is_open());
    assert!(
        matches!(prompt.keys(&["enter"]), EditorEvent::Submit(submission) if submission.text == "/model openai/gpt-5")
    );
    prompt.keys(&["/model openai/gpt-5"]);
    assert!(matches!(prompt.keys(&["enter"]), EditorEvent::Submit(_)), "a complete text is submitted");
}

#[test]
fn enter_accepts_a_command_and_submits_it() {
    let mut prompt = prompt();
    assert!(
        matches!(prompt.keys(&["/comp", "enter"]), EditorEvent::Submit(submission) if submission.text == "/compact")
    );
    assert!(!prompt.completion.is_open() && prompt.editor.is_empty());
}

#[test]
fn the_selection_wraps_around_and_starts_at_the_typed_text() {
    check(&["/", "down", "tab"], "/model |");
    check(&["/", "up", "tab"], "/skill:commit |");
    check(&["/", "up", "down", "tab"], "/settings |");
    check(&["/", "pageDown", "tab"], "/skill:commit |");
    check(&["/", "pageDown", "pageUp", "tab"], "/settings |");
    check(&["/com", "tab"], "/compact |");
}

#[test]
fn escape_hides_the_suggestions_and_keeps_the_text() {
    let mut prompt = prompt();
    assert_eq!(prompt.keys(&["/mo", "escape"]), EditorEvent::Moved);
    assert!(!prompt.completion.is_open());
    assert_eq!(prompt.keys(&["escape"]), EditorEvent::Ignored);
    assert_eq!(prompt.shown(), "/mo|");
    prompt.keys(&["d"]);
    assert!(prompt.completion.is_open());
}

#[test]
fn files_are_suggested_after_an_at_sign() {
    let mut prompt = prompt();
    prompt.keys(&["see @"]);
    assert_snapshot!(prompt.rows(60), @r"
    → docs/
      my dir/
      src/
      .gitignore
      Cargo.toml
    ");
    prompt.keys(&["edi"]);
    assert_snapshot!(prompt.rows(60), @r"
    → editor/    src
      editor.rs  src
      keys.rs    src/editor
    ");
    prompt.keys(&["down", "tab"]);
    assert_eq!(prompt.shown(), "see @src/editor.rs |");
    assert!(!prompt.completion.is_open());
}

#[test]
fn completing_a_directory_continues_inside_it() {
    let mut prompt = prompt();
    prompt.keys(&["@src", "tab"]);
    assert_eq!(prompt.shown(), "@src/|");
    assert_snapshot!(prompt.rows(60), @r"
    → editor/    src
      editor.rs  src
      main.rs    src
    ");
    prompt.keys(&["key", "tab"]);
    assert_eq!(prompt.shown(), "@src/editor/keys.rs |");
}

#[test]
fn paths_with_blanks_are_quoted_without_doubling_quotes() {
    check(&["@my", "tab"], "@\"my dir/|\"");
    check(&["@my", "tab", "tab"], "@\"my dir/file one.txt\" |");
    check(&["@\"a b", "enter"], "@\"docs/a b.md\" |");
    check(&["cat my", "tab"], "cat \"my dir/|\"");
    check(&["cat my", "tab", "tab"], "cat \"my dir/file one.txt\"|");
    check(&["cat \"src/m", "tab"], "cat \"src/main.rs\"|");
}

#[test]
fn tab_completes_the_path_before_the_cursor() {
    check(&["cat Car", "tab"], "cat Cargo.toml|");
    check(&["cat ./sr", "tab"], "cat ./src/|");
    check(&["cat ./sr", "tab", "ma", "tab"], "cat ./src/main.rs|");
    check(&["x=src/e", "tab", "tab", "tab"], "x=src/editor/keys.rs|");
    check(&["cat zzz", "tab"], "cat zzz|");
    // An ignored file can be reached by its path.
    check(&["@target/de", "tab"], "@target/debug/|");
    let mut prompt = prompt();
    prompt.keys(&["cat ", "tab"]);
    assert_snapshot!(prompt.rows(30), @r"
    → docs/
      my dir/
      src/
      target/
      .gitignore
      (1/6)
    ");
    prompt.keys(&["s"]);
    assert_snapshot!(prompt.rows(30), @r"
    → src/
    ");
    prompt.keys(&[" "]);
    assert!(!prompt.completion.is_open());
}

#[test]
fn tab_after_a_slash_completes_a_command_or_else_a_path() {
    check(&["/set", "escape", "tab"], "/settings |");
    let mut prompt = prompt();
    let root = prompt.sources.root.display().to_string();
    prompt.keys(&[&format!("{root}/Car"), "tab"]);
    assert_eq!(prompt.shown(), format!("{root}/Cargo.toml|"));
    let (top, rest) = root[1..].split_once('/').unwrap_or((&root[1..], ""));
    assert!(!rest.is_empty());
    let mut prompt = self::prompt();
    prompt.keys(&[&format!("/{top}"), "escape", "tab"]);
    assert!(prompt.shown().starts_with(&format!("/{top}")), "{}", prompt.shown());
}

#[test]
fn moving_away_hides_the_suggestions() {
    let mut prompt = prompt();
    prompt.keys(&["see @src", "left"]);
    assert!(prompt.completion.is_open(), "the cursor is still in the word");
    prompt.keys(&["home"]);
    assert!(!prompt.completion.is_open());
}

#[test]
fn recalled_entries_and_vi_commands_suggest_nothing() {
    let mut prompt = prompt();
    prompt.editor.add_history("/mo");
    prompt.keys(&["up"]);
    assert!(!prompt.completion.is_open());
    prompt.editor.set_text("");
    prompt.editor.set_vi(true);
    prompt.keys(&["/mod", "escape", "escape", "x"]);
    assert_eq!((prompt.shown(), prompt.completion.is_open()), ("/m|o".to_owned(), false));
}

#[test]
fn answers_to_outdated_requests_are_ignored() {
    let mut prompt = prompt();
    let keymap = Keymap::default();
    prompt.completion.handle(&KeyPress::typed('@'), &keymap, &mut prompt.editor);
    let old = prompt.completion.take_request().unwrap();
    assert_eq!(old.debounce().as_millis(), 20);
    assert!(old.query.touches_files() && !old.cancel.is_cancelled());
    prompt.completion.handle(&KeyPress::typed('s'), &keymap, &mut prompt.editor);
    assert!(old.cancel.is_cancelled());
    let offered = prompt.completion.offer(&old, vec![Completion::new("src/")], &mut prompt.editor);
    assert_eq!((offered, prompt.completion.is_open()), (EditorEvent::Ignored, false));
    let new = prompt.completion.take_request().unwrap();
    prompt.editor.move_to(TextPosition::default());
    assert_eq!(prompt.completion.offer(&new, vec![Completion::new("src/")], &mut prompt.editor), EditorEvent::Ignored);
    assert!(prompt.completion.take_request().is_none(), "a request is made once");
}

#[test]
fn a_completion_is_one_undo_step() {
    let mut prompt = prompt();
    prompt.keys(&["/mod", "tab", "ctrl+-"]);
    assert_eq!(prompt.shown(), "/mod|");
}

#[test]
fn without_an_index_directories_are_listed() {
    let mut prompt = prompt();
    prompt.sources.files = None;
    prompt.keys(&["@sr", "tab", "mai", "tab"]);
    assert_eq!(prompt.shown(), "@src/main.rs |");
}

#[test]
fn long_lists_show_a_part_around_the_selection() {
    let mut prompt = prompt();
    prompt.sources.commands = (1..=12)
        .map(|n| CommandSuggestion::new(format!("command-with-a-rather-long-name-{n}"), "日本語\u{1b}[31m"))
        .collect();
    prompt.keys(&["/", "down", "down", "down", "down"]);
    assert_snapshot!(prompt.rows(60), @r"
      command-with-a-rather-long-name…  日本語
      command-with-a-rather-long-name…  日本語
    → command-with-a-rather-long-name…  日本語
      command-with-a-rather-long-name…  日本語
      command-with-a-rather-long-name…  日本語
      (5/12)
    ");
    prompt.completion.set_visible(1);
    prompt.keys(&["up", "up", "up", "up", "up"]);
    assert_snapshot!(prompt.rows(20), @r"
      command-with-a-ra…
      command-with-a-ra…
    → command-with-a-ra…
      (12/12)
    ");
    for columns in 1..5 {
        prompt.rows(columns);
    }
}

#[test]
fn suggestions_for_an_outdated_text_are_not_accepted() {
    let typed = |n_answered: usize| {
        let mut prompt = prompt();
        prompt.keys(&["/"]);
        assert!(prompt.completion.is_open());
        for (at, c) in "model".chars().enumerate() {
            let press = KeyPress::typed(c);
            prompt.completion.handle(&press, &Keymap::default(), &mut prompt.editor);
            if at < n_answered {
                prompt.answer();
            }
        }
        prompt
    };
    let key = |prompt: &mut CompletionHarness, key: &str| {
        prompt.completion.handle(&KeyPress::of(key.parse().unwrap()), &Keymap::default(), &mut prompt.editor)
    };
    for n_answered in 0..=5 {
        let mut prompt = typed(n_answered);
        let EditorEvent::Submit(sent) = key(&mut prompt, "enter") else { panic!("nothing is sent after {n_answered}") };
        assert_eq!(sent.text.trim_end(), "/model", "{n_answered}");
        let mut prompt = typed(n_answered);
        key(&mut prompt, "tab");
        prompt.answer();
        assert_eq!(prompt.editor.text(), "/model ", "{n_answered}");
    }
}

#[test]
fn arguments_without_known_values_come_from_extensions() {
    let mut known = CommandSuggestion::new("mouse", "");
    known.arguments = vec![Completion::new("on")];
    let commands = vec![known, CommandSuggestion::new("deploy", "")];
    let sources = CompletionSources { commands, ..CompletionSources::default() };
    let completed = ["mouse", "deploy", "unknown"].map(|name| sources.completes_arguments(name));
    assert_eq!(completed, [true, false, false]);
}
