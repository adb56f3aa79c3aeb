//! Known differences between pinch and pi 0.87.1 or 1.5.2 in print and JSON mode.

use crate::interop::neutral::KnownDifference;
use crate::interop::pi::peer::PiVersion;

const EMPTY: &str = "pi ends without a word when nothing is asked; pinch says that there is no message";
const FOLDER: &str = "pi dies of a folder; pinch says that it is no file";
const BLANK: &str =
    "pi joins standard input, files and the message without anything between them; pinch with a blank line";
const AMBIGUOUS: &str = "pinch says in fewer words which models a name could mean";
const PROVIDER: &str = "pi ignores a provider without a model; pinch says that it needs one, as pi does since 1.0";
const NO_TOOL: &str = "pi ignores tools that nobody has; pinch names those there are";
const TRUST: &str = "pinch says what it leaves out of a project that is not trusted";
const DOCUMENT: &str = "pinch names the place of the mistake, and what became of the document";
const COLLISION: &str = "pinch says which of two skills of one name it takes";
const ADVICE: &str = "pinch says in its own words how to get a model or a key";
const CODES: &str = "pinch's exit codes tell the kind of a failure: 2 the configuration, 3 the provider";
const ENDS: &str = "pi ends in the middle; pinch ends the run first, and its prompt is on disk before the model is asked, as in pi since 0.99";
const CUT: &str = "an answer that is cut is a failure in print mode, as in pi since 1.2";
const CAUSE: &str = "pinch names the cause of a broken connection, as pi does since 1.5";
const REPEATED: &str = "pi repeats the output in the details of its result; pinch does not";
const TIMEOUT: &str = "pinch says which timeouts there are";
const BROKEN: &str = "pi fills up arguments that are cut off; pinch refuses them, as pi does since 1.3";
const CHANGES: &str = "pi does not note a change of the model on the command line; pinch does";

const BLANKS: &str = "pinch leaves no blanks at the ends of lines";
const SKILL: &str = "pinch says why it leaves a skill out";
const PREPARED: &str = "pi changes the calls of the conversation while it runs them; pinch leaves them as they came";
const TOOLS: &str = "a session that goes on has the tools it had, as in pi since 1.3";
const BY_VALUE: &str = "pinch tells claude of new tools by value, as pi does since 1.0.1";
const FOREIGN: &str = "thinking of another model is dropped, as in pi since 1.3";
const REQUEST: &str = "pinch repeats the newest request of the user below a summary that stands for it";
const PROMPT: &str = "an estimate counts the descriptions of tools, whose wording is each program's own";

const MKDIR: &str = "pinch names the file that it cannot write, pi the folder that it cannot make";
const WINDOWS: &str = "lines around two matches are shown once, as in pi since 1.4";
const LIMIT: &str = "a limit is spoken of when something was left out, as in pi since 1.5.1";
const LOG: &str = "the name of the file with the whole output is longer";
const CAP: &str = "pinch says in its own words that a summary was cut";

const BEGUN: &str = "pinch tells of entries from the beginning of a session, too";
const ASKED: &str = "pi ends before what a command says is answered; pinch answers it";
const LOADED: &str = "an extension that cannot be loaded is left out and told of; pi does not begin";

const fn known(step: &'static str, at: &'static str, reason: &'static str) -> KnownDifference {
    KnownDifference { step, at, reason }
}

const BILLED: &str =
    "pi says of each cost that the provider did not name it; pinch says it of those that the provider named";

const ROOM: &str =
    "pi asks for one token where an estimate leaves no room for an answer; pinch for half of what is left, up to 1024";
const STRUCTURED: &str = "pi repeats what a tool returned as structured content; pinch does so for commands";
const DETAILS: &str =
    "details are left out of a command that fails, and its result says that it did, as in pi since 1.0";
const VALIDATION: &str = "what is wrong with an argument is each program's own wording";
const ABORTED: &str =
    "a run whose process a signal ends says on standard error that it was aborted, as in pi since 1.0";

/// The known differences of a version. A difference that no longer occurs is a failure, too.
pub(super) fn of(version: PiVersion) -> [&'static [KnownDifference]; 2] {
    [OF_BOTH, if version.is_target() { OF_1 } else { OF_0 }]
}

/// All known differences.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static KnownDifference> {
    OF_BOTH.iter().chain(OF_0).chain(OF_1)
}

const OF_BOTH: &[KnownDifference] = &[
    known("summed up between turns", "/events/*/result/summary", REQUEST),
    known("summed up between turns", "/events/*/result/tokensBefore", LOG),
    known("summed up between turns", "/events/*/result/estimatedTokensAfter", PROMPT),
    known("*", "/events/*/message/details/truncation/content", REPEATED),
    known("summed up twice", "/requests/*/body/max_completion_tokens", ROOM),
    known("nothing to sum up", "/requests/*/body/max_completion_tokens", ROOM),
    known("without anything to say", "/stderr", EMPTY),
    known("without anything to say", "/exit", EMPTY),
    known("an empty message", "/stderr", EMPTY),
    known("an empty message", "/exit", EMPTY),
    known("a folder as file", "/stderr", FOLDER),
    known("the list of models", "/stdout", BLANKS),
    known("standard input and a message", "/requests/0/body/messages/1/content/0/text", BLANK),
    known("standard input and a message", "/session/0/entries/4/message/content/0/text", BLANK),
    known("standard input without -p", "/requests/0/body/messages/1/content/0/text", BLANK),
    known("standard input without -p", "/session/0/entries/4/message/content/0/text", BLANK),
    known("standard input, a file and messages", "/requests/*/body/messages/1/content/0/text", BLANK),
    known("standard input, a file and messages", "/events/5/message/content/0/text", BLANK),
    known("standard input, a file and messages", "/session/0/entries/4/message/content/0/text", BLANK),
    known("a model that two have", "/stderr", AMBIGUOUS),
    known("a provider without a model", "/stderr", PROVIDER),
    known("a tool that nobody has", "/requests", NO_TOOL),
    known("a tool that nobody has", "/events", NO_TOOL),
    known("a tool that nobody has", "/session", NO_TOOL),
    known("a tool that nobody has", "/stderr", NO_TOOL),
    known("a tool that nobody has", "/exit", NO_TOOL),
    known("prompts of a project that is not trusted", "/stderr", TRUST),
    known("settings that are none", "/stderr", DOCUMENT),
    known("models that are none", "/stderr", DOCUMENT),
    known("models that are none", "/exit", CODES),
    known("skills of a project", "/stderr", COLLISION),
    known("skills", "/stderr", SKILL),
    known("no model at all", "/stderr", ADVICE),
    known("no model at all", "/exit", CODES),
    known("a model without a key", "/stderr", ADVICE),
    known("a model without a key", "/exit", CODES),
    known("bash that takes too long", "/events/*/result/content/0/text", TIMEOUT),
    known("bash that takes too long", "/events/*/message/content/0/text", TIMEOUT),
    known("bash that takes too long", "/session/0/entries/*/message/content/0/text", TIMEOUT),
    known("bash that takes too long", "/requests/*/body/messages/*/content", TIMEOUT),
    known("*", "/events/*/result/details/truncation/content", REPEATED),
    known("*", "/session/0/entries/*/message/details/truncation/content", REPEATED),
    known("a call that is cut off", "/events", BROKEN),
    known("a call that is cut off", "/session", BROKEN),
    known("edit in other forms", "/requests/*/body/messages/*/tool_calls/0/function/arguments", PREPARED),
    known("edit in other forms", "/events/*/message", PREPARED),
    known("write", "/requests/*/body/messages/*/content", MKDIR),
    known("write", "/events/*/result/content/0/text", MKDIR),
    known("write", "/events/*/message/content/0/text", MKDIR),
    known("write", "/session/0/entries/*/message/content/0/text", MKDIR),
    known("grep", "/requests/*/body/messages/*/content", WINDOWS),
    known("grep", "/events/*/result/content/0/text", WINDOWS),
    known("grep", "/events/*/message/content/0/text", WINDOWS),
    known("grep", "/session/0/entries/*/message/content/0/text", WINDOWS),
    known("find", "/requests/*/body/messages/*/content", LIMIT),
    known("find", "/events/*/result", LIMIT),
    known("find", "/events/*/message", LIMIT),
    known("find", "/session/0/entries/*/message", LIMIT),
    known("go on with claude who is told of changes", "/requests", BY_VALUE),
    known("go on with another model", "/session", CHANGES),
    known("go on with another provider", "/session", CHANGES),
    known("summed up between turns", "/session/0/entries/*/summary", REQUEST),
    known("summed up between turns", "/requests/*/body/messages/*/content", REQUEST),
    known("summed up between turns", "/session/0/entries/*/tokensBefore", LOG),
    known("a summary that is cut", "/events/*/errorMessage", CAP),
    known("an extension that keeps something", "/events", BEGUN),
    known("a command of an extension", "/requests", ASKED),
    known("a command of an extension", "/session", ASKED),
    known("a command of an extension", "/stdout", ASKED),
    known("an extension that cannot be loaded", "/requests", LOADED),
    known("an extension that cannot be loaded", "/session", LOADED),
    known("an extension that cannot be loaded", "/stdout", LOADED),
    known("an extension that cannot be loaded", "/stderr", LOADED),
    known("an extension that cannot be loaded", "/exit", LOADED),
    known("an error in print mode", "/exit", CODES),
    known("tried again in vain in print mode", "/exit", CODES),
    known("a connection that breaks off", "/events/*/message/errorMessage", CAUSE),
    known("a connection that breaks off", "/session/0/entries/*/message/errorMessage", CAUSE),
    known("nobody at the other end", "/events/*/message/errorMessage", CAUSE),
    known("nobody at the other end", "/session/0/entries/*/message/errorMessage", CAUSE),
    known("an answer that is cut in print mode", "/stderr", CUT),
    known("an interrupt in print mode", "/session", ENDS),
    known("an interrupt in json mode", "/events", ENDS),
    known("an interrupt in json mode", "/session", ENDS),
    known("an interrupt while a tool works", "/events", ENDS),
    known("an interrupt while a tool works", "/session", ENDS),
    known("an end in json mode", "/events", ENDS),
    known("an end while a tool works", "/events", ENDS),
    known("an end while a tool works", "/session", ENDS),
];

/// Only 0.87.1.
const OF_0: &[KnownDifference] = &[
    known("a provider without a model", "/requests", PROVIDER),
    known("a provider without a model", "/session", PROVIDER),
    known("a provider without a model", "/stdout", PROVIDER),
    known("a provider without a model", "/exit", PROVIDER),
    known("a call that is cut off", "/requests", BROKEN),
    known("go on with other tools", "/requests/2", TOOLS),
    known("go on with other tools", "/events", TOOLS),
    known("go on with other tools", "/session", TOOLS),
    known("go on with another model", "/requests/2/body/reasoning_effort", CHANGES),
    known("go on with another provider", "/requests/1/body/messages", FOREIGN),
    known("an answer that is cut in print mode", "/exit", CUT),
    known("an end in print mode", "/session", ENDS),
    known("an end in json mode", "/session", ENDS),
    known("a line that is cut", "/session", ENDS),
    known("bash that fails", "/events/*/result/isError", DETAILS),
    known("bash that fails", "/session/*/entries/*/message/details", DETAILS),
    known("bash that fails", "/events/*/result/details", DETAILS),
    known("bash that fails", "/events/*/message/details", DETAILS),
    known("bash that a signal ends", "/events/*/result/isError", DETAILS),
    known("bash that a signal ends", "/session/*/entries/*/message/details", DETAILS),
    known("bash that a signal ends", "/events/*/result/details", DETAILS),
    known("bash that a signal ends", "/events/*/message/details", DETAILS),
    known("an end in print mode", "/stderr", ABORTED),
    known("a line that is cut", "/stderr", ABORTED),
];

/// Only 1.5.2.
const OF_1: &[KnownDifference] = &[
    known("*", "/session/*/entries/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/session/*/entries/*/usage/cost/totalFromProvider", BILLED),
    known("*", "/events/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/files/*/*/message/usage/cost/totalFromProvider", BILLED),
    known("*", "/events/*/result/usage/cost/totalFromProvider", BILLED),
    known("*", "/events/*/result/structuredContent", STRUCTURED),
    known("calls that are wrong", "/requests/*/body/messages/*/content", VALIDATION),
    known("calls that are wrong", "/events/*/result/content/*/text", VALIDATION),
    known("calls that are wrong", "/events/*/message/content/*/text", VALIDATION),
    known("calls that are wrong", "/session/*/entries/*/message/content/*/text", VALIDATION),
    known("a tool of an extension", "/requests/*/body/messages/*/content", VALIDATION),
    known("a tool of an extension", "/events/*/result/content/*/text", VALIDATION),
    known("a tool of an extension", "/events/*/message/content/*/text", VALIDATION),
    known("a tool of an extension", "/session/*/entries/*/message/content/*/text", VALIDATION),
];
