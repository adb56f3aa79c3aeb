//! Far too large input: files, lines, arguments, images, and expensive patterns.

use std::fs::File;
use std::io::Write as _;

use serde_json::json;

use crate::tool_calls::FileTree;

/// Maximum peak memory of a process in megabytes, including the test's own.
const SMALL: u64 = 120;

#[test]
fn a_file_of_ten_gigabytes_is_handled() {
    let tree = FileTree::new(&[("head", b"hit\nhit\n")]);
    for name in ["hole", "head"] {
        // Without a single block on disk.
        File::options().append(true).create(true).open(tree.root().join(name)).unwrap().set_len(10 << 30).unwrap();
    }
    let edits = json!([{"oldText": "hit", "newText": "miss"}]);
    let binary = "error: This is a binary file (it contains NUL bytes). Look at it with bash, e.g. file or xxd.";
    for (tool, input, expected) in [
        ("read", json!({"path": "hole"}), binary),
        ("read", json!({"path": "head", "offset": 2, "limit": 1}), binary),
        ("edit", json!({"path": "hole", "edits": edits}), "error: Could not edit file: hole. Error code: EFBIG."),
        ("edit", json!({"path": "head", "edits": edits}), "error: Could not edit file: head. Error code: EFBIG."),
        ("grep", json!({"pattern": "hit"}), "No matches found"),
        (
            "grep",
            json!({"pattern": "hit", "path": "head", "limit": 1}),
            "head:1: hit\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]",
        ),
        ("find", json!({"pattern": "h*"}), "head\nhole"),
        ("ls", json!({}), "head\nhole"),
    ] {
        let (result, peak) = tree.measured(tool, &input);
        assert_eq!(result, expected, "{tool} {input}");
        assert!(peak < SMALL, "{tool} {input}: {peak} MB");
    }
}

#[test]
fn a_named_file_of_zeros_is_searched_only_as_far_as_useful() {
    let tree = FileTree::new(&[]);
    File::create(tree.root().join("hole")).unwrap().set_len(10 << 30).unwrap();
    let (result, peak) = tree.measured("grep", &json!({"pattern": "hit", "path": "hole"}));
    assert_eq!(result, "No matches found");
    assert!(peak < SMALL, "{peak} MB");
}

#[test]
fn a_line_of_two_hundred_megabytes_is_handled() {
    let tree = FileTree::new(&[]);
    let mut file = File::create(tree.root().join("line")).unwrap();
    (0..200).for_each(|_| file.write_all(&[b'x'; 1 << 20]).unwrap());
    let edits = json!([{"oldText": "xyz", "newText": "z"}]);
    let hint = "[Line 1 is 200.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' line | head -c 51200]";
    for (tool, input, most, expected) in [
        ("read", json!({"path": "line"}), SMALL, hint),
        (
            "edit",
            json!({"path": "line", "edits": edits}),
            SMALL,
            "error: Could not edit file: line. Error code: EFBIG.",
        ),
        ("grep", json!({"pattern": "xyz"}), 2 * SMALL, "No matches found\n\n[1 file or directory could not be read]"),
        (
            "grep",
            json!({"pattern": "xyz", "path": "line"}),
            2 * SMALL,
            "error: EIO: the file has a line that is too long to be searched, read './line'",
        ),
        ("bash", json!({"command": "cat line | tail -c 10"}), SMALL, "xxxxxxxxxx"),
    ] {
        let (result, peak) = tree.measured(tool, &input);
        assert_eq!(result, expected, "{tool} {input}");
        assert!(peak < most, "{tool} {input}: {peak} MB");
    }
}

#[test]
fn editing_a_large_file_takes_a_few_times_its_size() {
    for end in ["\n", "\r\n"] {
        let tree = FileTree::new(&[]);
        let text: String = (0..600_000).map(|n| format!("{n:06} and some words of a usual line{end}")).collect();
        std::fs::write(tree.root().join("f"), &text).unwrap();
        let size = text.len() as u64 >> 20;
        // The second is found only approximately: the file has no typographic quotes.
        for old in ["300000 and some words", "000123 and some words of a usual line  \n000124"] {
            let input = json!({"path": "f", "edits": [{"oldText": old, "newText": "new words"}]});
            let (result, peak) = tree.measured("edit", &input);
            assert_eq!(result, "Successfully replaced 1 block(s) in f.");
            assert!(peak < SMALL + 10 * size, "{peak} MB for a file of {size} MB");
        }
    }
}

#[test]
fn an_edit_that_replaces_very_many_lines_terminates() {
    let tree = FileTree::new(&[]);
    let lines = |word: &str| (0..60_000).map(|n| format!("{word} {}\n", n * 7919 % 1000)).collect::<String>();
    let old = lines("a");
    std::fs::write(tree.root().join("f"), &old).unwrap();
    let new: String = old.lines().rev().map(|line| format!("{line}\n")).collect();
    let input = json!({"path": "f", "edits": [{"oldText": old, "newText": new}]});
    let (result, peak) = tree.measured("edit", &input);
    assert_eq!(result, "Successfully replaced 1 block(s) in f.");
    assert!(peak < 3 * SMALL, "{peak} MB");
}

#[tokio::test]
async fn arguments_of_ten_megabytes_are_handled() {
    let tree = FileTree::new(&[("f", b"text\n")]);
    let long = "(a/".repeat(10 << 20 >> 2);
    let edit = |old: &str| json!({"path": "f", "edits": [{"oldText": old, "newText": "x"}]});
    for (tool, input) in [
        ("read", json!({"path": long})),
        ("write", json!({"path": long, "content": "x"})),
        ("edit", json!({"path": long, "edits": [{"oldText": "a", "newText": "b"}]})),
        ("edit", edit(&long)),
        ("grep", json!({"pattern": long})),
        ("grep", json!({"pattern": "x", "path": long})),
        ("grep", json!({"pattern": "x", "glob": format!("{long}[")})),
        ("find", json!({"pattern": format!("{long}[")})),
        ("find", json!({"pattern": "x", "path": long})),
        ("ls", json!({"path": long})),
        ("bash", json!({"command": long})),
    ] {
        let result = tree.soon(tool, input).await;
        assert!(result.starts_with("error: "), "{tool}: {result:.200}");
        assert!(result.len() < 10_000, "{tool}: {} bytes of {result:.200}", result.len());
    }
    let literal = tree.soon("grep", json!({"pattern": long, "literal": true})).await;
    assert!(literal == "No matches found" || literal.len() < 10_000, "{literal:.200}");
    // No name contains such a byte, and it must not be matched to a file without it.
    for tool in ["read", "write", "edit", "grep", "find", "ls"] {
        let input =
            json!({"path": "f\u{0}", "pattern": "x", "content": "x", "edits": [{"oldText": "a", "newText": "b"}]});
        let result = tree.soon(tool, input).await;
        assert!(result.starts_with("error: ") && result.contains("EINVAL"), "{tool}: {result}");
    }
    let result = tree.soon("bash", json!({"command": "echo \u{0}"})).await;
    assert!(result.starts_with("error: EINVAL: "), "{result}");
    assert_eq!(std::fs::read(tree.root().join("f")).unwrap(), b"text\n");
}

#[tokio::test]
async fn extreme_numbers_are_accepted_or_rejected() {
    let tree = FileTree::new(&[("f", b"a\nb\nc\n")]);
    for huge in [1e300, 1.8e19, 9e15] {
        for limit in [json!({"path": "f", "offset": 2, "limit": huge}), json!({"path": "f", "offset": 2.5})] {
            assert_eq!(tree.soon("read", limit).await, "b\nc\n");
        }
        let beyond = tree.soon("read", json!({"path": "f", "offset": huge, "limit": huge})).await;
        assert!(beyond.starts_with("error: Offset ") && beyond.ends_with(" (4 lines total)"), "{beyond}");
        let grep = json!({"pattern": "b", "context": huge, "limit": huge});
        assert_eq!(tree.soon("grep", grep).await, "f-1- a\nf:2: b\nf-3- c");
        assert_eq!(tree.soon("find", json!({"pattern": "*", "limit": huge})).await, "f");
        assert_eq!(tree.soon("ls", json!({"limit": huge})).await, "f");
        let bash = tree.soon("bash", json!({"command": "echo x", "timeout": huge})).await;
        assert!(bash.starts_with("error: Invalid timeout: "), "{bash}");
    }
}

#[tokio::test]
async fn expensive_patterns_are_bounded() {
    let tree = FileTree::new(&[("f", format!("{}\n", "a0".repeat(100_000)).as_bytes())]);
    for pattern in [
        r"(a*)*b",
        r"(a|a|0)*x$",
        r"(.*)*(.*)*(.*)*x",
        r"[a0]*a[a0]{400}x",
        r"(((a{100}){100}){100}){100}",
        r"(\w{100}){100}",
        r"(?i)\pL{500}",
        &"(".repeat(5_000),
        &format!("{}x{}", "(".repeat(400), ")?".repeat(400)),
    ] {
        let result = tree.soon("grep", json!({"pattern": pattern})).await;
        assert!(result == "No matches found" || result.starts_with("error: "), "{pattern:.50}: {result:.300}");
        assert!(result.len() < 10_000, "{pattern:.50}: {} bytes", result.len());
    }
    let braces = "{a,".repeat(1000);
    for glob in [
        format!("{}x", "**/".repeat(1000)),
        format!("{braces}b{}", "}".repeat(1000)),
        "*a".repeat(2000),
        "[".repeat(5000),
    ] {
        let found = tree.soon("find", json!({"pattern": glob})).await;
        assert!(found.starts_with("No files found") || found.starts_with("error: "), "{glob:.50}: {found:.300}");
        let result = tree.soon("grep", json!({"pattern": "x", "glob": glob})).await;
        assert!(result == "No matches found" || result.starts_with("error: "), "{glob:.50}: {result:.300}");
    }
}

#[cfg(feature = "images")]
#[test]
fn decompression_bombs_are_rejected() {
    let tree = FileTree::new(&[]);
    let save = |name: &str, picture: image::DynamicImage| {
        picture.save_with_format(tree.root().join(name), image::ImageFormat::Png).unwrap();
    };
    // A few kilobytes each. The first is large, the second exceeds the decoding limit.
    save("large", image::GrayImage::new(6000, 6000).into());
    save("huge", image::GrayImage::new(30_000, 2_000).into());
    // The header claims four gigapixels; nothing follows.
    tree.write("bomb", b"GIF89a\xff\xff\xff\xff\xf0\0\0\x2c\0\0\0\0\xff\xff\xff\xff\0\x08\x02\x4c\x01\0\x3b");
    let refused = |mime: &str| {
        format!("Read image file [{mime}]\n[Image omitted: could not be resized below the inline image size limit.]")
    };
    let shown = "Read image file [image/png]\n[Image: original 6000x6000, displayed at 2000x2000. Multiply coordinates by 3.00 \
                 to map to original image.]";
    for (name, expected) in
        [("large", shown.to_owned()), ("huge", refused("image/png")), ("bomb", refused("image/gif"))]
    {
        let (result, peak) = tree.measured("read", &json!({"path": name}));
        assert_eq!(result, expected, "{name}");
        assert!(peak < 5 * SMALL, "{name}: {peak} MB");
    }
}
