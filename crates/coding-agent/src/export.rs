//! Sessions for other people's eyes. A session as one JSONL file is [`SessionLog::export_to`](crate::session_log::SessionLog::export_to).

pub mod html;
