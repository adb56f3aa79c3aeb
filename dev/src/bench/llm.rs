//! The wire decoders, compared with the practical limit, and the whole client, compared with those of other crates.
//!
//! **The limit.** Any reader of a streamed answer must find its lines and parse the JSON in them. [`limit`] does only that, in memory, with
//! memchr and serde_json, and keeps nothing; a faster decoder would have to skip some of this work. Our decoders do all of it and more:
//! extract frames from chunks of 16 KiB, distinguish the events of the format, collect the message, and emit events that own their text.
//! Staying within twice the limit means that all this costs no more than the JSON itself. Amazon's frames have checksums that every reader
//! must verify; for that format the limit includes them ("checked", which for all other formats repeats "read").
//!
//! **The peers.** `dev/peers` is one program with three clients: ours, `genai` and `rig-core`. It calls a loopback server that writes the
//! prepared answer as fast as the socket accepts it, and counts what arrives.
//!
//! All figures are the best of several rounds: other load on the machine can only make a round slower. Decoders are measured in processor
//! time, clients also in elapsed time.

mod limit;
mod peers;

use anyhow::ensure;
use pinch_llm::frame::Framing;
use pinch_llm::wire::{self, WireFormat};
use pinch_testing::wires::Wire;
use pinch_testing::wires::anthropic::AnthropicServer;
use pinch_testing::wires::bedrock::BedrockServer;
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::google::GoogleServer;
use pinch_testing::wires::mistral::MistralServer;
use pinch_testing::wires::responses::ResponsesServer;
use rustix::time::{ClockId, clock_gettime};

use super::{Figure, decoding};
use crate::transcript;

/// Text chunks per answer.
const N_DELTAS: usize = 100_000;
const ROUNDS: usize = 9;

/// The formats in which answers can be written.
const WRITERS: [&dyn Wire; 9] = [
    &AnthropicServer,
    &CompletionsServer,
    &ResponsesServer::OpenAi,
    &ResponsesServer::Azure,
    &ResponsesServer::Codex,
    &GoogleServer::Generative,
    &GoogleServer::Vertex,
    &MistralServer,
    &BedrockServer,
];

/// Best seconds for each way of reading one answer.
struct TimingRow {
    api: &'static str,
    has_checksums: bool,
    megabytes: f64,
    ours: f64,
    skipped: f64,
    read: f64,
    checked: f64,
    kept: f64,
}

/// Measures all compiled-in formats, then the peers if requested and buildable.
pub(super) fn measure(with_peers: bool) -> anyhow::Result<Vec<Figure>> {
    // Built first, because building would disturb the measurement.
    let program = if with_peers { peers::build()? } else { None };
    let mut rows = Vec::new();
    for format in wire::builtin() {
        match writer_of(&*format) {
            Some(writer) => rows.push(row(&*format, &transcript::answer(writer, N_DELTAS))?),
            None => println!("{}: left out, for nothing here writes such answers", format.api()),
        }
    }
    print_rows(&rows);
    let mut figures = Vec::new();
    for row in &rows {
        figures.push(Figure::at_least(format!("{}, text", row.api), speed(row.ours), 2.0, "M delta/s"));
        let (limit, seconds) = match row.has_checksums {
            false => ("the limit", row.read),
            true => ("the limit with checksums", row.checked),
        };
        figures.push(Figure::at_most(format!("{}, against {limit}", row.api), row.ours / seconds, 2.0, "times"));
    }
    match program {
        Some(program) => figures.extend(peers::measure(&program)?),
        None => println!("\nwithout the peers; `cargo xtask bench llm` builds them"),
    }
    Ok(figures)
}

fn writer_of(format: &dyn WireFormat) -> Option<&'static dyn Wire> {
    WRITERS.into_iter().find(|writer| writer.api() == format.api())
}

fn row(format: &dyn WireFormat, body: &[u8]) -> anyhow::Result<TimingRow> {
    let mut row = TimingRow {
        api: format.api(),
        has_checksums: format.framing() == Framing::AwsEvents,
        megabytes: body.len() as f64 / 1e6,
        ours: f64::INFINITY,
        skipped: f64::INFINITY,
        read: f64::INFINITY,
        checked: f64::INFINITY,
        kept: f64::INFINITY,
    };
    for _ in 0..ROUNDS {
        let began = processor_seconds();
        let n_deltas = decoding::decode(format, body)?;
        row.ours = row.ours.min(processor_seconds() - began);
        ensure!(n_deltas == N_DELTAS, "{}: {n_deltas} deltas came out", row.api);
        for (best, parse) in [
            (&mut row.skipped, limit::skip as limit::Parse),
            (&mut row.read, limit::read),
            (&mut row.checked, limit::check),
            (&mut row.kept, limit::keep),
        ] {
            let began = processor_seconds();
            let seen = parse(format.framing(), body)?;
            *best = best.min(processor_seconds() - began);
            ensure!(seen.n_values >= N_DELTAS, "{}: {} values were read", row.api, seen.n_values);
        }
    }
    Ok(row)
}

/// Processor time of this thread so far, which unlike elapsed time does not depend on other load.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Millions of deltas per second.
fn speed(seconds: f64) -> f64 {
    N_DELTAS as f64 / 1e6 / seconds
}

fn print_rows(rows: &[TimingRow]) {
    println!(
        "\n{N_DELTAS} deltas of text; MB/s of every way to read them, and how many times as long as each the decoder takes"
    );
    println!(
        "{:<26} {:>9} {:>7} | {:>8} {:>6} {:>8} {:>7} | {:>8} {:>6} {:>8} {:>7}",
        "format", "M delta/s", "MB/s", "skipped", "read", "checked", "kept", "skipped", "read", "checked", "kept"
    );
    for row in rows {
        let rate = |seconds: f64| row.megabytes / seconds;
        println!(
            "{:<26} {:>9.2} {:>7.0} | {:>8.0} {:>6.0} {:>8.0} {:>7.0} | {:>8.2} {:>6.2} {:>8.2} {:>7.2}",
            row.api,
            speed(row.ours),
            rate(row.ours),
            rate(row.skipped),
            rate(row.read),
            rate(row.checked),
            rate(row.kept),
            row.ours / row.skipped,
            row.ours / row.read,
            row.ours / row.checked,
            row.ours / row.kept
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_measured_on_the_answer_meant() {
        for format in wire::builtin() {
            let Some(writer) = writer_of(&*format) else { continue };
            let body = transcript::answer(writer, 50);
            assert_eq!(decoding::decode(&*format, &body).unwrap(), 50, "{}", format.api());
        }
    }

    #[test]
    fn the_limit_reads_the_frames_that_decoders_get() {
        for format in wire::builtin() {
            let Some(writer) = writer_of(&*format) else { continue };
            let body = transcript::answer(writer, 50);
            let mut frames = pinch_llm::frame::Frames::new(format.framing());
            frames.push(&body);
            let (mut n_frames, mut n_bytes) = (0, 0);
            while let Some(frame) = frames.next_frame().unwrap() {
                if frame.data != "[DONE]" {
                    n_frames += 1;
                    n_bytes += frame.data.len();
                }
            }
            let seen = limit::DecodeCounts { n_values: n_frames, n_bytes };
            for parse in [limit::skip as limit::Parse, limit::read, limit::check, limit::keep] {
                assert_eq!(parse(format.framing(), &body).unwrap(), seen, "{}", writer.api());
            }
        }
    }
}
