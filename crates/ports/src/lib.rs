#![doc = include_str!("../README.md")]

mod session_key;
mod approval;
mod caller;
mod error;
mod guardrail;
mod lease;
mod health;
mod index;
mod question;

pub use approval::{ApprovalBroker, ApprovalDecision, ApprovalRequest, ApprovalSeverity, DenyAll};
pub use caller::{Caller, Sender};
pub use error::{BoxError, PortError};
pub use guardrail::{GuardedCall, Guardrail, GuardrailDecision};
pub use health::{HealthChange, HealthRecords, HealthStore};
pub use index::{EntryChange, OverrideSource, SessionEntry, SessionIndex, SessionRoute};
pub use lease::{LeaseError, LeaseRequest, LeaseWait, RunLease, RunLeases};
pub use pinch_session::store::Fence;
pub use question::{QuestionBroker, QuestionOption, QuestionReply, QuestionRequest, UserQuestion};
pub use session_key::{ChatAddress, PeerKind, SessionKey};
