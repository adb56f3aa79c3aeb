//! Turns with tool calls: the cost of the loop, the log and the requests.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use super::{Figure, median, process};
use crate::transcript::TranscriptSetup;

const N_TURNS: usize = 50;

/// Fifty turns that each read a small file.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let setup = TranscriptSetup::new()?;
    std::fs::write(setup.folder().join("a.txt"), "one line\n")?;
    let arguments = json!({"path": "a.txt"}).to_string();
    let n_asked = AtomicUsize::new(0);
    setup.server.answer_with(move |_| {
        let turn = n_asked.fetch_add(1, Ordering::Relaxed) % (N_TURNS + 1);
        let response = AnthropicResponse::new(&format!("msg_{turn}"));
        Some(ServerReply::sse(if turn == N_TURNS {
            response.text("done").stop("end_turn").concat()
        } else {
            response.tool_call(&format!("toolu_{turn}"), "read", &arguments).stop("tool_use").concat()
        }))
    });
    let run = || process::run(&mut setup.command(pinch, &["-p", "read it fifty times"]), true);
    let all = (0..5).map(|_| run()).collect::<anyhow::Result<Vec<_>>>()?;
    let memory = all.iter().map(|ran| ran.peak_mb).fold(0.0, f64::max);
    let seconds = median(all.iter().map(|ran| ran.time.as_secs_f64()).collect());
    Ok(vec![
        Figure::at_most(format!("{N_TURNS} tool turns"), seconds, 0.25, "s"),
        Figure::at_most(format!("{N_TURNS} tool turns, memory"), memory, 30.0, "MB"),
    ])
}
