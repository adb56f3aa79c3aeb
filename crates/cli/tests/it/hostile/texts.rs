//! Texts that attack a terminal.

/// Part of every text that a terminal would act upon instead of showing it. Nothing of it may be shown either.
pub(super) const PAYLOAD: &str = "EvilPayload";

/// Operating system commands: the clipboard, titles, links, notifications, progress, colours, marks, files.
const COMMANDS: [&str; 24] = [
    "52;c;EvilPayload",
    "52;p;?EvilPayload",
    "0;EvilPayload",
    "1;EvilPayload",
    "2;EvilPayload",
    "7;file://EvilPayload/",
    "8;;https://EvilPayload/",
    "8;id=EvilPayload;file:///etc/passwd",
    "8;;https://a/\u{1b}]52;c;EvilPayload\u{7}",
    "9;EvilPayload",
    "9;4;1;50EvilPayload",
    "777;notify;EvilPayload;text",
    "7501;EvilPayload",
    "99;i=1:d=0;EvilPayload",
    "4;1;rgb:ff/00/00EvilPayload",
    "10;#EvilPayload",
    "11;?EvilPayload",
    "50;EvilPayload",
    "104;EvilPayload",
    "133;A;EvilPayload",
    "633;E;EvilPayload",
    "1337;File=inline=1:EvilPayload",
    "1337;CopyToClipboard=EvilPayload",
    "EvilPayload",
];

/// Control sequences, with parameters that pinch itself never writes.
const SEQUENCES: [&str; 40] = [
    "2J",
    "3J",
    "1;1H",
    "5;5f",
    "999A",
    "999B",
    "999C",
    "999D",
    "7F",
    "7G",
    "7d",
    "3K",
    "7L",
    "7M",
    "7P",
    "7@",
    "7S",
    "7T",
    "7X",
    "31m",
    "1;31;7m",
    "38;2;1;2;3m",
    "58;5;1m",
    "?6n",
    "5n",
    ">c",
    "=c",
    "21t",
    "20t",
    "8;1;1t",
    "4i",
    "5i",
    "!p",
    "2;3r",
    "?1049h",
    "?1000;1003h",
    "?2026;1h",
    ">31u",
    "3 q",
    "0;1\u{8};31m",
];

/// Strings for devices and programs: Sixel images, queries, passing on to an outer terminal, kitty's images, messages.
const STRINGS: [(char, &str); 9] = [
    ('P', "q#0;2;0;0;0#0~~@@EvilPayload"),
    ('P', "+q544eEvilPayload"),
    ('P', "$qmEvilPayload"),
    ('P', "tmux;\u{1b}\u{1b}]52;c;eA==\u{7}"),
    ('P', "1$tEvilPayload"),
    ('_', "Ga=T,f=100,t=f;EvilPayload"),
    ('_', "EvilPayload"),
    ('^', "EvilPayload"),
    ('X', "EvilPayload"),
];

const ESCAPES: [&str; 22] = [
    "\u{1b}c",
    "\u{1b}7",
    "\u{1b}8",
    "\u{1b}D",
    "\u{1b}M",
    "\u{1b}E",
    "\u{1b}H",
    "\u{1b}N",
    "\u{1b}O",
    "\u{1b}=",
    "\u{1b}>",
    "\u{1b}Z",
    "\u{1b}#8",
    "\u{1b}(0",
    "\u{1b})B",
    "\u{1b}%G",
    "\u{1b} F",
    "\u{1b}n",
    "\u{1b}|",
    "\u{1b}\\",
    "\u{1b}kname\u{1b}\\",
    "\u{1b}\u{1b}",
];

/// Other control characters, and tricks with them.
const CONTROLS: [&str; 24] = [
    "\0",
    "\u{1}",
    "\u{5}",
    "\u{7}",
    "\u{8}\u{8}\u{8}\u{8}",
    "\u{8} \u{8}",
    "\u{b}",
    "\u{c}",
    "\r",
    "safe\rrm -rf",
    "\r\r\n",
    "\u{e}",
    "\u{f}",
    "\u{10}",
    "\u{11}",
    "\u{13}",
    "\u{18}",
    "\u{1a}",
    "\u{1b}[3\u{18}1m",
    "\u{1b}[3\u{1b}[2J",
    "\u{1c}",
    "\u{1f}",
    "\u{7f}",
    "\u{1b}",
];

/// Characters that reorder, hide or join text.
const FORMATS: [&str; 30] = [
    "\u{202a}",
    "\u{202b}",
    "\u{202c}",
    "\u{202d}",
    "\u{202e}",
    "\u{2066}",
    "\u{2067}",
    "\u{2068}",
    "\u{2069}",
    "\u{200e}",
    "\u{200f}",
    "\u{61c}",
    "\u{202e}cod.exe\u{202c}",
    "\u{200b}",
    "\u{2060}",
    "\u{2061}",
    "\u{2064}",
    "\u{206a}",
    "\u{206f}",
    "\u{feff}",
    "\u{ad}",
    "\u{180e}",
    "\u{2028}",
    "\u{2029}",
    "\u{fff9}a\u{fffa}b\u{fffb}",
    "\u{e0001}",
    "\u{e0045}\u{e0076}\u{e0069}\u{e006c}",
    "\u{fe0f}",
    "\u{e0100}",
    "\u{34f}\u{34f}\u{34f}",
];

/// Returns more than three hundred texts, each of one line between `<` and `>`.
pub(super) fn texts() -> Vec<String> {
    let mut attacks: Vec<String> = Vec::new();
    for command in COMMANDS {
        for begin in ["\u{1b}]", "\u{9d}"] {
            // A string without an end, or with one that only some terminals accept, hides the rest of the line at most.
            attacks.extend(["\u{7}", "\u{1b}\\", "\u{9c}", ""].iter().map(|end| format!("{begin}{command}{end}")));
        }
    }
    for sequence in SEQUENCES {
        attacks.extend(["\u{1b}[", "\u{9b}"].iter().map(|begin| format!("{begin}{sequence}")));
    }
    for (kind, body) in STRINGS {
        let c1 = char::from_u32(u32::from(kind) + 0x40).unwrap();
        for end in ["\u{1b}\\", "\u{9c}", ""] {
            attacks.extend([format!("\u{1b}{kind}{body}{end}"), format!("{c1}{body}{end}")]);
        }
    }
    attacks.extend([&ESCAPES[..], &CONTROLS, &FORMATS].concat().iter().map(ToString::to_string));
    attacks.extend(('\u{80}'..='\u{9f}').map(String::from));
    attacks.iter().enumerate().map(|(n, attack)| format!("<{n:03}{attack}>")).collect()
}

/// Returns texts without line ends, for names of which each has one line.
pub(super) fn names() -> Vec<String> {
    texts().into_iter().filter(|text| !text.contains(['\n', '\0', '/'])).collect()
}

/// Returns the texts as paragraphs, so that the end of each is the end of a line.
pub(super) fn paragraphs() -> String {
    texts().join("\n\n")
}

/// Returns control characters as single bytes, as in text that is not UTF-8.
pub(super) fn bytes() -> Vec<u8> {
    (0x80..=0x9f_u8).flat_map(|byte| [b'<', byte, b'2', b'J', b'>', b'\n']).collect()
}
