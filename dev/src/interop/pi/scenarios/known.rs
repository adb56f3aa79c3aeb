//! Known differences between pinch and a version of pi.

/// A difference between pinch and a version of pi.
pub(in super::super) struct KnownPiDifference {
    pub(in super::super) version: &'static str,
    /// `*` means all.
    pub(in super::super) scenario: &'static str,
    /// Fields of the view, at least one of which differs; empty: this version cannot write the session.
    pub(in super::super) members: &'static [&'static str],
    pub(in super::super) reason: &'static str,
}

const NO_SYSTEM: &str = "does not know system messages: it keeps old ones after a compaction, and sends none";
const NO_EDITS: &str = "does not know context edits and shows what was there before";
const NO_REPAIR: &str = "shows null as it is, where 0.87.1 and pinch show an empty list";

const TWICE: &str = "shows an entry as often as its line stands in the file; in pinch's tree it stands once";

/// The scenario whose messages have fields that no version knows.
pub(super) const UNKNOWN: &str = "members that nobody knows";
const NOT_IN_MEMORY: &str = "has unknown members of messages in memory, too; pinch leaves them in the file";

/// The known differences. A difference that no longer occurs is a failure, too.
pub(in super::super) const KNOWN: &[KnownPiDifference] = &[
    KnownPiDifference {
        version: "0.73.1",
        scenario: "system messages",
        members: &["messages", "sent"],
        reason: NO_SYSTEM,
    },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "system messages",
        members: &["messages", "sent"],
        reason: NO_SYSTEM,
    },
    KnownPiDifference {
        version: "0.73.1",
        scenario: "context edits",
        members: &["messages", "sent"],
        reason: NO_EDITS,
    },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "context edits",
        members: &["messages", "sent"],
        reason: NO_EDITS,
    },
    KnownPiDifference {
        version: "0.73.1",
        scenario: "context edits",
        members: &[],
        reason: "cannot write context edits",
    },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "context edits",
        members: &[],
        reason: "cannot write context edits",
    },
    KnownPiDifference { version: "0.73.1", scenario: "usage notes", members: &[], reason: "cannot write usage notes" },
    KnownPiDifference { version: "0.49.3", scenario: "usage notes", members: &[], reason: "cannot write usage notes" },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "a name that is cleared",
        members: &["name"],
        reason: "looks for the last name that is not blank",
    },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "odd labels and names",
        members: &["name"],
        reason: "trims names when it writes them only",
    },
    KnownPiDifference {
        version: "0.73.1",
        scenario: "null content",
        members: &["messages", "sent"],
        reason: NO_REPAIR,
    },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "null content",
        members: &["messages", "sent"],
        reason: NO_REPAIR,
    },
    KnownPiDifference { version: "1.5.2", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    KnownPiDifference { version: "0.87.1", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    KnownPiDifference { version: "0.73.1", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    KnownPiDifference { version: "0.49.3", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    KnownPiDifference { version: "1.5.2", scenario: "written twice", members: &["tree"], reason: TWICE },
    KnownPiDifference { version: "0.87.1", scenario: "written twice", members: &["tree"], reason: TWICE },
    KnownPiDifference { version: "0.73.1", scenario: "written twice", members: &["tree"], reason: TWICE },
    KnownPiDifference { version: "0.49.3", scenario: "written twice", members: &["tree"], reason: TWICE },
    KnownPiDifference {
        version: "0.49.3",
        scenario: "*",
        members: &["labelTimes"],
        reason: "does not tell when labels were set",
    },
];
