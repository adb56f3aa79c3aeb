//! Decodes text from bytes that arrive in chunks.

/// Decodes UTF-8 chunk by chunk: a character split between two chunks is decoded correctly, and invalid bytes become U+FFFD.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf8Decoder {
    /// The start of a character whose end has not arrived.
    held: [u8; 4],
    n_held: usize,
}

impl Utf8Decoder {
    /// Decodes a chunk and appends it to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        // Add one byte after another until the held character is complete or invalid.
        while self.n_held > 0 {
            let Some((first, rest)) = bytes.split_first() else { return };
            self.held[self.n_held] = *first;
            let joined = &self.held[..=self.n_held];
            match std::str::from_utf8(joined) {
                Ok(text) => {
                    out.push_str(text);
                    self.n_held = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.n_held += 1;
                    bytes = rest;
                }
                Err(_) => {
                    // The new byte does not continue the character, so process it separately.
                    out.push(char::REPLACEMENT_CHARACTER);
                    self.n_held = 0;
                }
            }
        }
        for chunk in bytes.utf8_chunks() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_last = bytes.as_ptr_range().end == invalid.as_ptr_range().end;
            let is_cut = is_last && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if is_cut {
                self.held[..invalid.len()].copy_from_slice(invalid);
                self.n_held = invalid.len();
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.n_held) > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let (mut decoder, mut out) = (Utf8Decoder::default(), String::new());
        for piece in pieces {
            decoder.push(piece, &mut out);
        }
        decoder.finish(&mut out);
        out
    }

    proptest! {
        #[test]
        fn any_split_decodes_like_the_whole(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xF0), Just(0x9F), Just(0x98), Just(0x80), Just(0xE2)], 0..24),
            size in 1_usize..5,
        ) {
            prop_assert_eq!(decode(bytes.chunks(size)), String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn split_characters_are_joined() {
        assert_eq!(decode("a😀é".as_bytes().chunks(1)), "a😀é");
        assert_eq!(decode([&b"\xf0\x9f"[..]]), "\u{fffd}");
    }
}
