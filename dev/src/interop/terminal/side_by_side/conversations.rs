//! Conversations with the model.

use super::SideStep::{
    Answers, Both, Calls, Counts, Ends, Enters, Fails, Loses, Only, Presses, Sees, Thinks, Types, Waits,
};
use super::{SideConversation, SideProgram};

pub(super) const ALL: &[&SideConversation] = &[
    &SideConversation {
        name: "a question and its answer",
        steps: &[Answers("fine, thanks"), Enters("how are you"), Sees("fine, thanks"), Counts(1, "how are you")],
    },
    &SideConversation {
        name: "headings and lists",
        steps: &[
            Answers("# Title\n\n- one\n- two\n\n1. first\n2. second"),
            Enters("list"),
            Sees("Title"),
            Sees("- one"),
            Sees("2. second"),
            Loses("# Title"),
        ],
    },
    &SideConversation {
        name: "emphasis",
        steps: &[Answers("some **bold** and `code` words"), Enters("say"), Sees("some bold and code words")],
    },
    &SideConversation {
        name: "a table",
        steps: &[Answers("| a | b |\n|---|---|\n| 1 | 漢字 |"), Enters("table"), Sees("│ 1"), Sees("漢字")],
    },
    &SideConversation {
        name: "a code block",
        steps: &[Answers("```rust\nlet x = 1;\n```\n\nend"), Enters("code"), Sees("let x = 1;"), Sees("end")],
    },
    &SideConversation {
        name: "a quotation", steps: &[Answers("> wise words"), Enters("quote"), Sees("│ wise words")]
    },
    &SideConversation {
        name: "two turns",
        steps: &[
            Answers("one"),
            Enters("first"),
            Sees("one"),
            Answers("two"),
            Enters("second"),
            Sees("two"),
            Sees("first"),
        ],
    },
    &SideConversation {
        name: "a command of the model",
        steps: &[
            Calls("bash", r#"{"command":"echo from-$((40+2))"}"#),
            Answers("that was it"),
            Enters("run it"),
            Sees("$ echo from-$((40+2))"),
            Sees("from-42"),
            Sees("that was it"),
        ],
    },
    &SideConversation {
        name: "a file is written and read",
        steps: &[
            Calls("write", r#"{"path":"made.txt","content":"the contents\n"}"#),
            Calls("read", r#"{"path":"made.txt"}"#),
            Answers("done"),
            Enters("make it"),
            Sees("write made.txt"),
            Sees("read made.txt"),
            Sees("done"),
        ],
    },
    &SideConversation {
        name: "a file is edited",
        steps: &[
            Calls("write", r#"{"path":"made.txt","content":"old line\n"}"#),
            Calls("edit", r#"{"path":"made.txt","edits":[{"oldText":"old line","newText":"new line"}]}"#),
            Answers("done"),
            Enters("change it"),
            Sees("edit made.txt"),
            Sees("+1 new line"),
            Sees("-1 old line"),
            Sees("done"),
        ],
    },
    &SideConversation {
        name: "an unknown tool",
        steps: &[
            Calls("nothing", "{}"),
            Answers("never mind"),
            Enters("call it"),
            Sees("not found"),
            Sees("never mind"),
        ],
    },
    &SideConversation {
        name: "thinking is shown and hidden",
        steps: &[
            Thinks("deep thoughts", "the answer"),
            Enters("think"),
            Sees("deep thoughts"),
            Sees("the answer"),
            Presses(&["C-t"]),
            Only(SideProgram::Pi),
            Sees("Thinking blocks: hidden"),
            Only(SideProgram::Pinch),
            Sees("Thinking is hidden"),
            Both,
        ],
    },
    &SideConversation {
        name: "an error of the provider",
        steps: &[Fails("no such luck"), Enters("try"), Sees("no such luck")],
    },
    &SideConversation {
        name: "escape stops a run",
        steps: &[
            Waits,
            Enters("begin"),
            Sees("Working"),
            Presses(&["Escape"]),
            Sees("Operation aborted"),
            Loses("Working"),
        ],
    },
    &SideConversation {
        name: "a steering message",
        steps: &[
            Waits,
            Enters("begin"),
            Sees("Working"),
            Enters("turn left"),
            Sees("Steering: turn left"),
            Presses(&["Escape"]),
            Sees("Operation aborted"),
            Loses("Steering:"),
            Sees("turn left"),
        ],
    },
    &SideConversation {
        name: "a follow-up and its return",
        steps: &[
            Waits,
            Enters("begin"),
            Sees("Working"),
            Types("and then"),
            Presses(&["M-Enter"]),
            Sees("Follow-up: and then"),
            Presses(&["M-Up"]),
            Loses("Follow-up:"),
            Sees("and then"),
        ],
    },
    &SideConversation {
        name: "a shell command",
        steps: &[Enters("!echo from-$((40+2))"), Sees("$ echo from-$((40+2))"), Sees("from-42")],
    },
    &SideConversation {
        name: "a hidden shell command",
        steps: &[Enters("!!echo from-$((40+2))"), Sees("$ echo from-$((40+2))"), Sees("from-42")],
    },
    &SideConversation {
        name: "the end by ctrl+d",
        steps: &[Answers("fine"), Enters("hello"), Sees("fine"), Presses(&["C-d"]), Ends, Sees("--session")],
    },
];
