//! Anthropic's Messages format.

use http::{HeaderMap, StatusCode};

mod convert;
mod error;
pub mod models;
mod request;
mod stream;
mod system;

use super::{Call, Decoder, Encoding, HttpRequest, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;
use crate::model::Model;

/// Anthropic's Messages format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl WireFormat for Anthropic {
    fn api(&self) -> &'static str {
        ApiId::ANTHROPIC_MESSAGES
    }

    fn encode(&self, call: &Call<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &Call<'_>) -> Box<dyn Decoder> {
        Box::new(stream::AnthropicDecoder::new(call))
    }

    fn refusal(&self, model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(model, status, headers, body)
    }

    fn reencode(&self, call: &Call<'_>, error: &LlmError) -> Option<Encoding> {
        (call.encoding == Encoding::Usual && error::is_strict_limit(error)).then_some(Encoding::PlainTools)
    }
}

/// Whether a key is a subscription's access token, which is used the way Claude Code does.
fn is_subscription_token(key: &str) -> bool {
    key.contains("sk-ant-oat")
}

/// Names that requests of a subscription write in this case.
const CLAUDE_CODE_TOOLS: [&str; 17] = [
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillShell",
    "NotebookEdit",
    "Skill",
    "Task",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

/// A tool's name as it is sent.
fn sent_name(name: &str, subscription: bool) -> &str {
    let known = CLAUDE_CODE_TOOLS.iter().find(|known| subscription && known.eq_ignore_ascii_case(name));
    known.copied().unwrap_or(name)
}
