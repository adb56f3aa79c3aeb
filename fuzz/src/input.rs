//! Interpreting an input: its options, and how its content is cut into chunks.

/// Splits an input into `N` bytes of options and the content. Shorter inputs are padded with zeros.
pub fn options<const N: usize>(data: &[u8]) -> ([u8; N], &[u8]) {
    match data.split_first_chunk() {
        Some((options, content)) => (*options, content),
        None => {
            let mut options = [0; N];
            options[..data.len()].copy_from_slice(data);
            (options, &[])
        }
    }
}

/// The ways in which a content is cut: whole, into single characters, and at random places.
pub const ALL_CUTS: [fn(u8) -> Cuts; 3] = [|_| Cuts::Whole, |_| Cuts::Single, Cuts::Random];

/// A way to cut a content into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Not at all.
    Whole,
    /// Into single bytes or characters.
    Single,
    /// Into chunks of random length. The lower three bits limit it.
    Random(u8),
}

impl Cuts {
    /// Cuts bytes.
    pub fn bytes(self, content: &[u8]) -> Vec<&[u8]> {
        let mut rest = content;
        let chunks = self.lengths(content.len()).into_iter().map(|n| {
            let (chunk, after) = rest.split_at(n);
            rest = after;
            chunk
        });
        chunks.collect()
    }

    /// Cuts text between characters.
    pub fn text(self, content: &str) -> Vec<&str> {
        let (mut chunks, mut start, mut end) = (Vec::new(), 0, 0);
        for n in self.lengths(content.len()) {
            end += n;
            if end > start && content.is_char_boundary(end) {
                chunks.push(&content[start..end]);
                start = end;
            }
        }
        chunks
    }

    fn lengths(self, len: usize) -> Vec<usize> {
        let (mut state, most) = match self {
            Self::Whole => return vec![len],
            Self::Single => return vec![1; len],
            Self::Random(seed) => (u32::from(seed) + 1, 1 << (seed & 7)),
        };
        let (mut lengths, mut left) = (Vec::new(), len);
        while left > 0 {
            // A xorshift generator.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let n = (state as usize % most + 1).min(left);
            lengths.push(n);
            left -= n;
        }
        lengths
    }
}

/// Interprets bytes as text; invalid UTF-8 becomes U+FFFD.
pub fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
