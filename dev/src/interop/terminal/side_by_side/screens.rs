//! The editor, commands and dialogs.

use super::SideStep::{Answers, Both, Ends, Enters, Loses, Only, Presses, Sees, Types};
use super::{SideConversation, SideProgram};

pub(super) const ALL: &[&SideConversation] = &[
    &SideConversation {
        name: "ctrl+c clears and ends",
        steps: &[Types("draft"), Sees("draft"), Presses(&["C-c"]), Loses("draft"), Presses(&["C-c", "C-c"]), Ends],
    },
    &SideConversation { name: "/quit", steps: &[Enters("/quit"), Ends] },
    &SideConversation {
        name: "lines and their deletion",
        steps: &[
            Types("first\\"),
            Presses(&["Enter"]),
            Types("second"),
            Sees("second"),
            Loses("first\\"),
            Presses(&["C-u"]),
            Loses("second"),
            Presses(&["C-y"]),
            Sees("second"),
            Presses(&["C-w"]),
            Loses("second"),
            Sees("first"),
        ],
    },
    &SideConversation {
        name: "the last prompt returns",
        steps: &[
            Answers("fine"),
            Enters("hello you"),
            Sees("fine"),
            Presses(&["Up"]),
            Presses(&["C-u"]),
            Sees("hello you"),
        ],
    },
    &SideConversation {
        name: "the external editor",
        steps: &[Types("draft"), Sees("draft"), Presses(&["C-g"]), Sees("draft and edited")],
    },
    &SideConversation {
        name: "completion of commands",
        steps: &[Types("/mod"), Sees("scoped-models"), Presses(&["Escape"]), Loses("scoped-models")],
    },
    &SideConversation {
        name: "completion of paths",
        steps: &[Types("look at ./edi"), Presses(&["Tab"]), Sees("./editor.sh")],
    },
    &SideConversation {
        name: "completion of files",
        steps: &[
            Only(SideProgram::Pinch),
            Types("@edit"),
            Sees("editor.sh"),
            Presses(&["Tab"]),
            Sees("@editor.sh"),
            Both,
        ],
    },
    &SideConversation {
        name: "the list of models",
        steps: &[Presses(&["C-l"]), Sees("[local]"), Presses(&["Escape"]), Loses("[local]")],
    },
    &SideConversation {
        name: "/settings",
        steps: &[Enters("/settings"), Sees("Auto-compact"), Presses(&["Escape"]), Loses("Auto-compact")],
    },
    &SideConversation {
        name: "/name and /session",
        steps: &[Enters("/name errand"), Sees("errand"), Enters("/session"), Sees("Tokens"), Sees("Messages")],
    },
    &SideConversation {
        name: "/hotkeys",
        steps: &[
            Enters("/hotkeys"),
            Only(SideProgram::Pi),
            Sees("Toggle tool output expansion"),
            Only(SideProgram::Pinch),
            Sees("Models to cycle through"),
            Both,
        ],
    },
    &SideConversation {
        name: "/new",
        steps: &[Answers("fine"), Enters("hello"), Sees("fine"), Enters("/new"), Sees("New session started")],
    },
    &SideConversation {
        name: "/resume",
        steps: &[
            Answers("fine"),
            Enters("hello"),
            Sees("fine"),
            Enters("/new"),
            Sees("New session started"),
            Enters("/resume"),
            Only(SideProgram::Pi),
            Sees("Resume Session"),
            Only(SideProgram::Pinch),
            Sees("Continue a session"),
            Both,
            Presses(&["Escape"]),
            Loses("ession ("),
            Loses("Continue a session"),
        ],
    },
    &SideConversation {
        name: "/tree",
        steps: &[
            Answers("fine"),
            Enters("hello"),
            Sees("fine"),
            Enters("/tree"),
            Sees("user: hello"),
            Presses(&["Escape"]),
            Loses("user: hello"),
        ],
    },
    &SideConversation {
        name: "/compact without messages",
        steps: &[
            Enters("/compact"),
            Only(SideProgram::Pi),
            Sees("Nothing to compact"),
            Only(SideProgram::Pinch),
            Sees("There is nothing to compact yet"),
            Both,
        ],
    },
    &SideConversation {
        name: "the last answer is copied",
        steps: &[Answers("fine"), Enters("hello"), Sees("fine"), Presses(&["C-x"]), Sees("opied")],
    },
    &SideConversation {
        name: "an unknown command",
        steps: &[
            Answers("fine"),
            Enters("/frobnicate"),
            Only(SideProgram::Pi),
            Sees("fine"),
            Only(SideProgram::Pinch),
            Sees("Unknown command /frobnicate"),
            Presses(&["Enter"]),
            Sees("fine"),
            Both,
        ],
    },
    &SideConversation { name: "no thinking levels", steps: &[Presses(&["BTab"]), Sees("thinking")] },
];
