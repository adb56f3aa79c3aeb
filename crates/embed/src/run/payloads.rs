//! The payloads of a run's result: the error if there was one, the answer, and a note about a failed tool.

use std::borrow::Cow;

use pinch_llm::message::{AssistantMessage, StopReason};

use super::error_text::{RETURNED_ERROR, assistant_error_text};
use crate::delivery::{ReplyId, RunId};
use crate::replies::api_error;
use crate::replies::directives::threading::{ReplyToMode, ThreadFilter, apply_reply_tags};
use crate::replies::directives::{self, DirectiveRules};
use crate::replies::markup::{Unclosed, strip_reasoning, trimmed, visible_of_block};
use crate::replies::normalise::normalise_reply;
use crate::replies::piece::{BlockReply, ReplySpan};
use crate::replies::reasoning::{format_reasoning, reasoning_of};
use crate::replies::scan::{FinalTag, Scan};
use crate::replies::sent::{is_duplicate, normal_form};
use crate::replies::tool_display::aggregate;
use crate::replies::tool_notes::mutating::is_mutating_name;
use crate::replies::tool_notes::{LastToolError, ToolFormat, ToolMeta, Verbose};
use crate::replies::user_text::visible_text;
use crate::replies::{Piece, Pieces, ReasoningLevel};
use crate::texts::{Phrase, TextTable};

/// A message to deliver at the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Payload {
    /// Text, media and thread.
    pub reply: BlockReply,
    /// Whether it reports a failure; failures are never dropped as duplicates.
    pub is_error: bool,
}

impl Payload {
    /// Returns the id of the payload's text, which equals that of the block that delivered it during the run. `None` for failures and for
    /// text that is not part of an answer.
    pub fn id(&self, run: &RunId) -> Option<ReplyId> {
        self.reply.span.as_ref().map(|span| ReplyId::new(run, span))
    }

    /// Creates a payload that reports a failure.
    pub fn error(text: impl Into<String>) -> Self {
        Self { reply: BlockReply::text(text), is_error: true }
    }
}

/// Input for the payloads of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayloadInput<'a> {
    /// Finished tool calls, listed only if `inline_tools` is set.
    pub tool_metas: &'a [ToolMeta],
    /// The last answer of the model.
    pub last_assistant: Option<&'a AssistantMessage>,
    /// The last tool failure that no later success resolved.
    pub last_tool_error: Option<&'a LastToolError>,
    /// How much of the tool activity the user sees.
    pub verbose: Verbose,
    /// How reasoning is shown to the user.
    pub reasoning: ReasoningLevel,
    /// Format of messages about tools.
    pub tool_format: ToolFormat,
    /// Whether tool calls are listed before the answer.
    pub inline_tools: bool,
    /// Whether failed tools are never reported.
    pub suppress_tool_warnings: bool,
    /// Whether failed tools without side effects are not reported (`messages.suppressToolErrors`).
    pub suppress_tool_errors: bool,
    /// Whether only text inside final tags is shown.
    pub enforce_final_tag: bool,
    /// Texts sent by messaging tools: payloads that repeat them are dropped.
    pub sent_texts: &'a [String],
    /// Id of the message that the run answers.
    pub current_message: Option<&'a str>,
    /// Which payloads keep the message they reply to.
    pub reply_to: ReplyToMode,
    /// Which reply directives are recognised; `None`: the default ones.
    pub directives: Option<&'a DirectiveRules>,
    /// Texts for people; `None`: English.
    pub texts: Option<&'a TextTable>,
}

/// Creates the payloads of a run from its visible texts, directives included, with their positions where they have one.
pub fn build_payloads(input: &PayloadInput<'_>, texts: Vec<(String, Option<ReplySpan>)>) -> Vec<Payload> {
    let mut payloads: Vec<Payload> = Vec::new();
    let failed = input.last_assistant.filter(|message| message.stop_reason == StopReason::Error);
    let english = TextTable::default();
    let phrases = input.texts.unwrap_or(&english);
    let error = failed.and_then(|message| assistant_error_text(message, phrases));
    payloads.extend(error.clone().map(Payload::error));
    if input.inline_tools && input.verbose > Verbose::Off {
        payloads.extend(input.tool_metas.iter().map(|meta| {
            let metas: Vec<String> = meta.meta.iter().cloned().collect();
            let reply = BlockReply::text(aggregate(&meta.tool_name, &metas, input.tool_format == ToolFormat::Markdown));
            Payload { reply, is_error: false }
        }));
    }
    if input.reasoning == ReasoningLevel::On {
        let reasoning = input
            .last_assistant
            .map(|message| format_reasoning(&reasoning_of(&message.content), phrases.get(Phrase::Reasoning)));
        let reasoning = reasoning.filter(|text| !text.is_empty());
        payloads.extend(reasoning.map(|text| Payload {
            reply: BlockReply { is_reasoning: true, ..BlockReply::text(text) },
            is_error: false,
        }));
    }
    let mut answers: Vec<(Cow<'_, str>, Option<ReplySpan>)> =
        texts.into_iter().map(|(text, span)| (text.into(), span)).collect();
    if input.enforce_final_tag {
        answers.extend(input.last_assistant.and_then(|message| untagged(message, phrases)).map(|text| (text, None)));
    }
    if answers.is_empty() {
        let final_tag = if input.enforce_final_tag { FinalTag::Enforced } else { FinalTag::Optional };
        answers.extend(input.last_assistant.map(|message| (last_words(message, final_tag, phrases), None)));
    }
    if let Some(message) = failed {
        let raw = message.error_message.as_deref().unwrap_or("");
        answers.retain(|(text, _)| !repeats_error(text, error.as_deref().unwrap_or(""), raw, phrases));
    }
    let has_answer = answers.iter().any(|(text, _)| !text.trim().is_empty());
    payloads.extend(answers.into_iter().map(|(text, span)| {
        let mut payload = of_text(text, input.directives);
        payload.reply.span = span;
        payload
    }));
    if let Some(text) = input.last_tool_error.and_then(|error| tool_error_text(error, input, has_answer, phrases)) {
        let known = payloads.iter().any(|payload| normal_form(&payload.reply.text) == normal_form(&text));
        payloads.extend((!known).then(|| Payload::error(text)));
    }
    let mut payloads = finish(payloads, phrases);
    drop_sent(&mut payloads, input.sent_texts);
    let tags = input.directives.map(|rules| rules.tags).unwrap_or_default();
    let mut threads = ThreadFilter::new(input.reply_to);
    for Payload { reply, .. } in &mut payloads {
        apply_reply_tags(reply, input.current_message, tags);
        threads.filter(reply);
    }
    payloads
}

/// Returns the text of an answer. If all of it is inside an unclosed thinking tag, returns the text without the tag.
pub(crate) fn last_words<'a>(message: &'a AssistantMessage, final_tag: FinalTag, phrases: &TextTable) -> Cow<'a, str> {
    let visible = visible_text(&message.content, final_tag, phrases);
    if !visible.trim().is_empty() || message.stop_reason != StopReason::Stop || final_tag == FinalTag::Enforced {
        return visible;
    }
    let whole = message.text("\n");
    if !is_opened_only(&whole) {
        return visible;
    }
    let kept = strip_reasoning(&whole, Unclosed::Preserve);
    visible_of_block(&kept, final_tag).into_owned().into()
}

/// Returns the text of an answer that was meant to be in final tags but has none: the model ignored that it should use them. Otherwise
/// nothing of it would be shown.
fn untagged<'a>(message: &'a AssistantMessage, phrases: &TextTable) -> Option<Cow<'a, str>> {
    let is_whole = matches!(message.stop_reason, StopReason::Stop | StopReason::Length);
    let opens_final = |text: &str| {
        let mut scan = Scan::new(FinalTag::Enforced);
        scan.text(text, &mut Pieces::new());
        scan.has_final()
    };
    let texts = || message.content.iter().filter_map(|block| block.as_text());
    (is_whole && !texts().any(opens_final)).then(|| last_words(message, FinalTag::Optional, phrases))
}

/// Returns whether a text begins with a thinking tag that is never closed.
fn is_opened_only(text: &str) -> bool {
    let (mut scan, mut out) = (Scan::new(FinalTag::Optional), Pieces::new());
    scan.text(text, &mut out);
    scan.settle(&mut out);
    scan.is_thinking() && !out.iter().any(|piece| matches!(piece, Piece::ThoughtEnd))
}

fn of_text(text: Cow<'_, str>, rules: Option<&DirectiveRules>) -> Payload {
    let usual = DirectiveRules::default();
    let parsed = directives::parse_text(text, None, rules.unwrap_or(&usual));
    Payload { reply: parsed.into_reply(BlockReply::default()), is_error: false }
}

/// Applies a voice flag to all media and removes empty payloads.
fn finish(mut payloads: Vec<Payload>, phrases: &TextTable) -> Vec<Payload> {
    let voice = payloads.iter().any(|payload| payload.reply.audio_as_voice);
    for Payload { reply, .. } in &mut payloads {
        reply.text = trimmed(std::mem::take(&mut reply.text));
        reply.audio_as_voice = voice && !reply.media_urls.is_empty();
    }
    payloads.retain_mut(|payload| {
        let has_more = !payload.reply.media_urls.is_empty();
        if !payload.is_error && !payload.reply.is_reasoning {
            match normalise_reply(std::mem::take(&mut payload.reply.text), has_more, None, phrases) {
                Some(text) => payload.reply.text = text,
                None => return false,
            }
        }
        !payload.reply.is_empty()
    });
    payloads
}

/// Returns whether a text of a failed answer only repeats the failure.
fn repeats_error(text: &str, shown: &str, raw: &str, phrases: &TextTable) -> bool {
    let text = text.trim();
    let forms = [shown, raw, &api_error::shown(raw, phrases), RETURNED_ERROR].map(str::trim).map(str::to_owned);
    let repeats = forms.iter().any(|form| {
        !form.is_empty() && (form == text || (!normal_form(form).is_empty() && normal_form(form) == normal_form(text)))
    });
    repeats || api_error::raw_payload(text).is_some()
}

/// Returns whether the model can correct the failure itself, because it called the tool with wrong arguments.
fn is_recoverable(error: &LastToolError) -> bool {
    let text = error.error.as_deref().unwrap_or("").to_lowercase();
    ["required", "missing", "invalid", "must be", "must have", "needs", "requires"]
        .iter()
        .any(|word| text.contains(word))
}

fn tool_error_text(
    error: &LastToolError,
    input: &PayloadInput<'_>,
    has_answer: bool,
    texts: &TextTable,
) -> Option<String> {
    if input.suppress_tool_warnings {
        return None;
    }
    let mutating = error.mutating.unwrap_or_else(|| is_mutating_name(&error.tool_name));
    if !mutating && (has_answer || is_recoverable(error) || input.suppress_tool_errors) {
        return None;
    }
    let metas: Vec<String> = error.meta.iter().cloned().collect();
    let head = aggregate(&error.tool_name, &metas, input.tool_format == ToolFormat::Markdown);
    let detail = error.error.as_deref().filter(|_| input.verbose > Verbose::Off);
    Some(match detail {
        Some(detail) => texts.fill(Phrase::ToolFailedWhy, [("tool", &head), ("error", detail)]),
        None => texts.fill(Phrase::ToolFailed, [("tool", &head)]),
    })
}

/// Removes payloads that repeat what a messaging tool sent during the run. Failures are kept.
fn drop_sent(payloads: &mut Vec<Payload>, sent: &[String]) {
    payloads.retain(|payload| {
        payload.is_error || !payload.reply.media_urls.is_empty() || !is_duplicate(&payload.reply.text, sent)
    });
}
