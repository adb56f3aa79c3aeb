use pinch_llm::ids::ToolCallId;
use pinch_llm::message::Image;

use super::*;

fn start(name: &str, id: &str, args: Value) -> ToolStart {
    ToolStart { id: ToolCallId::new(id), name: name.into(), args: Arc::new(args.as_object().cloned().unwrap()) }
}

fn failing(text: &str) -> ToolOutput {
    ToolOutput { failed: true, ..ToolOutput::text(text) }
}

fn with_details(details: Value) -> ToolOutput {
    ToolOutput { details: Some(details), ..ToolOutput::text("text") }
}

/// Runs a call from start to end, and returns what is shown.
fn run(notes: &mut ToolNotes, name: &str, args: Value, output: &ToolOutput) -> Vec<Piece> {
    let (start, mut out) = (start(name, "c1", args), Pieces::default());
    notes.start(&start, &mut out);
    notes.update(&start, output, &mut out);
    notes.end(&start, output, &mut out);
    out.into_iter().collect()
}

/// Returns the texts and media shown to a person.
fn shown(pieces: &[Piece]) -> Vec<String> {
    let notes = pieces.iter().filter_map(|piece| match piece {
        Piece::ToolResult(note) => Some(note),
        _ => None,
    });
    notes.map(|note| if note.media_urls.is_empty() { note.text.clone() } else { note.media_urls.join(" ") }).collect()
}

/// Returns the members of each event for listeners.
fn events(pieces: &[Piece]) -> Vec<String> {
    let notes = pieces.iter().filter_map(|piece| match piece {
        Piece::Agent(note) => Some(&note.data),
        _ => None,
    });
    notes.map(|data| data.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_is_shown_depends_on_the_level() {
    let output = ToolOutput::text("one\ntwo");
    for (word, expected) in [
        ("off", vec![]),
        ("on", vec!["📖 Read: `a.txt`"]),
        ("full", vec!["📖 Read: `a.txt`", "📖 Read: `a.txt`\n```txt\none\ntwo\n```"]),
    ] {
        let level = Verbose::parse(word).unwrap();
        let mut notes = ToolNotes::new(level, ToolFormat::Markdown, None, MediaRoots::default());
        let pieces = run(&mut notes, "read", json!({"path": "a.txt"}), &output);
        assert_eq!(shown(&pieces), expected, "{word}");
        let mut now = ToolNotes::default().with_verbose_now(Some(VerboseNow::new(move || level)));
        assert_eq!(shown(&run(&mut now, "read", json!({"path": "a.txt"}), &output)), expected, "{word}");
    }
    assert_eq!(Verbose::parse("loud"), None);
}

#[test]
fn listeners_see_each_phase_of_a_call() {
    let mut notes = ToolNotes::default();
    let pieces = run(&mut notes, "read", json!({"path": "a.txt"}), &ToolOutput::text("x"));
    let expected = [
        "phase name toolCallId args",
        "phase name toolCallId partialResult",
        "phase name toolCallId isError meta result",
    ];
    assert_eq!(events(&pieces), expected);
    assert_eq!(notes.metas(), [ToolMeta { tool_name: "read".into(), meta: Some("a.txt".into()) }]);
}

#[test]
fn a_running_call_is_summarized() {
    let mut notes = ToolNotes::default();
    let exec = start("bash", "c1", json!({"command": "ls"}));
    notes.start(&exec, &mut Pieces::default());
    assert_eq!(notes.summary(&exec, CommandText::Raw), "🛠️ Exec: ls");
    assert_eq!(notes.summary(&exec, CommandText::default()), "🛠️ Exec");
    let read = start("read", "c2", json!({"path": "a"}));
    assert_eq!(notes.summary(&read, CommandText::default()), "📖 Read", "it has not started");
    notes.start(&read, &mut Pieces::default());
    assert_eq!(notes.summary(&read, CommandText::default()), "📖 Read: a");
}

#[test]
fn a_failure_is_resolved_by_a_success_on_the_same_target() {
    let mut notes = ToolNotes::default();
    run(&mut notes, "write", json!({"path": "a"}), &failing("no space"));
    run(&mut notes, "write", json!({"path": "b"}), &ToolOutput::text("ok"));
    run(&mut notes, "read", json!({"path": "a"}), &ToolOutput::text("ok"));
    assert_eq!(notes.last_error().unwrap().error.as_deref(), Some("no space"));
    run(&mut notes, "write", json!({"path": "a"}), &ToolOutput::text("ok"));
    assert_eq!(notes.last_error(), None);
    run(&mut notes, "read", json!({"path": "a"}), &failing("no"));
    run(&mut notes, "ls", json!({}), &ToolOutput::text("ok"));
    assert_eq!(notes.last_error(), None, "a failure without side effects is resolved by any success");
    let unknown = LastToolError { mutating: Some(true), fingerprint: None, ..LastToolError::default() };
    assert!(!is_resolved_by(&unknown, None));
}

#[test]
fn errors_are_one_line_from_wherever_they_are() {
    let long = "e".repeat(500);
    for (output, expected) in [
        (failing("first\nsecond"), Some("first")),
        (failing(" "), None),
        (failing(r#"{"error": {"message": " inner "}}"#), Some("inner")),
        (failing(r#"{"message": "", "reason": "why"}"#), Some("why")),
        (failing(r#"{"status": "timeout"}"#), Some("timeout")),
        (with_details(json!({"status": "Error", "error": "of the details"})), Some("of the details")),
        (with_details(json!({"status": "timeout"})), Some("timeout")),
        (failing(&long), Some(&*format!("{}…", "e".repeat(400)))),
    ] {
        let mut notes = ToolNotes::default();
        run(&mut notes, "read", json!({}), &output);
        assert_eq!(notes.last_error().unwrap().error.as_deref(), expected, "{output:?}");
    }
    let mut notes = ToolNotes::default();
    run(&mut notes, "read", json!({}), &with_details(json!({"status": "ok"})));
    assert_eq!(notes.last_error(), None);
}

#[test]
fn sent_messages_and_added_jobs_are_counted_unless_the_call_failed() {
    let mut notes = ToolNotes::default();
    let message = json!({"action": "send", "to": "ada", "message": "hello there", "mediaUrl": "./a.png"});
    run(&mut notes, "message", message.clone(), &failing("no"));
    assert!(!notes.sent().any());
    let pieces = run(&mut notes, "message", message, &ToolOutput::text("ok"));
    assert!(pieces.iter().any(|piece| matches!(piece, Piece::Sent(text) if text == "hello there")));
    assert_eq!(
        (notes.sent().texts(), notes.sent().media_urls()),
        (&["hello there".into()][..], &["./a.png".into()][..])
    );
    assert_eq!(notes.sent().targets().len(), 1);
    for (name, action, output) in [
        ("cron", "add", ToolOutput::text("ok")),
        ("cron", " add ", ToolOutput::text("ok")),
        ("cron", "list", ToolOutput::text("ok")),
        ("cron", "add", failing("no")),
        ("other", "add", ToolOutput::text("ok")),
    ] {
        run(&mut notes, name, json!({"action": action}), &output);
    }
    assert_eq!(notes.n_cron_adds(), 2);
    notes.reset();
    assert_eq!((notes.n_cron_adds(), notes.metas().len(), notes.sent().any()), (2, 0, false));
}

#[test]
fn media_is_shown_once_and_only_if_the_tool_names_it_in_its_details() {
    let mut notes = ToolNotes::default();
    let details =
        json!({"mediaUrl": "https://e.com/a.png", "mediaUrls": ["https://e.com/a.png", "https://e.com/b.png"]});
    let pieces = run(&mut notes, "image", json!({}), &with_details(details.clone()));
    assert_eq!(shown(&pieces), ["https://e.com/a.png https://e.com/b.png"]);
    let failed = ToolOutput { failed: true, ..with_details(details) };
    assert_eq!(shown(&run(&mut notes, "image", json!({}), &failed)), [""; 0]);
    assert_eq!(shown(&run(&mut notes, "image", json!({}), &ToolOutput::text("MEDIA:https://e.com/c.png"))), [""; 0]);
}

#[test]
fn results_for_listeners_have_no_images_and_no_long_texts() {
    let image = Block::Image(Image { data: "AAAA".into(), mime_type: "image/png".into() });
    let text = |n: usize| Block::text("x".repeat(n));
    let mut output = ToolOutput::text("short");
    output.content.extend([text(8000), text(8001), image].map(Into::into));
    let sent = sanitised(&output);
    let texts: Vec<usize> =
        sent["content"].as_array().unwrap().iter().filter_map(|block| Some(block["text"].as_str()?.len())).collect();
    assert_eq!(texts, [5, 8000, 8000 + "\n…(truncated)…".len()]);
    assert_eq!(sent["content"][3], json!({"type": "image", "mimeType": "image/png", "bytes": 4, "omitted": true}));
    let raw = sanitised_value(json!({"content": [{"type": "image", "data": "AAAA"}, {"type": "other", "text": 1}]}));
    assert_eq!(raw, json!({"content": [{"type": "image", "bytes": 4, "omitted": true}, {"type": "other", "text": 1}]}));
}

#[test]
fn progress_for_a_channel_is_found() {
    let progress = |visibility: &str| with_details(json!({"progress": {"text": "half", "visibility": visibility}}));
    assert_eq!(progress_of(&progress("channel")), Some("half"));
    assert_eq!(progress_of(&progress("log")), None);
    assert_eq!(progress_of(&ToolOutput::text("x")), None);
}

#[test]
fn settings_survive_a_compaction() {
    let roots = MediaRoots::new(["/srv/ada".into()], None).aliases(vec![("/workspace".into(), "/srv/ada".into())]);
    let texts = TextTable::default().replace(Phrase::NoOutput, "nothing").unwrap();
    let now = Some(VerboseNow::new(|| Verbose::Full));
    let mut notes = ToolNotes::new(Verbose::On, ToolFormat::Plain, Some("/home/ada".into()), roots)
        .with_texts(texts)
        .with_verbose_now(now.clone());
    let shows = |notes: &mut ToolNotes| {
        let output = with_details(json!({"mediaUrl": "/workspace/a.png"}));
        run(notes, "read", json!({"path": "/home/ada/a.txt"}), &output)
    };
    let before = shows(&mut notes);
    assert_eq!(shown(&before), ["📖 Read: ~/a.txt", "📖 Read: ~/a.txt\ntext", "/srv/ada/a.png"]);
    notes.reset();
    assert_eq!(shows(&mut notes), before);
    let notes_of_calls = before.iter().filter_map(|piece| match piece {
        Piece::ToolResult(note) => Some((note.call_id.as_str(), note.is_output)),
        _ => None,
    });
    assert_eq!(notes_of_calls.collect::<Vec<_>>(), [("c1", false), ("c1", true), ("c1", true)]);
    let mut fixed = ToolNotes::new(Verbose::On, ToolFormat::Plain, None, MediaRoots::default());
    fixed.reset();
    assert_eq!(shown(&run(&mut fixed, "read", json!({"path": "a"}), &ToolOutput::text("x"))), ["📖 Read: a"]);
    assert_eq!(format!("{now:?}"), "Some(VerboseNow { .. })");
}

#[test]
fn output_without_words_is_not_shown() {
    let mut notes = ToolNotes::new(Verbose::Full, ToolFormat::Plain, None, MediaRoots::default());
    assert_eq!(shown(&run(&mut notes, "read", json!({"path": "a"}), &ToolOutput::text(" \n"))), ["📖 Read: a"]);
}
