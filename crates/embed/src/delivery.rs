//! stub
use crate::replies::piece::{BlockReply, Piece};
/// stub
#[derive(Clone, Debug)]
pub enum ReplyEvent {
    /// b
    BlockReply(BlockReply),
    /// o
    Other(Piece),
}
impl ReplyEvent {
    /// x
    pub fn of(piece: Piece) -> Self {
        match piece {
            Piece::Block(b) => Self::BlockReply(b),
            o => Self::Other(o),
        }
    }
}
