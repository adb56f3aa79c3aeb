//! A table of check results by peer.

/// Maximum number of characters shown of a line: some contain whole contexts.
const MAX_LINE: usize = 600;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Nothing to check.
    None,
    /// The check passed.
    Ok,
    /// A known difference, with its reason.
    Known(String),
    /// The check failed, with the reason.
    Failed(String),
}

/// Rows and columns.
pub(super) struct Matrix {
    columns: Vec<String>,
    rows: Vec<&'static str>,
    cells: Vec<Vec<Cell>>,
}

impl Matrix {
    /// Creates a table without results.
    pub(super) fn new(columns: Vec<String>, rows: Vec<&'static str>) -> Self {
        let cells = vec![vec![Cell::None; columns.len()]; rows.len()];
        Self { columns, rows, cells }
    }

    /// Records a result.
    pub(super) fn set(&mut self, row: usize, column: usize, cell: Cell) {
        self.cells[row][column] = cell;
    }

    /// Prints the table; returns true if nothing failed.
    pub(super) fn finish(self) -> bool {
        let width = self.rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
        // Two header lines: the version, and the operation.
        for part in 0..2 {
            let head = self.columns.iter().map(|column| column.splitn(2, ' ').nth(part).unwrap_or_default());
            if head.clone().all(str::is_empty) {
                continue;
            }
            println!("  {:<width$} {}", "", head.map(|word| format!("{word:>11}")).collect::<String>());
        }
        let mut notes: Vec<&str> = Vec::new();
        let mut failures = Vec::new();
        let (mut n_held, mut n_known) = (0, 0);
        for (row, cells) in self.rows.iter().zip(&self.cells) {
            let mut line = format!("  {row:<width$} ");
            for (cell, column) in cells.iter().zip(&self.columns) {
                let shown = match cell {
                    Cell::None => "-".to_owned(),
                    Cell::Ok => {
                        n_held += 1;
                        "ok".to_owned()
                    }
                    Cell::Known(why) => {
                        n_known += 1;
                        let at = notes.iter().position(|note| note == why).unwrap_or_else(|| {
                            notes.push(why);
                            notes.len() - 1
                        });
                        format!("known {}", at + 1)
                    }
                    Cell::Failed(why) => {
                        failures.push(format!("{row}, {column}: {why}"));
                        "FAILED".to_owned()
                    }
                };
                line.push_str(&format!("{shown:>11}"));
            }
            println!("{line}");
        }
        println!();
        for (at, note) in notes.iter().enumerate() {
            println!("  known {}: {note}", at + 1);
        }
        for failure in &failures {
            let lines = failure.lines().map(|line| line.chars().take(MAX_LINE).collect::<String>());
            println!("\nFAILED {}", lines.collect::<Vec<_>>().join("\n"));
        }
        println!("\n{n_held} held, {n_known} known differences, {} failed", failures.len());
        failures.is_empty()
    }
}
