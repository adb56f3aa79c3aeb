//! A place in a line, in bytes and in columns.

/// Goes through the space and the markers at the beginning of a line. Tabs reach to the next multiple of four columns, and a marker may take a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineCursor<'a> {
    /// What follows.
    rest: &'a str,
    /// The column it begins at.
    column: usize,
    /// Columns before it that are left of a tab.
    spare: usize,
}

impl<'a> LineCursor<'a> {
    /// At the beginning of a line.
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line, column: 0, spare: 0 }
    }

    /// What follows, without what is left of a tab.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Spaces that stand for what is left of a tab.
    pub(super) fn spare(&self) -> &'static str {
        &"    "[..self.spare.min(4)]
    }

    /// Columns of the space ahead.
    pub(super) fn indent(&self) -> usize {
        let mut cursor = *self;
        cursor.skip(usize::MAX)
    }

    /// Skips space, `columns` at most, and returns how many columns it was.
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
