//! Sanitises text as it arrives.

use crate::text::{SanitizeMode, sanitize};

/// Cleans pieces of a text so that the result equals that of cleaning the whole text.
#[derive(Clone, Debug, Default)]
pub(super) struct TextIntake {
    /// Text that cannot be cleaned yet: a carriage return, or a line from its first control sequence on.
    held: String,
}

impl TextIntake {
    /// Appends text that is final.
    pub(super) fn push(&mut self, piece: &str, out: &mut String) {
        if self.held.starts_with(is_introducer) && !piece.contains('\n') {
            // Only a line feed is sure to end a control sequence.
            self.held.push_str(piece);
            return;
        }
        let text = std::mem::take(&mut self.held) + piece;
        let line = text.rfind('\n').map_or(0, |at| at + 1);
        let certain = match text[line..].find(is_introducer) {
            Some(at) => line + at,
            None => text.len() - usize::from(text.ends_with('\r')),
        };
        out.push_str(&sanitize(&text[..certain], SanitizeMode::Prose));
        text[certain..].clone_into(&mut self.held);
    }

    /// Appends the rest.
    pub(super) fn finish(&mut self, out: &mut String) {
        out.push_str(&sanitize(&std::mem::take(&mut self.held), SanitizeMode::Prose));
    }
}

/// Returns whether a character begins a control sequence.
fn is_introducer(c: char) -> bool {
    matches!(c, '\u{1b}' | '\u{80}'..='\u{9f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_in_pieces_is_cleaned_like_the_whole(
            pieces in prop::collection::vec("(a|\n|\r|\u{1b}|\\[|\\]|;|\u{7}|\\\\|\u{9b}|\u{9d}|3|m|é|\u{202e}){0,4}", 0..12)
        ) {
            let (mut intake, mut out) = (TextIntake::default(), String::new());
            pieces.iter().for_each(|piece| intake.push(piece, &mut out));
            intake.finish(&mut out);
            let whole = pieces.concat();
            prop_assert_eq!(out, sanitize(&whole, SanitizeMode::Prose));
        }
    }
}
