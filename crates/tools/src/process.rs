//! Background commands: `exec` starts them, `process` manages them.
//!
//! A [`ProcessRegistry`] owns the running commands. Dropping it kills every command with all its descendants.

mod name;

mod log;

mod keys;

mod host;

mod screen;

mod registry;

mod options;

mod permission;

mod retry;

mod exec_tool;

mod process_tool;

pub use exec_tool::ExecTool;
pub use host::{CommandHosts, ConfiguredHost, ElevatedLevel, ElevatedRules};
pub use keys::{EncodedKeys, encode_keys, encode_paste};
pub use log::{LogSlice, slice_log};
pub use name::session_name;
pub use options::CommandOptions;
pub use process_tool::BackgroundTool;
pub use registry::{CommandLimits, ExitListener, ExitNotice, ExitNotices, ProcessLimits, ProcessRegistry};
