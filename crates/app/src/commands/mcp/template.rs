//! URI templates (RFC 6570, level 1, and `{+name}`), to find the variables of an address for error
//! messages. The server does the real matching.

/// Returns the values of the variables in `uri`. `None` if the template does not match or contains
/// other expressions.
pub(crate) fn filled_in(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let mut filled = Vec::new();
    let (mut template, mut uri) = (template, uri);
    loop {
        let (literal, rest) = template.split_once('{').unwrap_or((template, ""));
        uri = uri.strip_prefix(literal)?;
        if literal.len() == template.len() {
            return uri.is_empty().then_some(filled);
        }
        let (name, rest) = rest.split_once('}')?;
        let name = name.strip_prefix('+').unwrap_or(name);
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '-');
        if name.is_empty() || !name.chars().all(is_plain) {
            return None;
        }
        // Values are as short as possible except the last one, and never empty.
        let next = rest.split('{').next().unwrap_or_default();
        let end = if next.is_empty() {
            // Adjacent variables cannot be separated.
            rest.is_empty().then_some(uri.len())
        } else if rest.len() == next.len() {
            uri.strip_suffix(next).map(str::len)
        } else {
            uri.find(next)
        }?;
        if end == 0 {
            return None;
        }
        filled.push((name.to_owned(), uri[..end].to_owned()));
        (template, uri) = (rest, &uri[end..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, uri: &str) -> Option<String> {
        let filled = filled_in(template, uri)?;
        let filled = filled.iter().map(|(name, value)| format!("{name}={value}"));
        Some(filled.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn addresses_are_taken_apart() {
        for (template, uri, expected) in [
            ("f:///{path}", "f:///a/b", Some("path=a/b")),
            ("f:///{+path}", "f:///a", Some("path=a")),
            (
                "db://{table}/{id}",
                "db://users/7",
                Some("table=users id=7"),
            ),
            (
                "db://{table}/rows/{id}.json",
                "db://u/rows/7.json",
                Some("table=u id=7"),
            ),
            ("f:///{path}", "f:///", None),
            ("f:///{path}", "g:///a", None),
            ("f:///{path}.txt", "f:///a.md", None),
            ("f:///plain", "f:///plain", Some("")),
            ("f:///plain", "f:///plain/more", None),
            ("f:///{a}{b}", "f:///x", None),
            ("f:///{?q}", "f:///?q=1", None),
            ("f:///{", "f:///x", None),
            ("é{x}", "éü", Some("x=ü")),
        ] {
            assert_eq!(
                filled(template, uri).as_deref(),
                expected,
                "{template} {uri}"
            );
        }
    }
}
