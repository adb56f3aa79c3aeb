//! Rows of what was checked.

/// Collects rows and prints each as it comes.
#[derive(Default)]
pub(super) struct ResultTable {
    n_passed: usize,
    n_failed: usize,
}

impl ResultTable {
    /// A row: what was checked with whom, and what came of it.
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

    /// Prints the sum; true when nothing failed.
    pub(super) fn finish(self) -> bool {
        println!("\n{} held, {} failed", self.n_passed, self.n_failed);
        self.n_failed == 0
    }
}
