//! A position in a line, in bytes and in columns.

/// Scans the space and the markers at the beginning of a line. Tabs reach to the next multiple of four columns, and a marker may take part
/// of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineCursor<'a> {
    /// The rest of the line.
    rest: &'a str,
    /// Its starting column.
    column: usize,
    /// Columns before it that remain of a tab.
    spare: usize,
}

impl<'a> LineCursor<'a> {
    /// Starts at the beginning of a line.
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line, column: 0, spare: 0 }
    }

    /// Returns the rest of the line, without the remainder of a tab.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Returns spaces for the remainder of a tab.
    pub(super) fn spare(&self) -> &'static str {
        &"    "[..self.spare.min(4)]
    }

    /// Returns the width of the space ahead, in columns.
    pub(super) fn indent(&self) -> usize {
        let mut cursor = *self;
        cursor.skip(usize::MAX)
    }

    /// Skips at most `columns` columns of space, and returns how many were skipped.
    pub(super) fn skip(&mut self, columns: usize) -> usize {
        let mut skipped = self.spare.min(columns);
        self.spare -= skipped;
        while skipped < columns {
            let width = match self.rest.as_bytes().first() {
                Some(b' ') => 1,
                Some(b'\t') => 4 - self.column % 4,
                _ => break,
            };
            let taken = width.min(columns - skipped);
            self.spare = width - taken;
            self.column += width;
            self.rest = &self.rest[1..];
            skipped += taken;
        }
        skipped
    }

    /// Skips the characters of a marker, which are ASCII.
    pub(super) fn advance(&mut self, n_bytes: usize) {
        self.rest = &self.rest[n_bytes..];
        self.column += n_bytes;
        self.spare = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_take_parts_of_tabs() {
        let mut cursor = LineCursor::new(">\t\tcode");
        cursor.advance(1);
        assert_eq!(cursor.indent(), 7);
        assert_eq!(cursor.skip(1), 1);
        assert_eq!((cursor.indent(), cursor.spare()), (6, "  "));
        assert_eq!(cursor.skip(4), 4);
        assert_eq!((cursor.spare(), cursor.rest()), ("  ", "code"));
        assert_eq!(LineCursor::new(" \t x").indent(), 5);
    }
}
