//! Tables of tests.

/// Returns the rows of a table with the columns `a | b`. Indented lines continue a row, and lines
/// with `#` are comments.
pub(crate) fn rows<const N: usize>(table: &str) -> Vec<[String; N]> {
    let table = table.trim().replace("\n    ", " ");
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split('|').map(|it| it.trim().to_owned()));
    rows.map(|row| row.collect::<Vec<_>>().try_into().unwrap())
        .collect()
}
