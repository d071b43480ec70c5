//! URI templates, as far as it takes to say which variables of one an address fills in (RFC 6570, level 1,
//! and `{+name}`). Whoever made the template takes addresses apart; here it only helps to say what is wrong.

/// The variables that `uri` would fill in, by name; `None` if it is no address of the template, or the
/// template has expressions of other kinds.
pub(super) fn filled_in(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
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
        // As short as possible, but for the last one; and something is always filled in.
        let next = rest.split('{').next().unwrap_or_default();
        let end = if next.is_empty() {
            // Two variables next to each other cannot be told apart.
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
