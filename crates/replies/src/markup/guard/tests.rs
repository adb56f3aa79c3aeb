use proptest::prelude::*;

use super::*;

fn shown<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    let (mut guard, mut out) = (MarkupGuard::default(), Pieces::new());
    parts.into_iter().for_each(|part| guard.push(Piece::Visible(part.to_owned()), &mut out));
    guard.finish(&mut out);
    let texts = out.into_iter().filter_map(|piece| match piece {
        Piece::Visible(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn by_chars(text: &str) -> String {
    shown(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]))
}

#[test]
fn markup_is_removed_however_the_text_is_split() {
    for (text, expect) in [
        ("Hello <tool_call>{\"name\": \"x\", \"a\": \"</tool_call>\"}</tool_call> there.", "Hello there."),
        ("a <tool_call>{\"name\"", "a "),
        ("a <TOOL_CALL>{}</TOOL_CALL>b", "a b"),
        ("The tag <tool_call> wraps calls </tool_call>.", "The tag <tool_call> wraps calls </tool_call>."),
        ("<relevant-memories>secret</relevant-memories>Hi", "Hi"),
        ("<relevant_memories x>secret", ""),
        ("Text.<minimax:tool_call><invoke name=\"x\"><p>1</p></invoke></minimax:tool_call>More.", "Text.More."),
        ("Use <invoke a> freely", "Use <invoke a> freely"),
        ("[TOOL_CALL]{tool => 'x', args => {}}[/TOOL_CALL]b", "b"),
        ("Write [TOOL_CALL] first.", "Write [TOOL_CALL] first."),
        ("a\n[Tool Call: exec (ID: 1)]\nArguments: {\"a\": \"]}\"}\nb", "a\nb"),
        ("a [Tool Result for ID 1]\noutput", "a "),
        ("[Historical context: x]b", "b"),
        ("[a](b) [tool", "[a](b) [tool"),
        (
            "Hi<|channel|>analysis<|message|>Plan<|end|><|start|>assistant<|channel|>final<|message|>Answer<|return|>",
            "Hi Answer",
        ),
        ("Hi <|channel>thought\nplan<channel|>there", "Hi there"),
        ("a <| b |> c <|x", "a <| b |> c <|x"),
        ("Hi\n\n  🛠️ Exec: ls\n📖 Read: ~/ä.rs:1-20\n\nDone", "Hi\n\n  \nDone"),
        ("🛠️ Exec: ls -la", ""),
        ("🛠️ Tools are nice\ncomment", "🛠️ Tools are nice\ncomment"),
        ("commentary to=functions.exec json {}\nb", "b"),
        ("a\n<<<BEGIN X>>>\nsecret\n<<<END X>>>\nb", "a\nb"),
        ("a\n<<<BEGIN X>>>\nb", "a\n<<<BEGIN X>>>\nb"),
        (
            "`<tool_call>{}</tool_call>`\n```\ntool_call: x\n```\n",
            "`<tool_call>{}</tool_call>`\n```\ntool_call: x\n```\n",
        ),
    ] {
        assert_eq!(shown([text]), expect, "{text}");
        assert_eq!(by_chars(text), expect, "by characters: {text}");
    }
}

#[test]
fn text_before_and_after_markup_is_shown_at_once() {
    let (mut guard, mut out) = (MarkupGuard::default(), Pieces::new());
    for part in ["Hello <tool", "_call>{}</tool_call", ">b", "c <"] {
        guard.push(Piece::Visible(part.to_owned()), &mut out);
        out.push(Piece::Wake);
    }
    let visible = |text: &str| Piece::Visible(text.to_owned());
    let expect = [visible("Hello "), Piece::Wake, Piece::Wake, visible("b"), Piece::Wake, visible("c "), Piece::Wake];
    assert_eq!(format!("{out:?}"), format!("{expect:?}"));
}

/// Returns what is shown of a text that arrives by characters and has not ended.
fn so_far(text: &str) -> String {
    let (mut guard, mut out) = (MarkupGuard::default(), Pieces::new());
    text.chars().for_each(|c| guard.push(Piece::Visible(c.to_string()), &mut out));
    let texts = out.into_iter().filter_map(|piece| match piece {
        Piece::Visible(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

#[test]
fn complete_markup_holds_nothing_back() {
    for (text, expect) in [
        ("a<minimax:tool_call>b", "ab"),
        ("a</minimax:tool_call>b", "ab"),
        ("<minimax:tool_call><invoke x>1</invoke>b", "b"),
        ("<minimax:tool_call><invoke>1</b></invoke>b", "b"),
        ("<minimax:tool_call><b>1</b> <invoked>2</invoke>c", "<b>1</b> <invoked>2</invoke>c"),
        ("use <invoke a> freely", "use <invoke a> freely"),
        ("<minimax:tools>a", "<minimax:tools>a"),
        ("<relevant-memories>a</relevant-memories>b", "b"),
        ("<relevant_memories a>b</b></relevant-memories>d", "d"),
        ("a</relevant_memories>b", "ab"),
        ("<relevant>a</relevant>", "<relevant>a</relevant>"),
        ("<relevant-memories>a", ""),
        ("<relevant-memories>a</b> and some more words</relevant-memories>d", "d"),
        ("<tool_call>{\"a\": \"</tool_call>\"}</tool_call>b", "b"),
        ("<tool_call>{\"a\": \"\\\"</tool_call>\"}</tool_call>b", "b"),
        ("<tool_call/>a< / tool_call >b", "ab"),
        ("<tool_call>a</tool_call></tool_call>b", "<tool_call>a</tool_call>b"),
        ("<tool_call><tool_call>a</tool_call></tool_call></tool_call>b", "b"),
        ("<tool_result>a</tool_call></tool_result>b", "b"),
        ("<tool_call><tool_name>a</tool_name></tool_call>b", "b"),
        ("<tool_call> <tool_x", "<tool_call> <tool_x"),
        ("<function_call><", ""),
        ("<functional>a", "<functional>a"),
        ("a <tool_call>{}</tool_call> b", "a b"),
        ("a<tool_call>{}</tool_call> b", "a b"),
        ("a <tool_call>{}</tool_call>  b", "a  b"),
        ("[TOOL_CALL]{tool => 'x', args => {}}[/TOOL_CALL]b", "b"),
        ("[TOOL_RESULT]\n{}[/TOOL_CALL][/TOOL_RESULT]b", "b"),
        ("[TOOL_RESULT ]{}[/TOOL_RESULT]b", "b"),
        ("[TOOL_CALL] a [TOOL_CALL] b", "[TOOL_CALL] a "),
        ("[/TOOL_CALL] b", "[/TOOL_CALL] b"),
        ("[tool_cal", ""),
        ("[tool_calendar]", "[tool_calendar]"),
        ("a\n[Tool Call: exec (ID: 1)]\nArguments: {\"a\": \"]}\\\"\"}\nb", "a\nb"),
        ("[Tool Call: x]\n\nb", "\nb"),
        ("[Tool Call: x] b", " b"),
        ("[Tool Call: x]\nArguments: none\nb", "b"),
        ("[Tool Call: x]\nArguments: \"a\"b", "b"),
        ("[Tool Call: x]\nArguments: [1, {\"a\": 2}]b", "b"),
        ("[Tool Call: x]\nArg", ""),
        ("[Tool Result for ID 1]\na\n[Tool Call: x]\r\nb", "b"),
        ("[Historical context: a]b", "b"),
        ("a [Historical context: b]\nd", "a \nd"),
        ("a\n[Historical context: b]\r\n\nd", "a\n\nd"),
        ("[a]", "[a]"),
        ("Hi<|channel|>analysis<|message|>a<|end|>b", "Hi b"),
        ("Hi <|channel|>final<|message|>a", "Hi a"),
        ("<|start|>assistant<|message|>b", "b"),
        ("<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}<|call|>b", "b"),
        ("<|channel|>a < b <| c", ""),
        ("<|end|>a < b", "a < b"),
        ("<|channel>a<channel|>b", "b"),
        ("<\u{ff5c}end\u{ff5c}>a <|>b", "a <|>b"),
        ("tool_call: a\nb", "b"),
        ("tool_calls are\nb", "tool_calls are\nb"),
        ("a\n\ntool_call: a\n\nb", "a\n\nb"),
        ("a\ntool_call: a\n\nb", "a\n\nb"),
        ("tool_call: a\n\n\n  b", "  b"),
        ("tool_call: a\nb\n\n\nd", "b\n\n\nd"),
        ("a\ntool_call: a\n\n\nb", "a\n\n\nb"),
        ("commentary to=a\nb", "b"),
        ("commentary on", "commentary on"),
        ("<<<BEGIN X>>>\na\n<<<END X>>>\nb", "b"),
        ("<<<BEGIN X\nb", "<<<BEGIN X\nb"),
        ("<<<BEGUN", "<<<BEGUN"),
    ] {
        assert_eq!(so_far(text), expect, "{text}");
    }
}

#[test]
fn a_long_name_between_tokens_is_text() {
    for (n, is_shown) in [(120, false), (400, true)] {
        let text = format!("<|channel|>{}<|message|>b", "a".repeat(n));
        assert_eq!(so_far(&text).contains('a'), is_shown, "{n}");
        assert_eq!(strip_channels(&text).contains('a'), is_shown, "{n}");
    }
    for (n, is_token) in [(64, true), (65, false)] {
        let text = format!("<|{}|>b", "a".repeat(n));
        let expect = if is_token { "b" } else { &text };
        assert_eq!((so_far(&text).as_str(), &*strip_channels(&text)), (expect, expect));
    }
}

#[test]
fn a_new_answer_begins_without_the_markup_of_the_last() {
    for begin in [Piece::MessageStart, Piece::Restart] {
        let (mut guard, mut out) = (MarkupGuard::default(), Pieces::new());
        for piece in [Piece::Visible("a <tool_call>{".to_owned()), begin.clone(), Piece::Visible("b".to_owned())] {
            guard.push(piece, &mut out);
        }
        let visible = |text: &str| Piece::Visible(text.to_owned());
        assert_eq!(out, [visible("a "), begin, visible("b")]);
    }
}

#[test]
fn the_end_of_a_text_decides_about_markup() {
    for end in [Piece::TextEnd, Piece::Flush, Piece::MessageEnd("".into())] {
        let (mut guard, mut out) = (MarkupGuard::default(), Pieces::new());
        for piece in [Piece::Visible("a [tool_".to_owned()), end.clone()] {
            guard.push(piece, &mut out);
        }
        let visible = |text: &str| Piece::Visible(text.to_owned());
        assert_eq!(out, [visible("a "), visible("[tool_"), end]);
    }
}

#[test]
fn a_megabyte_of_open_markup_takes_linear_time() {
    for part in [
        "<tool_call>{\"a\": 1, ]]]",
        "[TOOL_RESULT]{ ] ] ] ",
        "[Tool Call: x] ",
        "<|channel|>ana ",
        "<<<BEGIN>>>\n",
        "📖 Read: x/y ",
    ] {
        let text = format!("{part}{}", part.repeat(40_000));
        assert!(
            shown(text.as_bytes().chunks(18).map(|piece| std::str::from_utf8(piece).unwrap_or("é"))).len()
                < text.len() + 1
        );
    }
}

#[test]
fn a_megabyte_that_arrives_at_once_takes_linear_time() {
    let block = "[TOOL_CALL]{tool => 'x', args => {}}[/TOOL_CALL]";
    let unclosed = "[tool_call x ";
    for part in ["[TOOL_CALL] a ", block, unclosed, "<|channel|>ana ", "[x](y) ", "<b> ", "tool_cal: x\n"] {
        let text = part.repeat(1 << 20 >> part.len().ilog2());
        assert!(shown([&*text]).len() <= text.len());
    }
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_text_is_split(
        words in prop::collection::vec(prop::sample::select(vec![
            "word", " ", "\n", "\n\n", "`", "```\n", "<tool_call>", "</tool_call>", "{\"name\": \"x\"}", "{", "}", "<tool_result>",
            "<relevant-memories>", "</relevant-memories>", "<minimax:tool_call>", "<invoke x>", "</invoke>", "[TOOL_CALL]",
            "[/TOOL_CALL]", "tool => 'x', args =>", "[Tool Call: x]", "\nArguments: ", "[Tool Result for ID 1]", "[Historical context: y]",
            "<|channel|>", "analysis", "<|message|>", "<|end|>", "<|channel>", "<channel|>", "🛠️ Exec: ls", "tool_call: x",
            "<<<BEGIN X>>>\n", "<<<END X>>>\n", "<", "[", "é",
        ]), 0..24),
    ) {
        let text = words.concat();
        let whole = shown([&*text]);
        prop_assert_eq!(&by_chars(&text), &whole, "{:?}", text);
        prop_assert_eq!(&shown(words.iter().copied()), &whole, "{:?}", text);
    }

    #[test]
    fn prose_is_unchanged(words in prop::collection::vec(prop::sample::select(vec![
        "word", " ", "\n", "\n\n", "`", "```\n", "<b>", "a < b", "[x](y)", "- [ ] item\n", "🛠️ ", "tool", "The call: ", "<|", "é",
    ]), 0..30)) {
        let text = words.concat();
        prop_assert_eq!(&by_chars(&text), &text);
    }
}
