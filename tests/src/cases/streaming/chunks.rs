//! Splitting and joining: the chunker, the coalescer, the pipeline behind them, and properties of their output.

use std::time::Duration;

use pinch_embed::replies::chunk::{BreakPreference, Chunker, Chunking, Drain};
use pinch_embed::replies::coalesce::{Coalesce, Coalescing};
use pinch_embed::replies::dedupe::Dedupe;
use pinch_embed::replies::piece::{Piece, Pieces};
use pinch_embed::replies::{Stage, code::CodeState};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::parts::{payload_value, reply};
use super::{strings, text};

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    Some(match op {
        "chunker.drain_once" => {
            let mut chunker = Chunker::new(chunking(&input["options"]));
            let mut blocks = Vec::new();
            chunker.append(text(&input["text"]));
            let drain = if input["force"] == true { Drain::All } else { Drain::Ready };
            chunker.drain(drain, &mut |block, _| blocks.push(block));
            Ok(json!({"blocks": blocks, "buffered": chunker.buffered()}))
        }
        "chunker.stream" => {
            let mut chunker = Chunker::new(chunking(&input["options"]));
            let mut blocks = Vec::new();
            for piece in strings(&input["appends"]) {
                chunker.append(&piece);
                if input["drain_after_each_append"] == true {
                    chunker.drain(Drain::Ready, &mut |block, _| blocks.push(block));
                }
            }
            if input["final_force"] == true {
                chunker.drain(Drain::All, &mut |block, _| blocks.push(block));
            }
            Ok(json!({"blocks": blocks, "buffered": chunker.buffered()}))
        }
        "coalescer.timeline" => paused(timeline(input)),
        "pipeline.enqueue_then_flush" => paused(pipeline(input)),
        _ => return None,
    })
}

/// Chunking options in the form used by cases and configuration.
pub(super) fn chunking(options: &Value) -> Chunking {
    let number =
        |name: &str, default: usize| options[name].as_f64().map_or(default, |number| number.max(0.0).floor() as usize);
    Chunking {
        min_chars: number("minChars", 800),
        max_chars: number("maxChars", 1200),
        preference: match text(&options["breakPreference"]) {
            "newline" => BreakPreference::Newline,
            "sentence" => BreakPreference::Sentence,
            _ => BreakPreference::Paragraph,
        },
        flush_on_paragraph: options["flushOnParagraph"] == true,
        ..Chunking::default()
    }
}

fn coalescing(config: &Value) -> Coalescing {
    let number = |name: &str, default: u64| config[name].as_u64().unwrap_or(default);
    Coalescing {
        min_chars: usize::try_from(number("minChars", 800)).unwrap_or(usize::MAX),
        max_chars: usize::try_from(number("maxChars", 1200)).unwrap_or(usize::MAX),
        idle: Duration::from_millis(number("idleMs", 1000)),
        joiner: config["joiner"].as_str().unwrap_or("\n\n").to_owned(),
        flush_on_enqueue: config["flushOnEnqueue"] == true,
        ..Coalescing::default()
    }
}

fn paused<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

async fn timeline(input: &Value) -> Result<Value, String> {
    let mut stage = Coalesce::new(coalescing(&input["config"]));
    let start = Instant::now();
    let mut flushes: Vec<Value> = Vec::new();
    for step in input["steps"].as_array().into_iter().flatten() {
        let at = start + Duration::from_millis(step["atMs"].as_u64().unwrap_or(0));
        run_until(&mut stage, Some(at), start, &mut flushes).await;
        let mut out = Pieces::new();
        if step.get("enqueue").is_some() {
            stage.push(Piece::Block(reply(&step["enqueue"])), &mut out);
        } else if step["flush"] == true {
            stage.push(Piece::Flush, &mut out);
        }
        record(out, start, &mut flushes);
    }
    run_until(&mut stage, None, start, &mut flushes).await;
    Ok(json!({"flushes": flushes, "buffered": stage.has_buffered()}))
}

/// Wakes the stage whenever it requests it, until a point in time or until it has no more requests.
async fn run_until(stage: &mut Coalesce, until: Option<Instant>, start: Instant, flushes: &mut Vec<Value>) {
    while let Some(at) = stage.wake_at().map(|at| Instant::from_std(at.at())) {
        if until.is_some_and(|until| until < at) {
            break;
        }
        tokio::time::sleep_until(at).await;
        let mut out = Pieces::new();
        stage.push(Piece::Wake, &mut out);
        record(out, start, flushes);
    }
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}

fn record(out: Pieces, start: Instant, flushes: &mut Vec<Value>) {
    let at = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    for piece in out {
        if let Piece::Block(block) = piece {
            let mut value = payload_value(&block, &Value::Null);
            value["atMs"] = at.into();
            flushes.push(value);
        }
    }
}

async fn pipeline(input: &Value) -> Result<Value, String> {
    let mut dedupe = Dedupe::default();
    let (mut coalesced, mut out) = (Pieces::new(), Pieces::new());
    let payloads = input["payloads"].as_array().into_iter().flatten();
    if input["coalescing"].is_null() {
        coalesced.extend(payloads.map(|payload| Piece::Block(reply(payload))));
    } else {
        let mut stage = Coalesce::new(coalescing(&input["coalescing"]));
        let mut seen = Dedupe::default();
        for block in payloads.map(reply).filter(|block| seen.is_new(block)) {
            stage.push(Piece::Block(block), &mut coalesced);
        }
        stage.finish(&mut coalesced);
    }
    for piece in coalesced {
        dedupe.push(piece, &mut out);
    }
    let sent: Vec<Value> = out
        .iter()
        .filter_map(|piece| match piece {
            Piece::Block(block) => Some(payload_value(block, &Value::Null)),
            _ => None,
        })
        .collect();
    Ok(json!({"didStream": !sent.is_empty(), "sent": sent, "aborted": false}))
}

/// Checks properties of an output.
pub(super) fn hold(properties: &[Value], input: &Value, actual: &Value) -> Result<(), String> {
    let actual = actual.get("$outputs").unwrap_or(actual);
    let blocks = if actual["blocks"].is_array() {
        strings(&actual["blocks"])
    } else {
        actual["calls"].as_array().into_iter().flatten().map(|call| text(&call["text"]).to_owned()).collect()
    };
    for property in properties.iter().map(text) {
        let (name, argument) = property.split_once(':').unwrap_or((property, ""));
        let holds = match name {
            "fences_balanced_in_every_block" => blocks.iter().all(|block| is_balanced(block)),
            "content_preserved_modulo_added_fence_lines" => {
                let given = if input["text"].is_string() {
                    text(&input["text"]).to_owned()
                } else {
                    strings(&input["appends"]).concat()
                };
                content_lines(&given) == blocks.iter().flat_map(|block| content_lines(block)).collect::<Vec<_>>()
            }
            "no_block_longer_than_maxChars" => {
                let max = chunking(&input["options"]).max_chars;
                blocks.iter().all(|block| pinch_llm::stdx::text::utf16_len(block) <= max)
            }
            "no_split_inside_a_line_that_fits" => {
                let given = text(&input["text"]);
                blocks.iter().flat_map(|block| block.lines()).all(|line| given.lines().any(|known| known == line))
            }
            "no_call_text_contains" => !blocks.iter().any(|block| block.contains(argument)),
            "joined_words_equal" => blocks.join(" ").split_whitespace().eq(argument.split_whitespace()),
            _ => return Err(format!("unknown property {property}")),
        };
        if !holds {
            return Err(format!("{property} does not hold for {blocks:?}"));
        }
    }
    Ok(())
}

/// Whether every fence in a block is closed in the same block.
fn is_balanced(block: &str) -> bool {
    let mut code = CodeState::default();
    block.chars().chain(['\n']).for_each(|c| {
        code.push(c);
    });
    !code.in_fence()
}

/// The lines that are neither fences nor blank.
fn content_lines(text: &str) -> Vec<String> {
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    text.lines().filter(|line| !is_fence(line) && !line.trim().is_empty()).map(str::to_owned).collect()
}
