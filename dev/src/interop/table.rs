//! Rows of check results.

/// Collects rows and prints each one immediately.
#[derive(Default)]
pub(super) struct ResultTable {
    n_passed: usize,
    n_failed: usize,
}

impl ResultTable {
    /// Adds a row: the peer, what was checked, and the result.
    pub(super) fn row(&mut self, with: &str, what: &str, result: Result<String, String>) {
        let (verdict, detail) = match &result {
            Ok(detail) => ("ok", detail),
            Err(why) => ("FAILED", why),
        };
        match result {
            Ok(_) => self.n_passed += 1,
            Err(_) => self.n_failed += 1,
        }
        println!("  {with:<24} {what:<34} {verdict:<7} {detail}");
    }

    /// Prints the totals; returns true if nothing failed.
    pub(super) fn finish(self) -> bool {
        println!("\n{} held, {} failed", self.n_passed, self.n_failed);
        self.n_failed == 0
    }
}
