//! Fits blocks to the limits of a channel.

use std::ops::Range;

use super::contract::{OutgoingBlock, ReplyId, SinkLimits};
use crate::replies::chunk::{BreakPreference, Chunker, Chunking, Drain};
use crate::replies::piece::{BlockReply, ReplySpan};
use crate::replies::unit::TextLimit;

/// Splits a block into parts that the channel accepts. The same block is always split the same way, into parts with the same ids.
pub(super) fn fit(block: OutgoingBlock, limits: SinkLimits) -> Vec<OutgoingBlock> {
    let is_long = limits.text.filter(|limit| !limit.fits(&block.reply.text));
    let max_media = limits.max_media.filter(|max| block.reply.media_urls.len() > *max);
    if is_long.is_none() && max_media.is_none() {
        return vec![block];
    }
    let mut texts = match is_long {
        Some(limit) => split(&block.reply.text, limit),
        None => vec![block.reply.text.clone()],
    };
    // The first parts carry the text, and as many media as allowed.
    let mut media = block.reply.media_urls.chunks(max_media.unwrap_or(usize::MAX)).map(<[String]>::to_vec);
    let n_parts = texts.len().max(media.len());
    texts.resize(n_parts, String::new());
    let n_all: u64 = texts.iter().map(|text| text.len() as u64).sum::<u64>().max(1);
    let Range { start, end } = block.id.bytes;
    let n_texts = texts.len();
    let mut n_before = 0;
    let parts = texts.into_iter().enumerate().map(|(at, text)| {
        // Characters that directives and fences removed or added are distributed over the parts.
        let place =
            |n: u64| start + u64::try_from(u128::from(end - start) * u128::from(n) / u128::from(n_all)).unwrap_or(0);
        let from = place(n_before);
        n_before += text.len() as u64;
        let to = if at + 1 == n_texts { end } else { place(n_before) };
        let span = ReplySpan { message: block.id.message, bytes: from..to };
        let media_urls = media.next().unwrap_or_default();
        OutgoingBlock {
            id: ReplyId::new(&block.id.run, &span),
            reply: BlockReply { text, media_urls, span: Some(span), ..block.reply.clone() },
        }
    });
    parts.collect()
}

/// Splits a text into pieces within a limit, at natural boundaries.
fn split(text: &str, limit: TextLimit) -> Vec<String> {
    let mut texts = Vec::new();
    let mut chunker = Chunker::new(Chunking {
        min_chars: limit.max.div_ceil(2),
        max_chars: limit.max,
        preference: BreakPreference::Paragraph,
        flush_on_paragraph: false,
        unit: limit.unit,
    });
    chunker.append(text);
    chunker.complete();
    while chunker.n_units() > limit.max {
        let n_units = chunker.n_units();
        chunker.drain(Drain::Ready, &mut |text, _| texts.push(text));
        if chunker.n_units() >= n_units {
            break;
        }
    }
    texts.push(chunker.buffered());
    // A limit of a few bytes may not even leave room for a fence.
    let mut fitting = Vec::with_capacity(texts.len());
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        let mut rest = text.as_str();
        while !limit.fits(rest) {
            let (head, tail) = rest.split_at(limit.unit.prefix(rest, limit.max).len());
            if head.is_empty() {
                break;
            }
            fitting.push(head.to_owned());
            rest = tail;
        }
        fitting.push(rest.to_owned());
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::super::contract::RunId;
    use super::*;

    #[test]
    fn parts_respect_the_limit_and_divide_the_span_of_the_block() {
        let text = "A sentence here. ".repeat(40);
        let span = ReplySpan { message: 1, bytes: 10..10 + text.len() as u64 };
        let id = ReplyId::new(&RunId::from("r"), &span);
        let whole = OutgoingBlock { id, reply: BlockReply { span: Some(span), ..BlockReply::text(text.as_str()) } };
        let limits = SinkLimits::of_chars(100);
        let parts = fit(whole.clone(), limits);
        assert!(parts.iter().all(|part| limits.text.unwrap().fits(&part.reply.text)), "{parts:?}");
        let mut at = 10;
        for part in &parts {
            assert_eq!(part.id.bytes.start, at);
            at = part.id.bytes.end;
        }
        assert_eq!(at, whole.id.bytes.end);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let joined = parts.iter().map(|part| part.reply.text.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&joined), words(&text));
        assert_eq!(fit(whole.clone(), limits), parts);
    }
}
