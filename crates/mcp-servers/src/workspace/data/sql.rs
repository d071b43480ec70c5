//! Makes sure that a text is one question and nothing else.
//!
//! It goes to a database of its own in memory that only takes reading (`database.rs`). What is left to
//! fear is a second statement, or a first one that is no question: `ATTACH` and `VACUUM INTO` open
//! files. Both are told by tokens alone. Where SQLite's tokenizer does something peculiar (variables
//! may have any text in brackets), the characters that begin it are refused.

/// Why a text is no question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SqlFault {
    #[error("sql is empty.")]
    Empty,
    #[error("Only a query that begins with SELECT, WITH or VALUES is possible, not {0}.")]
    NotAQuery(String),
    #[error("Only one query at a time is possible, so there may be nothing behind its semicolon.")]
    Several,
    #[error("{0:?} is not possible in a query outside of quotes. Write the values into it.")]
    Character(char),
    #[error("A quote in sql has no end.")]
    Unended,
}

/// The query without the semicolon at its end.
pub(super) fn query(sql: &str) -> Result<&str, SqlFault> {
    let mut first_word = None;
    let mut end = None;
    let mut characters = sql.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '-' if followed_by(sql, at, "--") => {
                while characters.next_if(|&(_, it)| it != '\n').is_some() {}
                continue;
            }
            '/' if followed_by(sql, at, "/*") => {
                // SQLite takes the end of the text for the end of the comment.
                let stop = sql[at + 2..].find("*/").map_or(sql.len(), |it| at + it + 4);
                while characters.next_if(|&(it, _)| it < stop).is_some() {}
                continue;
            }
            _ if character.is_ascii_whitespace() => continue,
            _ => {}
        }
        if character == ';' {
            end.get_or_insert(at);
            continue;
        }
        if end.is_some() {
            return Err(SqlFault::Several);
        }
        match character {
            '\'' | '"' | '`' => skip_quoted(&mut characters, character)?,
            '[' => {
                let end = characters.find(|&(_, it)| it == ']');
                end.ok_or(SqlFault::Unended)?;
            }
            '$' | '@' | '#' | ':' | '?' | '{' | '}' | '\\' | '\0' => {
                return Err(SqlFault::Character(character));
            }
            _ => {}
        }
        if first_word.is_none() {
            let rest = &sql[at..];
            let length = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
            first_word = Some(&rest[..length.unwrap_or(rest.len())]);
        }
    }
    let word = first_word.ok_or(SqlFault::Empty)?;
    let possible = ["select", "with", "values"];
    if !possible.contains(&word.to_ascii_lowercase().as_str()) {
        let shown = if word.is_empty() { "this" } else { word };
        return Err(SqlFault::NotAQuery(shown.to_owned()));
    }
    Ok(&sql[..end.unwrap_or(sql.len())])
}

fn followed_by(sql: &str, at: usize, what: &str) -> bool {
    sql.get(at..).is_some_and(|rest| rest.starts_with(what))
}

/// Skips to the end of what stands in quotes. A quote inside is written twice.
fn skip_quoted(
    characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    quote: char,
) -> Result<(), SqlFault> {
    loop {
        match characters.next() {
            None => return Err(SqlFault::Unended),
            Some((_, character)) if character == quote => {
                if characters.next_if(|&(_, it)| it == quote).is_none() {
                    return Ok(());
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        SqlFault::{Character, Empty, NotAQuery, Several, Unended},
        *,
    };

    #[test]
    fn questions_pass() {
        for sql in [
            "SELECT 1",
            "select ';' || \"a;b\" || `c;d` || [e;f] -- ; comment",
            "/* ; */ WITH x AS (SELECT 1) SELECT * FROM x",
            "VALUES (1), (2)",
            "SELECT 'it''s; fine'",
            "SELECT 1 - -1 / 2 * 3",
            "SELECT json_extract(a, '$.b') FROM t",
        ] {
            assert_eq!(query(sql), Ok(sql), "{sql}");
        }
        assert_eq!(query("SELECT 1;"), Ok("SELECT 1"));
        assert_eq!(query("SELECT 1 ; ; -- done\n ; /* really"), Ok("SELECT 1 "));
    }

    #[test]
    fn everything_else_does_not() {
        let not = |word: &str| NotAQuery(word.to_owned());
        for (sql, expected) in [
            ("", Empty),
            (" ; -- nothing", Empty),
            ("ATTACH 'x.db' AS y", not("ATTACH")),
            ("/**/attach 'x.db' AS y", not("attach")),
            ("PRAGMA query_only = 0", not("PRAGMA")),
            ("VACUUM INTO 'x.db'", not("VACUUM")),
            ("DELETE FROM t", not("DELETE")),
            ("EXPLAIN SELECT 1", not("EXPLAIN")),
            ("(SELECT 1)", not("this")),
            ("selectx 1", not("selectx")),
            ("SELECT 1; ATTACH 'x.db' AS y", Several),
            ("SELECT 1;;SELECT 2", Several),
            ("SELECT 1 --\n; DROP TABLE t", Several),
            ("SELECT 1 /* */; DROP TABLE t", Several),
            ("SELECT ''';'; ATTACH 'x' AS y", Several),
            ("SELECT 'a", Unended),
            ("SELECT \"a\"\"", Unended),
            ("SELECT [a", Unended),
            // A variable of SQLite's may have a quote in brackets, which is none then.
            ("SELECT $a(');ATTACH 'x' AS y;--')", Character('$')),
            ("SELECT :a", Character(':')),
            ("SELECT ?", Character('?')),
            ("SELECT 1\0; ATTACH 'x' AS y", Character('\0')),
        ] {
            assert_eq!(query(sql), Err(expected), "{sql}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(sql in "(SELECT )?[a;'\"`\\[\\]/*\n -]{0,30}", odd in "\\PC{0,20}") {
            let _ = query(&odd);
            if let Ok(query) = query(&sql) {
                prop_assert!(sql.starts_with(query));
            }
        }
    }
}
