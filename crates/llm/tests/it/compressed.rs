//! Bodies that are compressed unasked, and bodies that end too early.

use std::io::Write;

use pinch_llm::error::LlmErrorKind;
use pinch_testing::server::{Fault, Server, ServerReply};
use pinch_testing::wires::completions;

use crate::support::{end_of, model, request};

const API: &str = "openai-completions";

fn answer() -> String {
    completions::CompletionsResponse::new("c", "m").text(&"hello ".repeat(2_000)).finish("stop").done().concat()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Encodes uncompressed Brotli: a window of 64 KiB, stored blocks, and an empty last one.
fn brotli(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, block) in text.as_bytes().chunks(1 << 16).enumerate() {
        // In the first byte, from the lowest bit: the window; not the last block; a length of four nibbles; stored bytes.
        let head = (block.len() as u32 - 1) << 3 | 1 << 19;
        let head = if at == 0 { head << 1 } else { head };
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out.push(3);
    out
}

#[cfg(feature = "zstd")]
fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

type Coder = fn(&str) -> Vec<u8>;

const CODINGS: &[(&str, Coder)] = &[
    ("gzip", gzip),
    ("x-gzip", gzip),
    ("br", brotli),
    ("deflate", zlib),
    ("deflate", raw_deflate),
    #[cfg(feature = "zstd")]
    ("zstd", zstd),
];

#[tokio::test]
async fn compressed_answers_are_decoded() {
    for (name, coder) in CODINGS {
        for size in [1, 7, usize::MAX] {
            let server = Server::start().await.unwrap();
            let reply = ServerReply::events().header("content-encoding", *name);
            let body = coder(&answer());
            server.reply(body.chunks(size.min(body.len())).fold(reply, |reply, piece| reply.send(piece.to_vec())));
            let end = end_of(request(model(API, &server.url()))).await;
            assert_eq!(end.message.text(""), "hello ".repeat(2_000), "{name} {size} {:?}", end.error);
        }
        // A rejection, and a truncated answer.
        let server = Server::start().await.unwrap();
        let refusal = r#"{"error":{"message":"these are my words"}}"#;
        server.reply(ServerReply::status(400).header("content-encoding", *name).send(coder(refusal)));
        let error = end_of(request(model(API, &server.url()))).await.error.unwrap();
        assert!(error.text.contains("these are my words"), "{name}: {}", error.text);
        let body = coder(&answer());
        server.reply(ServerReply::events().header("content-encoding", *name).send(body[..body.len() / 2].to_vec()));
        let error = end_of(request(model(API, &server.url()))).await.error.unwrap();
        assert_eq!(error.kind, LlmErrorKind::StreamCut, "{name}: {}", error.text);
    }
}

#[tokio::test]
async fn a_small_body_that_becomes_large_is_bounded() {
    let server = Server::start().await.unwrap();
    let chunk = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(100_000));
    server.reply(ServerReply::events().header("content-encoding", "gzip").send(gzip(&chunk.repeat(300))));
    let mut request = request(model(API, &server.url()));
    request.options.max_answer_bytes = Some(1_000_000);
    let error = end_of(request).await.error.unwrap();
    assert!(error.text.contains("max_answer_bytes"), "{}", error.text);
}

#[tokio::test]
async fn the_error_names_an_unknown_encoding() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::events().header("content-encoding", "compress").send("x"));
    let error = end_of(request(model(API, &server.url()))).await.error.unwrap();
    assert_eq!(error.kind, LlmErrorKind::Protocol);
    assert!(error.text.contains("compress"), "{}", error.text);
}

#[tokio::test]
async fn a_stream_that_ends_inside_an_event_is_retryable() {
    for (api, cut) in [
        (API, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he"),
        (API, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he\n\n"),
        (API, "data: {\"id\":\"c\",\"choi"),
        ("mistral-conversations", "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he"),
        ("openai-responses", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"he"),
        ("anthropic-messages", "event: message_start\ndata: {\"type\":\"message_start\",\"mess"),
    ] {
        for fault in [None, Some(Fault::Close)] {
            let server = Server::start().await.unwrap();
            let reply = ServerReply::events().send(cut);
            server.reply(if let Some(fault) = fault { reply.then(fault) } else { reply });
            let error = end_of(request(model(api, &server.url()))).await.error.unwrap();
            assert!(error.retryable(), "{api} {cut:?} {fault:?}: {error:?}");
        }
    }
}
