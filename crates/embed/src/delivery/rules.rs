//! How blocks are made to fit a channel.

use std::ops::Range;

use pinch_stdx::text::utf16_len;

use super::contract::{OutgoingBlock, ReplyId, SinkLimits};
use crate::replies::chunk::{BreakPreference, Chunker, Chunking, Drain};
use crate::replies::piece::{BlockReply, ReplySpan};

/// The block in parts that the channel can take. The same block has the same parts, and they have the same ids, whenever it is split.
pub(super) fn fit(block: OutgoingBlock, limits: SinkLimits) -> Vec<OutgoingBlock> {
    let Some(max_chars) = limits.max_chars.filter(|max| utf16_len(&block.reply.text) > *max) else {
        return vec![block];
    };
    let texts = split(&block.reply.text, max_chars);
    let n_all: u64 = texts.iter().map(|text| text.len() as u64).sum::<u64>().max(1);
    let Range { start, end } = block.id.bytes;
    let n_texts = texts.len();
    let mut n_before = 0;
    let parts = texts.into_iter().enumerate().map(|(at, text)| {
        // What directives and fences took away or added is spread over the parts.
        let place =
            |n: u64| start + u64::try_from(u128::from(end - start) * u128::from(n) / u128::from(n_all)).unwrap_or(0);
        let from = place(n_before);
        n_before += text.len() as u64;
        let to = if at + 1 == n_texts { end } else { place(n_before) };
        let span = ReplySpan { message: block.id.message, bytes: from..to };
        let media_urls = if at == 0 { block.reply.media_urls.clone() } else { Vec::new() };
        OutgoingBlock {
            id: ReplyId::new(&block.id.run, &span),
            reply: BlockReply { text, media_urls, span: Some(span), ..block.reply.clone() },
        }
    });
    parts.collect()
}

/// The text in pieces of at most so many units, cut where it reads best.
fn split(text: &str, max_chars: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let mut chunker = Chunker::new(Chunking {
        min_chars: max_chars.div_ceil(2),
        max_chars,
        preference: BreakPreference::Paragraph,
        flush_on_paragraph: false,
    });
    chunker.append(text);
    while chunker.n_units() > max_chars {
        let n_units = chunker.n_units();
        chunker.drain(Drain::Ready, &mut |text, _| texts.push(text));
        if chunker.n_units() >= n_units {
            break;
        }
    }
    texts.push(chunker.buffered());
    texts.retain(|text| !text.trim().is_empty());
    texts
}

#[cfg(test)]
mod tests {
    use super::super::contract::RunId;
    use super::*;

    #[test]
    fn parts_stay_below_the_limit_and_share_the_place_of_the_block() {
        let text = "A sentence here. ".repeat(40);
        let span = ReplySpan { message: 1, bytes: 10..10 + text.len() as u64 };
        let id = ReplyId::new(&RunId::from("r"), &span);
        let whole = OutgoingBlock { id, reply: BlockReply { span: Some(span), ..BlockReply::text(text.as_str()) } };
        let limits = SinkLimits::of_chars(100);
        let parts = fit(whole.clone(), limits);
        assert!(parts.iter().all(|part| utf16_len(&part.reply.text) <= 100), "{parts:?}");
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
