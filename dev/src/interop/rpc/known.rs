//! Known differences between pinch and pi 0.87.1 or 1.5.2 over RPC.

use crate::interop::neutral::KnownDifference;
use crate::interop::pi::peer::PiVersion;

const BROKEN: &str = "pi fills up arguments that are cut off; pinch refuses them, as pi does since 1.3";
const OPEN: &str = "of an answer that is aborted pi ends the open text first; pinch leaves it open";
const ONE_BY_ONE: &str =
    "pi shows the queue after each message that is taken from it; pinch when all of them are taken";
const IMAGE: &str = "pi puts a note in the place of an image that is none; pinch sends the image";
const PROMPT: &str = "an estimate counts the system prompt, whose wording is each program's own";
const EXPORT: &str = "pinch names a page after itself, with its folder";
const MISSING: &str = "pi begins a new session where there is no file; pinch says that there is none";
const FETCH: &str =
    "a request that is aborted before it begins is an error of Node's fetch in pi; in pinch it is aborted";

const fn known(step: &'static str, at: &'static str, reason: &'static str) -> KnownDifference {
    KnownDifference { step, at, reason }
}

const BILLED: &str =
    "pi says of each cost that the provider did not name it; pinch says it of those that the provider named";

const UNSAVED: &str = "pinch names the way to save a session that pi names since 1.0";
const DETAILS: &str =
    "details are left out of a command that fails, and its result says that it did, as in pi since 1.0";
const DURATION: &str =
    "pi says of a request which was never sent how long it took and with what level; pinch says neither";

/// The known differences of a version. A difference that no longer occurs is a failure, too.
pub(super) fn of(version: PiVersion) -> [&'static [KnownDifference]; 2] {
    [OF_BOTH, if version.is_target() { OF_1 } else { OF_0 }]
}

const OF_BOTH: &[KnownDifference] = &[
    known("a prompt with broken calls", "/lines", BROKEN),
    known("abort", "/lines", OPEN),
    known("abort with a queue", "/lines", OPEN),
    known("newSession while a prompt runs", "/lines", OPEN),
    known("abort of a command", "/lines/*/message/errorMessage", FETCH),
    known("several at once", "/lines", ONE_BY_ONE),
    known("an image that is none", "/lines", IMAGE),
    known("compact", "/lines/*/result/estimatedTokensAfter", PROMPT),
    known("compact", "/lines/*/data/estimatedTokensAfter", PROMPT),
    known("compact", "/result/estimatedTokensAfter", PROMPT),
    known("switchSession to nothing", "", MISSING),
    known("exportHtml by itself", "/result/path", EXPORT),
    known("exportHtml by itself", "/lines/*/data/path", EXPORT),
];

/// Only 0.87.1.
const OF_0: &[KnownDifference] = &[
    known("abort of a command", "/lines/*/message/stopReason", FETCH),
    known("a prompt with several tools", "/lines/*/result/isError", DETAILS),
    known("a prompt with several tools", "/lines/*/result/details", DETAILS),
    known("a prompt with several tools", "/lines/*/message/details", DETAILS),
    known("*", "/lines/*/data/messages/*/details", DETAILS),
    known("*", "/lines/*/data/entries/*/message/details", DETAILS),
    known("*", "/lines/*/data/tree/*/entry/message/details", DETAILS),
    known("*", "/result/*/details", DETAILS),
    known("*", "/result/entries/*/message/details", DETAILS),
    known("*", "/result/tree/*/entry/message/details", DETAILS),
    known("clone of nothing", "/error", UNSAVED),
    known("clone of nothing", "/lines/*/error", UNSAVED),
];

/// Only 1.5.2.
const OF_1: &[KnownDifference] = &[
    known("*", "/lines/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/result/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/data/messages/*/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/data/entries/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/data/tree/*/entry/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/result/*/usage/cost/totalFromProvider", BILLED),
    known("*", "/result/entries/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/result/tree/*/entry/message/usage/cost/totalFromProvider", BILLED),
    known("abort of a command", "/lines/*/message/durationMs", DURATION),
    known("*", "/lines/*/data/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/data/entries/*/usage/cost/totalFromProvider", BILLED),
    known("*", "/lines/*/data/tree/*/entry/usage/cost/totalFromProvider", BILLED),
    known("*", "/result/entries/*/usage/cost/totalFromProvider", BILLED),
    known("*", "/result/tree/*/entry/usage/cost/totalFromProvider", BILLED),
    known("abort of a command", "/lines/*/message/thinkingLevel", DURATION),
    known("*", "/result/usage/cost/totalFromProvider", BILLED),
];
