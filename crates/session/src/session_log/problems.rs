//! Problems in a session's file.

use super::SessionLog;

impl SessionLog {
    /// Describes problems in the tree of the file, for people. The session is usable nevertheless.
    pub fn problems(&self) -> Vec<String> {
        let name = self.path().map_or_else(|| self.id().to_string(), |path| path.display().to_string());
        let (n_duplicates, n_cycles) = (self.index.n_duplicates(), self.index.n_cycles);
        let mut problems = Vec::new();
        if n_duplicates > 0 {
            problems.push(format!(
                "session {name}: {n_duplicates} entries have the id of a later entry; the later ones are used"
            ));
        }
        if n_cycles > 0 {
            problems.push(format!(
                "session {name}: {n_cycles} cycles among the entries' parents were cut; the first entry of each is a root"
            ));
        }
        problems
    }

    /// Returns the number of skipped lines, which are not entries.
    pub fn n_skipped(&self) -> usize {
        self.index.n_skipped
    }
}
