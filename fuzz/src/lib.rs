//! Laws of the parts of pinch that read what others wrote: servers, models, clients and files.
//!
//! Each target is a function that takes any bytes and panics if a law is broken. The programs in `src/bin` run it under libFuzzer
//! (`cargo xtask fuzz`); the tests of pinch run it on every input in `corpus`. The functions call what production calls.
//!
//! An input begins with a few bytes of options, followed by the content; see [`input`].

pub mod input;

pub mod sse;

pub mod aws_events;

pub mod websocket;

pub mod answers;

pub mod partial_json;

pub mod session_lines;

pub mod rpc_lines;

pub mod tags;

pub mod directives;

pub mod chunker;

pub mod sanitiser;

pub mod export;

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Name of its program and of its directory in the corpus.
    pub name: &'static str,
    /// Panics if an input breaks a law.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "sse", check: sse::check },
    FuzzTarget { name: "aws_events", check: aws_events::check },
    FuzzTarget { name: "websocket", check: websocket::check },
    FuzzTarget { name: "answers", check: answers::check },
    FuzzTarget { name: "partial_json", check: partial_json::check },
    FuzzTarget { name: "session_lines", check: session_lines::check },
    FuzzTarget { name: "rpc_lines", check: rpc_lines::check },
    FuzzTarget { name: "tags", check: tags::check },
    FuzzTarget { name: "directives", check: directives::check },
    FuzzTarget { name: "chunker", check: chunker::check },
    FuzzTarget { name: "sanitiser", check: sanitiser::check },
    FuzzTarget { name: "export", check: export::check },
];
