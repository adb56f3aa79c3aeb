//! Tests of pasted texts and images.

use super::*;

fn lines(n: usize) -> String {
    vec!["line"; n].join("\n")
}

#[test]
fn long_pastes_become_markers() {
    for (text, marker) in [
        (lines(10), None),
        (lines(11), Some("[paste #1 +11 lines]")),
        ("x".repeat(1000), None),
        ("é".repeat(1001), Some("[paste #1 1001 chars]")),
        (lines(300), Some("[paste #1 +300 lines]")),
    ] {
        let mut editor = editor("|");
        editor.paste(&text);
        assert_eq!(editor.lines().join("\n"), marker.unwrap_or(&text));
        assert_eq!(editor.text(), text);
        assert_eq!(editor.submit().text, text);
    }
}

#[test]
fn a_path_pasted_after_a_word_is_preceded_by_a_blank() {
    for (before, text, expected) in [
        ("see|", "/a/b", "see /a/b|"),
        ("see |", "/a/b", "see /a/b|"),
        ("x_|", "~/a", "x_ ~/a|"),
        ("é|", "./a", "é ./a|"),
        ("(|", "/a", "(/a|"),
        ("see|", "a/b", "seea/b|"),
    ] {
        let mut editor = editor(before);
        editor.paste(text);
        assert_eq!(shown(&editor), expected);
    }
}

#[test]
fn a_marker_is_one_character() {
    let text = lines(11);
    let pasted = |before: &str| {
        let mut editor = editor(before);
        editor.paste(&text);
        editor
    };
    for (keys, expected) in [
        ("left", "a|[paste #1 +11 lines]b"),
        ("left right", "a[paste #1 +11 lines]|b"),
        ("backspace", "a|b"),
        ("left delete", "a|b"),
        ("alt+left", "a|[paste #1 +11 lines]b"),
        ("home alt+right", "a|[paste #1 +11 lines]b"),
        ("home alt+right alt+right", "a[paste #1 +11 lines]|b"),
        ("ctrl+w", "a|b"),
        ("home ctrl+] \"p\"", "|a[paste #1 +11 lines]b"),
        ("end ctrl+alt+] \"l\"", "a[paste #1 +11 lines]b|"),
    ] {
        let mut editor = pasted("a|b");
        press(&mut editor, keys);
        assert_eq!(shown(&editor), expected, "{keys}");
    }
}

#[test]
fn moving_up_into_a_marker_lands_before_it_and_remembers_the_target_column() {
    let mut editor = editor("ab|");
    editor.paste(&lines(11));
    press(&mut editor, "\"cd\" shift+enter \"0123456789\" shift+enter \"0123456789\" up up");
    assert_eq!(shown(&editor), "ab|[paste #1 +11 lines]cd\n0123456789\n0123456789");
    press(&mut editor, "down");
    assert_eq!(shown(&editor), "ab[paste #1 +11 lines]cd\n0123456789|\n0123456789");
}

#[test]
fn text_that_looks_like_an_unknown_marker_is_plain_text() {
    check("[paste #9 +20 lines]|", "backspace", "[paste #9 +20 lines|");
    assert_eq!(editor("[paste #9 +20 lines]").text(), "[paste #9 +20 lines]");
}

#[test]
fn numbering_restarts_with_each_submission() {
    let mut editor = editor("|");
    editor.paste(&lines(11));
    editor.paste(&lines(12));
    assert_eq!(shown(&editor), "[paste #1 +11 lines][paste #2 +12 lines]|");
    assert_eq!(editor.submit().text, lines(11) + &lines(12));
    editor.paste(&lines(13));
    assert_eq!(shown(&editor), "[paste #1 +13 lines]|");
}

#[test]
fn markers_keep_their_text_in_undo_in_the_ring_and_in_the_history() {
    let mut editor = editor("|");
    editor.paste(&lines(11));
    press(&mut editor, "backspace");
    editor.paste(&lines(12));
    press(&mut editor, "ctrl+- ctrl+-");
    assert_eq!(editor.text(), lines(11));
    let submission = editor.submit();
    editor.remember(&submission);
    editor.paste(&lines(13));
    press(&mut editor, "ctrl+w");
    editor.submit();
    editor.paste(&lines(14));
    press(&mut editor, "ctrl+y");
    assert_eq!(shown(&editor), "[paste #1 +14 lines][paste #2 +13 lines]|", "a number that is taken is given anew");
    assert_eq!(editor.text(), lines(14) + &lines(13));
    editor.submit();
    press(&mut editor, "up");
    assert_eq!(shown(&editor), "[paste #1 +11 lines]|");
    assert_eq!(editor.text(), lines(11));
}

#[test]
fn markers_that_cannot_be_restored_are_forgotten() {
    let mut editor = editor("|");
    for _ in 0..50 {
        editor.paste(&"x".repeat(1024 * 1024));
        press(&mut editor, "backspace");
    }
    let kept: usize = editor.undo.texts().map(|text| editor.markers.weight(text)).sum();
    assert!(kept <= undo::MAX_BYTES, "{kept}");
    editor.paste(&lines(11));
    let label = editor.lines()[0].clone();
    assert_eq!(label, "[paste #51 +11 lines]");
    assert!(editor.markers.len_at("[paste #1 1048576 chars]", 0).is_none());
}

#[test]
fn a_marker_is_replaced_by_its_text_on_demand() {
    for keys in ["", "left"] {
        let mut editor = editor("a|b");
        editor.paste(&lines(11));
        press(&mut editor, keys);
        assert!(editor.expand_marker());
        assert_eq!(shown(&editor), format!("a{}|b", lines(11)));
        assert!(!editor.expand_marker());
        press(&mut editor, "ctrl+-");
        assert_eq!(editor.lines().join(""), "a[paste #1 +11 lines]b");
    }
}

#[test]
fn images_are_part_of_the_submission() {
    let mut editor = editor("see |");
    editor.insert_image("/tmp/a b.png".as_ref());
    assert_eq!(shown(&editor), "see [image 1: a b.png]|");
    assert_eq!(editor.text(), "see /tmp/a b.png");
    assert!(!editor.expand_marker());
    press(&mut editor, "left");
    assert_eq!(shown(&editor), "see |[image 1: a b.png]");
    press(&mut editor, "delete");
    assert_eq!(shown(&editor), "see |");
    press(&mut editor, "ctrl+-");
    let submission = editor.submit();
    assert_eq!(submission.text, "see [image 1: a b.png]");
    let image = PastedImage { label: "[image 1: a b.png]".to_owned(), path: "/tmp/a b.png".into() };
    assert_eq!(submission.images, std::slice::from_ref(&image));
    editor.remember(&submission);
    editor.insert_image("/other.png".as_ref());
    editor.restore(&submission.text);
    assert_eq!(shown(&editor), "see [image 2: a b.png]|");
    let image = PastedImage { label: "[image 2: a b.png]".to_owned(), ..image };
    assert_eq!(editor.submit().images, [image]);
}

#[test]
fn a_restored_text_has_its_markers_again() {
    let mut editor = editor("first |");
    editor.paste(&lines(11));
    let first = editor.submit();
    editor.remember(&first);
    editor.paste(&"x".repeat(1001));
    let second = editor.submit();
    editor.remember(&second);
    editor.insert("draft");
    let joined = format!("{}\n\n{}\n\n{}", first.text, second.text, editor.text());
    editor.restore(&joined);
    assert_eq!(shown(&editor), "first [paste #2 +11 lines]\n\n[paste #1 1001 chars]\n\ndraft|");
    assert_eq!(editor.text(), joined);
    press(&mut editor, "ctrl+-");
    assert_eq!(shown(&editor), "draft|");
}
