//! Rows that go into the scrollback, and those that do not yet.

use super::{TranscriptEntry, ViewCx};
use crate::Row;

impl TranscriptEntry {
    /// Takes the rows that never change, except for those that were taken before. An entry that is settled has no others.
    pub(in crate::transcript) fn take_rows(&mut self, cx: ViewCx<'_>, is_first: bool) -> Vec<Row> {
        let (is_new, rows) = match self {
            Self::AnswerView(answer) | Self::Text(answer) => (!answer.is_begun(), answer.take_rows(cx)),
            _ if self.is_settled() => (true, self.content(cx)),
            _ => return Vec::new(),
        };
        self.begun(rows, is_new, cx, is_first)
    }

    /// Returns the rows that were not taken.
    pub(in crate::transcript) fn remaining_rows(&mut self, cx: ViewCx<'_>, is_first: bool) -> Vec<Row> {
        let (is_new, rows) = match self {
            Self::AnswerView(answer) | Self::Text(answer) => (!answer.is_begun(), answer.remaining_rows(cx)),
            _ => (true, self.content(cx)),
        };
        self.begun(rows, is_new, cx, is_first)
    }

    /// Puts what belongs before its own first row above rows.
    fn begun(&self, mut rows: Vec<Row>, is_new: bool, cx: ViewCx<'_>, is_first: bool) -> Vec<Row> {
        if is_new && !rows.is_empty() && self.n_before(cx, is_first) > 0 {
            rows.insert(0, if cx.options.plain { Row::from(self.role()) } else { Row::default() });
        }
        rows
    }
}
