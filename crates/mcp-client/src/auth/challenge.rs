//! Parser of the `WWW-Authenticate` header (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC
//! 9728, section 5.1).

use std::collections::HashMap;

/// Parameters of a `Bearer` challenge (`WWW-Authenticate` header) that the OAuth client uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    pub(crate) error: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) resource_metadata: Option<String>,
}

impl BearerChallenge {
    /// Parses the value of a `WWW-Authenticate` header. Ignores malformed parts and schemes other
    /// than `Bearer`. Returns an empty challenge if nothing is left.
    pub(crate) fn parse_header(header: &str) -> Self {
        let mut parameters = bearer_parameters(header);
        Self {
            error: parameters.remove("error"),
            scopes: parse_scopes(&parameters.remove("scope").unwrap_or_default()),
            resource_metadata: parameters.remove("resource_metadata"),
        }
    }
}

/// Parses a space-separated list of scopes and removes duplicates.
pub(crate) fn parse_scopes(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for scope in text.split_ascii_whitespace() {
        add_scope(&mut found, scope);
    }
    found
}

pub(crate) fn add_scope(scopes: &mut Vec<String>, scope: &str) {
    if !scopes.iter().any(|known| known == scope) {
        scopes.push(scope.to_owned());
    }
}

/// Returns the parameters of the first `Bearer` challenge, with lower-case names.
///
/// Commas separate challenges, and also the parameters of a challenge. An item between commas is a
/// parameter if its first word contains `=` or precedes `=`. Any other item starts a challenge.
fn bearer_parameters(header: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut in_bearer = false;
    for item in split_at_commas(header) {
        let item = item.trim();
        let (first, rest) = item.split_once([' ', '\t']).unwrap_or((item, ""));
        let parameter = if first.contains('=') || rest.trim_start().starts_with('=') {
            item
        } else {
            if in_bearer {
                break;
            }
            in_bearer = first.eq_ignore_ascii_case("bearer");
            rest.trim()
        };
        if !in_bearer {
            continue;
        }
        if let Some((name, value)) = parameter.split_once('=') {
            let name = name.trim().to_ascii_lowercase();
            found
                .entry(name)
                .or_insert_with(|| unquote_value(value.trim()));
        }
    }
    found
}

/// Splits a header value at commas that are not inside a quoted string.
fn split_at_commas(header: &str) -> Vec<&str> {
    let (mut quoted, mut escaped, mut start) = (false, false, 0);
    let mut items = Vec::new();
    for (at, c) in header.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                items.push(&header[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&header[start..]);
    items
}

fn unquote_value(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => break,
            '\\' => text.extend(characters.next()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed_in_every_spelling() {
        let all = BearerChallenge {
            error: Some("insufficient_scope".to_owned()),
            scopes: vec!["a".to_owned(), "b".to_owned()],
            resource_metadata: Some("https://h/.well-known/x".to_owned()),
        };
        for header in [
            r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/.well-known/x""#,
            r#"bearer  scope="a  b a",error=insufficient_scope ,Resource_Metadata = "https://h/.well-known/x""#,
            r#"Basic realm="x, Bearer y", Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/.well-known/x""#,
            r#"Negotiate, Bearer realm="a\"b", error="insufficient_scope", scope="a b", resource_metadata="https://h/.well-known/x", Basic scope="no""#,
        ] {
            assert_eq!(BearerChallenge::parse_header(header), all, "{header}");
        }
    }

    #[test]
    fn malformed_headers_are_ignored() {
        for header in [
            "",
            "Bearer",
            "Bearer ",
            ",,,",
            "\"",
            "Bearer scope",
            "Bearer =",
            "Bearer ==\"\\",
            "Basic realm=\"x\"",
            "Bearer scope=\"ä",
            "é=\\\",Bearer",
        ] {
            let read = BearerChallenge::parse_header(header);
            assert_eq!(read.resource_metadata, None, "{header}");
        }
        assert_eq!(
            BearerChallenge::parse_header("Bearer scope=\"ä").scopes,
            ["ä"]
        );
    }
}
