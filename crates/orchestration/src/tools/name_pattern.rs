//! Patterns of tool and server names in configurations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A pattern of tool or server names with wildcards: `*` matches any number of characters, and `?`
/// matches one character. All other characters match themselves, case-sensitively. A star cannot
/// be escaped, because names do not contain it.
///
/// ```
/// use switchboard_orchestration::tools::name_pattern::NamePattern;
///
/// let reading = NamePattern::new("get_*");
/// assert!(reading.matches("get_customer"));
/// assert!(!reading.matches("forget_customer"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamePattern(String);

impl NamePattern {
    /// Creates a pattern from its text. Every text is a valid pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the pattern as it was written, such as `crm_*`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern matches the whole of `name`. The running time is at most
    /// proportional to the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut read) = (0, 0);
        // Index of the last `*` in `pattern`, and the end of the part of `name` that it matches,
        // both in characters.
        let mut star: Option<(usize, usize)> = None;
        while read < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, read));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[read] => {
                    at += 1;
                    read += 1;
                }
                _ => {
                    let Some((star_at, end)) = star else {
                        return false;
                    };
                    star = Some((star_at, end + 1));
                    at = star_at + 1;
                    read = end + 1;
                }
            }
        }
        pattern[at..].iter().all(|c| *c == '*')
    }
}

impl From<&str> for NamePattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for NamePattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::NamePattern;

    #[test]
    fn wildcards_match_characters() {
        for (pattern, name, matches) in [
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("delete_*", "delete_", true),
            ("delete_*", "undelete_x", false),
            ("*_delete", "a_delete_delete", true),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("*a*b*c*", "xxaxxcxxbxx", false),
            ("get_?", "get_a", true),
            ("get_?", "get_", false),
            ("get_?", "get_ab", false),
            ("get_?", "get_ü", true),
            ("Get", "get", false),
            ("github__*", "github__x", true),
            ("a.b", "axb", false),
        ] {
            assert_eq!(
                NamePattern::new(pattern).matches(name),
                matches,
                "{pattern} {name}"
            );
        }
    }

    /// The plain recursive definition.
    fn reference(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), None) => reference(rest, name),
            (Some(('*', rest)), Some((_, tail))) => {
                reference(rest, name) || reference(pattern, tail)
            }
            (Some((p, rest)), Some((c, tail))) if *p == '?' || p == c => reference(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_is_what_the_definition_says(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                NamePattern::new(pattern.clone()).matches(&name),
                reference(&chars(&pattern), &chars(&name))
            );
        }
    }
}
