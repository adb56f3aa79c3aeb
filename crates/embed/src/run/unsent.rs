//! Determines what is left to send after a run that delivered blocks.

use std::ops::Range;

use super::payloads::Payload;
use crate::delivery::{Delivered, OutgoingBlock};
use crate::replies::piece::{BlockReply, ReplySpan};

/// Returns what is left to send after a run that delivered blocks: each payload, or the part of it, that the sink did not accept. Failures
/// are always included. [Unconfirmed](Delivered::unconfirmed) blocks are not, since they may have arrived, and neither are
/// [withheld](Delivered::withheld) ones.
pub fn still_to_send(payloads: Vec<Payload>, delivered: &Delivered) -> Vec<Payload> {
    let mut done = Coverage::default();
    let confirmed = delivered.blocks.iter().map(|block| &block.block);
    let sent: Vec<&OutgoingBlock> = confirmed.chain(&delivered.unconfirmed).chain(&delivered.withheld).collect();
    sent.iter().filter_map(|block| block.reply.span.as_ref()).for_each(|span| done.add(span));
    let left = |span: &ReplySpan, done: &Coverage| -> Vec<BlockReply> {
        let touches = |block: &&OutgoingBlock| {
            let of_block = &block.reply.span;
            of_block.as_ref().is_some_and(|own| {
                let overlaps = own.bytes.start < span.bytes.end && span.bytes.start < own.bytes.end;
                own.message == span.message && overlaps && !done.has_all(own)
            })
        };
        delivered.not_sent().filter(touches).map(|block| block.reply.clone()).collect()
    };
    let mut rest = Vec::new();
    for payload in payloads {
        let span = payload.reply.span.as_ref();
        match span {
            _ if payload.is_error => rest.push(payload),
            None if sent.iter().any(|block| is_same(&block.reply, &payload.reply)) => {}
            Some(span) if done.has_all(span) => {}
            Some(span) if done.n_covered(span) > 0 => {
                for reply in left(span, &done) {
                    reply.span.iter().for_each(|span| done.add(span));
                    rest.push(Payload { reply, is_error: false });
                }
            }
            None | Some(_) => rest.push(payload),
        }
    }
    rest
}

/// Returns unsent blocks of a failed run as payloads.
pub(crate) fn unsent_blocks(delivered: &Delivered) -> Vec<Payload> {
    delivered.not_sent().map(|block| Payload { reply: block.reply.clone(), is_error: false }).collect()
}

/// Parts of answers, as byte ranges.
#[derive(Clone, Debug, Default)]
struct Coverage(Vec<(u32, Range<u64>)>);

impl Coverage {
    fn add(&mut self, span: &ReplySpan) {
        self.0.push((span.message, span.bytes.clone()));
        self.0.sort_by_key(|(message, bytes)| (*message, bytes.start));
    }

    /// Returns how many bytes of a span are covered.
    fn n_covered(&self, span: &ReplySpan) -> u64 {
        let (mut at, mut n) = (span.bytes.start, 0);
        for (_, bytes) in self.0.iter().filter(|(message, _)| *message == span.message) {
            let (start, end) = (bytes.start.max(at), bytes.end.min(span.bytes.end));
            if start < end {
                n += end - start;
                at = end;
            }
        }
        n
    }

    fn has_all(&self, span: &ReplySpan) -> bool {
        match span.bytes.is_empty() {
            true => self.0.contains(&(span.message, span.bytes.clone())),
            false => self.n_covered(span) == span.bytes.end - span.bytes.start,
        }
    }
}

fn is_same(block: &BlockReply, reply: &BlockReply) -> bool {
    block.text.trim() == reply.text.trim()
        && block.media_urls == reply.media_urls
        && block.reply_to_id == reply.reply_to_id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{DeliveredBlock, Receipt, ReplyId, RunId};

    fn block(bytes: Range<u64>, text: &str) -> OutgoingBlock {
        let span = ReplySpan { message: 1, bytes };
        OutgoingBlock {
            id: ReplyId::new(&RunId::from("r"), &span),
            reply: BlockReply { span: Some(span), ..BlockReply::text(text) },
        }
    }

    fn sent(block: OutgoingBlock) -> DeliveredBlock {
        DeliveredBlock { block, receipt: Receipt::default() }
    }

    fn payloads() -> Vec<Payload> {
        let answer = |bytes, text| Payload { reply: block(bytes, text).reply, is_error: false };
        vec![answer(0..3, "one"), answer(3..6, "two"), Payload::error("failed")]
    }

    fn left(delivered: &Delivered) -> Vec<String> {
        still_to_send(payloads(), delivered).into_iter().map(|payload| payload.reply.text).collect()
    }

    #[test]
    fn delivered_blocks_are_not_sent_again() {
        let joined = Delivered { blocks: vec![sent(block(0..6, "one\n\ntwo"))], ..Delivered::default() };
        assert_eq!(left(&joined), ["failed"]);
        assert_eq!(left(&Delivered::default()), ["one", "two", "failed"]);
        let first = Delivered {
            blocks: vec![sent(block(0..3, "one"))],
            remaining: vec![block(3..6, "two")],
            ..Delivered::default()
        };
        assert_eq!(left(&first), ["two", "failed"]);
        let unconfirmed = Delivered { unconfirmed: Some(block(3..6, "two")), ..first.clone() };
        assert_eq!(left(&unconfirmed), ["failed"]);
    }

    #[test]
    fn only_the_unsent_part_of_a_payload_is_left() {
        let cut = Delivered {
            blocks: vec![sent(block(0..2, "on"))],
            remaining: vec![block(2..4, "e t"), block(4..6, "wo")],
            ..Delivered::default()
        };
        assert_eq!(left(&cut), ["e t", "wo", "failed"]);
    }
}
