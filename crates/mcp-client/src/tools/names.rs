//! The names by which models call tools.
//!
//! A name depends on nothing but the server's name and the tool's own, so it is the same in every
//! run and in whatever order servers come up. It is `server__tool` where that is valid and can be
//! taken apart in one way only; otherwise it is a readable form of it with a hash of the pair.

use sha2::{Digest, Sha256};

/// The longest name that every provider takes.
const MAX: usize = 64;
const SEPARATOR: &str = "__";
/// Hexadecimal digits of the hash; with the underscore before them the suffix of a changed name.
const HASH: usize = 8;
/// What the server's part keeps of a name that is too long, so that the tool's part stays readable.
const LONG_SERVER: usize = 20;

/// The model-facing name of a tool, `[A-Za-z0-9_-]{1,64}`.
pub(crate) fn alias(server: &str, tool: &str) -> String {
    let plain = format!("{server}{SEPARATOR}{tool}");
    if is_plain(server, tool, &plain) {
        return plain;
    }
    let room = MAX - HASH - 1;
    let mut server_part = sanitized(server);
    let mut tool_part = sanitized(tool);
    if server_part.len() + SEPARATOR.len() + tool_part.len() > room {
        server_part.truncate(LONG_SERVER);
        tool_part.truncate(room - SEPARATOR.len() - server_part.len());
    }
    format!("{server_part}{SEPARATOR}{tool_part}_{}", hash(server, tool))
}

/// Whether `name` could be a tool of `server`, for telling a tool of a dead server from one that
/// never was.
pub(crate) fn may_belong_to(name: &str, server: &str) -> bool {
    let part = sanitized(server);
    let begins = |part: &str| {
        name.strip_prefix(part)
            .is_some_and(|rest| rest.starts_with(SEPARATOR))
    };
    begins(&part) || begins(&part[..part.len().min(LONG_SERVER)])
}

/// The first `__` of a plain name is where the server ends, so two pairs never share one. Names that
/// end like a hashed one are hashed too, so that nobody can choose a tool name to take another's
/// place.
fn is_plain(server: &str, tool: &str, plain: &str) -> bool {
    !server.is_empty()
        && !tool.is_empty()
        && plain.len() <= MAX
        && plain.bytes().all(is_valid)
        && !server.contains(SEPARATOR)
        && !server.ends_with('_')
        && !ends_like_a_hash(plain)
}

fn ends_like_a_hash(name: &str) -> bool {
    let digits = name.len().saturating_sub(HASH);
    name.is_char_boundary(digits)
        && name[..digits].ends_with('_')
        && name[digits..]
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_valid(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// ASCII only, so that it may be cut anywhere.
fn sanitized(name: &str) -> String {
    name.chars()
        .map(|c| match u8::try_from(c) {
            Ok(byte) if is_valid(byte) => c,
            _ => '_',
        })
        .collect()
}

fn hash(server: &str, tool: &str) -> String {
    // With its length before it, no other pair has the same bytes.
    let length = u64::try_from(server.len()).unwrap_or(u64::MAX);
    let digest = Sha256::new()
        .chain_update(length.to_le_bytes())
        .chain_update(server)
        .chain_update(tool)
        .finalize();
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .take(HASH)
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_valid(name: &str) {
        assert!(
            !name.is_empty() && name.len() <= MAX && name.bytes().all(is_valid),
            "{name}"
        );
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(alias("crm", "find-customer"), "crm__find-customer");
        assert_eq!(alias("a", "b_c"), "a__b_c");
        assert_eq!(alias("a_b", "c"), "a_b__c");
        assert_eq!(alias("a", "_b__c"), "a___b__c");
    }

    #[test]
    fn names_are_the_same_in_every_version() {
        // Saved runs hold these names: changing how they are made breaks resuming.
        assert_eq!(alias("my.server", "do/it"), "my_server__do_it_4c752f7d");
        assert_eq!(
            alias("server", &"long".repeat(25)),
            "server__longlonglonglonglonglonglonglonglonglonglonglon_12a732ff"
        );
    }

    #[test]
    fn pairs_that_read_alike_have_different_names() {
        let long = "x".repeat(100);
        let longer = format!("{long}y");
        let pairs = [
            ("a", "b_c"),
            ("a_b", "c"),
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "_b"),
            ("a", "__b"),
            ("a__", "b"),
            ("a.b", "c"),
            ("a/b", "c"),
            ("a b", "c"),
            ("a_b", "c/d"),
            ("a_b", "c.d"),
            ("a_b", "c_d"),
            ("Überweisung", "zahlen"),
            ("überweisung", "zahlen"),
            ("日本", "語"),
            ("日", "本語"),
            ("", "x"),
            ("", ""),
            ("x", ""),
            (&long, "t"),
            (&longer, "t"),
            ("s", &long),
            ("s", &longer),
            (&long, &long),
            (&longer, &longer),
        ];
        let mut names = std::collections::HashMap::new();
        for pair in pairs {
            let name = alias(pair.0, pair.1);
            assert_valid(&name);
            assert_eq!(alias(pair.0, pair.1), name);
            if let Some(other) = names.insert(name.clone(), pair) {
                panic!("{pair:?} and {other:?} are both {name}");
            }
        }
    }

    #[test]
    fn a_tool_cannot_be_named_to_take_the_place_of_another() {
        let victim = alias("a.b", "c");
        let (server, tool) = victim.split_once(SEPARATOR).unwrap();
        let attacker = alias(server, tool);
        assert_valid(&attacker);
        assert_ne!(attacker, victim);
    }

    #[test]
    fn the_server_of_a_name_is_recognised() {
        for server in ["crm", "my.server", "ünï", &"s".repeat(80)] {
            assert!(
                may_belong_to(&alias(server, "tool"), server),
                "{server} {}",
                alias(server, "tool")
            );
        }
        assert!(!may_belong_to("crm2__tool", "crm"));
    }
}
