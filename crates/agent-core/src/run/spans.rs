//! Spans for turns and calls, with stable names and fields, which follow OpenTelemetry's conventions for generative AI where they apply.
//! They cost nothing without a subscriber. `docs/observability.md` lists them.

use pinch_llm::message::{AssistantMessage, ToolCall};
use tracing::Span;
use tracing::field::Empty;

use crate::agent::Agent;

/// Creates the span of a model call and the tool calls of its answer.
pub(super) fn turn(agent: &Agent) -> Span {
    let model = &agent.model;
    tracing::info_span!(
        "turn",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider.as_str(),
        gen_ai.request.model = model.id.as_str(),
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
    )
}

/// Records how the model answered.
pub(super) fn record_answer(span: &Span, answer: &AssistantMessage) {
    if span.is_disabled() {
        return;
    }
    let usage = &answer.usage;
    span.record("gen_ai.response.model", answer.model.as_str());
    span.record("gen_ai.response.finish_reasons", answer.stop_reason.as_str());
    span.record("gen_ai.usage.input_tokens", usage.input + usage.cache_read + usage.cache_write);
    span.record("gen_ai.usage.output_tokens", usage.output);
}

/// Creates the span of a tool call, from its start to its result.
pub(super) fn tool(call: &ToolCall) -> Span {
    tracing::info_span!(
        "tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        failed = Empty,
        duration_ms = Empty,
    )
}

/// Records how the current call ended.
pub(super) fn record_result(failed: bool, duration_ms: i64) {
    let span = Span::current();
    span.record("failed", failed);
    span.record("duration_ms", duration_ms);
}
