//! What is known to differ between pinch and pi 0.87.1 over RPC.

use crate::interop::neutral::Known;

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

const fn known(step: &'static str, at: &'static str, reason: &'static str) -> Known {
    Known { step, at, reason }
}

/// What is known. A difference that does not show any more is a failure, too.
pub(super) const KNOWN: &[Known] = &[
    known("a prompt with broken calls", "/lines", BROKEN),
    known("abort", "/lines", OPEN),
    known("abort with a queue", "/lines", OPEN),
    known("newSession while a prompt runs", "/lines", OPEN),
    known("abort of a command", "/lines/*/message/errorMessage", FETCH),
    known("abort of a command", "/lines/*/message/stopReason", FETCH),
    known("several at once", "/lines", ONE_BY_ONE),
    known("an image that is none", "/lines", IMAGE),
    known("compact", "/lines/*/result/estimatedTokensAfter", PROMPT),
    known("compact", "/lines/*/data/estimatedTokensAfter", PROMPT),
    known("compact", "/result/estimatedTokensAfter", PROMPT),
    known("switchSession to nothing", "", MISSING),
    known("exportHtml by itself", "/result/path", EXPORT),
    known("exportHtml by itself", "/lines/*/data/path", EXPORT),
];

/// What is known to differ from pi 1.5.2.
pub(super) const KNOWN_OF_1: &[Known] = &[
    known("a prompt with broken calls", "/lines", BROKEN),
    known("abort", "/lines", OPEN),
    known("abort with a queue", "/lines", OPEN),
    known("newSession while a prompt runs", "/lines", OPEN),
    known("abort of a command", "/lines/*/message/errorMessage", FETCH),
    known("abort of a command", "/lines/*/message/stopReason", FETCH),
    known("several at once", "/lines", ONE_BY_ONE),
    known("an image that is none", "/lines", IMAGE),
    known("compact", "/lines/*/result/estimatedTokensAfter", PROMPT),
    known("compact", "/lines/*/data/estimatedTokensAfter", PROMPT),
    known("compact", "/result/estimatedTokensAfter", PROMPT),
    known("switchSession to nothing", "", MISSING),
    known("exportHtml by itself", "/result/path", EXPORT),
    known("exportHtml by itself", "/lines/*/data/path", EXPORT),
];
