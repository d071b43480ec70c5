/// A statement that takes several rows of parameters.
///
/// Exists for a few numbers of rows, so that many rows need few statements, and few statements need
/// to be prepared.
#[derive(Debug)]
pub(crate) struct BatchStatement {
    /// Numbers of rows with their statements, the largest first.
    by_rows: [(usize, String); 4],
}

impl BatchStatement {
    /// Creates the statements `before`, then rows of `columns` parameters, then `after`.
    ///
    /// The first parameter of the first row is `$first`.
    pub(crate) fn new(before: &str, first: usize, columns: usize, after: &str) -> Self {
        let by_rows = [256, 64, 8, 1].map(|rows| {
            let row = |row| {
                let first = first + row * columns;
                let parameters = (first..first + columns).map(|number| format!("${number}"));
                format!("({})", parameters.collect::<Vec<_>>().join(", "))
            };
            let all: Vec<String> = (0..rows).map(row).collect();
            (rows, format!("{before}{}{after}", all.join(", ")))
        });
        Self { by_rows }
    }

    /// Returns the largest statement with at most `rows` rows.
    pub(crate) fn at_most(&'static self, rows: usize) -> (usize, &'static str) {
        let [.., smallest] = &self.by_rows;
        let fitting = self.by_rows.iter().find(|(size, _)| *size <= rows);
        let (size, sql) = fitting.unwrap_or(smallest);
        (*size, sql)
    }

    /// Returns the smallest statement with at least `rows` rows, else the largest one.
    ///
    /// The caller fills the other rows with values that have no effect.
    pub(crate) fn at_least(&'static self, rows: usize) -> (usize, &'static str) {
        let [largest, ..] = &self.by_rows;
        let fitting = self.by_rows.iter().rev().find(|(size, _)| *size >= rows);
        let (size, sql) = fitting.unwrap_or(largest);
        (*size, sql)
    }
}
