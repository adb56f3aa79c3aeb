//! One run as data: its request, its decisions and its result. Free of side effects.

pub mod tool_results;

pub mod error_text;

pub mod payloads;

pub(crate) mod unsent;

pub mod client_tools;

pub mod request;

pub mod outcome;

pub mod facts;

pub mod meta;

pub mod result;

pub mod failure;

mod arrangement;

pub mod tools;

pub mod cli_sessions;

pub mod system_prompt;

pub mod scope;

pub mod decide;

pub mod failover;

pub use crate::reason::FailoverReason;
pub use failure::{FailureKind, RunFailure};
pub use outcome::{AttemptEnd, AttemptOutcome, AttemptPlan};
pub use request::{RunRequest, UsageLine};
pub use result::{FailoverError, RunError, RunErrorKind, RunResult};
pub use unsent::still_to_send;
