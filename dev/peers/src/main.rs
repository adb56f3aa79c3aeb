//! One streamed answer through one client: `peers CLIENT FORMAT BASE-URL`, where a client is `pinch`, `genai` or `rig`.
//!
//! Prints one line of JSON: how many pieces of text arrived, their bytes, the seconds from the call to its end by the clock, and those of
//! the processor. Every client gets a runtime of one thread and only collects events; each is used as its documentation says.

mod genai_client;
mod pinch_client;
mod rig_client;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// The wire formats, as more than one client speaks them.
#[derive(Clone, Copy)]
enum PeerFormat {
    Anthropic,
    Completions,
    Responses,
    Google,
}

/// What arrived.
#[derive(Default)]
struct EventCount {
    n_deltas: usize,
    n_bytes: usize,
}

impl PeerFormat {
    /// By the name pinch has for it.
    fn of(api: &str) -> Option<Self> {
        Some(match api {
            "anthropic-messages" => Self::Anthropic,
            "openai-completions" => Self::Completions,
            "openai-responses" => Self::Responses,
            "google-generative-ai" => Self::Google,
            _ => return None,
        })
    }
}

impl EventCount {
    fn add(&mut self, text: &str) {
        self.n_deltas += 1;
        self.n_bytes += text.len();
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [client, api, base_url] = &args[..] else {
        eprintln!("usage: peers CLIENT FORMAT BASE-URL");
        return ExitCode::FAILURE;
    };
    match run(client, api, base_url) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{client} on {api}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(client: &str, api: &str, base_url: &str) -> anyhow::Result<String> {
    let format = PeerFormat::of(api).context("no such format")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (began, began_cpu) = (Instant::now(), cpu_seconds());
    let count = runtime.block_on(async {
        match client {
            "pinch" => pinch_client::stream(format, base_url).await,
            "genai" => genai_client::stream(format, base_url).await,
            "rig" => rig_client::stream(format, base_url).await,
            _ => anyhow::bail!("no such client"),
        }
    });
    let (seconds, cpu_seconds) = (began.elapsed().as_secs_f64(), cpu_seconds() - began_cpu);
    let count = count.context("the answer did not end well")?;
    let line = json!({"deltas": count.n_deltas, "bytes": count.n_bytes, "seconds": seconds, "cpuSeconds": cpu_seconds});
    Ok(line.to_string())
}

/// Processor time of this program so far, all threads together.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
