//! The catalog names of tools, by which models call the tools of all servers.
//!
//! A name depends only on the names of the server and the tool, so it is the same in every run. It
//! is `server__tool` if that is valid and unambiguous. Otherwise it is a readable form that ends
//! with a hash of both names.

use sha2::{Digest, Sha256};

use crate::tools::tool_pinning::fingerprint::to_hex;

/// Maximum length in bytes of a catalog name, by which models call a tool. Every supported model
/// provider accepts tool names of this length.
const MAX_LEN: usize = 64;
const SEPARATOR: &str = "__";
/// Number of hexadecimal digits of the hash at the end of a catalog name.
const HASH_LEN: usize = 8;
/// Maximum length in bytes of the server name in a catalog name that was shortened.
const MAX_SERVER_LEN: usize = 20;

/// Returns the catalog name of a tool, by which models call it. The name matches
/// `[A-Za-z0-9_-]{1,64}`, so that every model provider accepts it.
pub(crate) fn catalog_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}{SEPARATOR}{tool}");
    if is_unambiguous_name(server, tool, &plain) {
        return plain;
    }
    let room = MAX_LEN - HASH_LEN - 1;
    let mut server_part = sanitize_name(server);
    let mut tool_part = sanitize_name(tool);
    if server_part.len() + SEPARATOR.len() + tool_part.len() > room {
        server_part.truncate(MAX_SERVER_LEN);
        tool_part.truncate(room - SEPARATOR.len() - server_part.len());
    }
    format!(
        "{server_part}{SEPARATOR}{tool_part}_{}",
        hash_names(server, tool)
    )
}

/// Returns whether `name` may be the catalog name of a tool of `server`. If no available tool has
/// this name, the host uses this function to find the starting or unavailable servers that may have
/// the tool.
pub(crate) fn may_belong_to_server(name: &str, server: &str) -> bool {
    let part = sanitize_name(server);
    let begins = |part: &str| {
        name.strip_prefix(part)
            .is_some_and(|rest| rest.starts_with(SEPARATOR))
    };
    begins(&part) || begins(&part[..part.len().min(MAX_SERVER_LEN)])
}

/// Returns whether the name `plain` needs no hash, because it is valid and identifies exactly one
/// tool of one server. The first `__` in `plain` must end the server name. `plain` must not end
/// like a hash, because another tool could have this hashed name.
fn is_unambiguous_name(server: &str, tool: &str, plain: &str) -> bool {
    !server.is_empty()
        && !tool.is_empty()
        && plain.len() <= MAX_LEN
        && plain.bytes().all(is_valid_name_byte)
        && !server.contains(SEPARATOR)
        && !server.ends_with('_')
        && !ends_with_hash(plain)
}

fn ends_with_hash(name: &str) -> bool {
    let digits = name.len().saturating_sub(HASH_LEN);
    name.is_char_boundary(digits)
        && name[..digits].ends_with('_')
        && name[digits..]
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_valid_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Replaces characters that are invalid in a catalog name by `_`. The result is ASCII, so it can be
/// cut at any byte.
fn sanitize_name(name: &str) -> String {
    name.chars()
        .map(|c| match u8::try_from(c) {
            Ok(byte) if is_valid_name_byte(byte) => c,
            _ => '_',
        })
        .collect()
}

fn hash_names(server: &str, tool: &str) -> String {
    // The length prefix makes the hashed bytes different for every pair of server and tool.
    let length = u64::try_from(server.len()).unwrap_or(u64::MAX);
    let digest = Sha256::new()
        .chain_update(length.to_le_bytes())
        .chain_update(server)
        .chain_update(tool)
        .finalize();
    to_hex(&digest[..HASH_LEN / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_valid(name: &str) {
        assert!(
            !name.is_empty() && name.len() <= MAX_LEN && name.bytes().all(is_valid_name_byte),
            "{name}"
        );
    }

    #[test]
    fn plain_names_are_joined() {
        assert_eq!(catalog_name("crm", "find-customer"), "crm__find-customer");
        assert_eq!(catalog_name("a", "b_c"), "a__b_c");
        assert_eq!(catalog_name("a_b", "c"), "a_b__c");
        assert_eq!(catalog_name("a", "_b__c"), "a___b__c");
    }

    #[test]
    fn names_are_stable() {
        // Stored runs contain these names.
        assert_eq!(
            catalog_name("my.server", "do/it"),
            "my_server__do_it_4c752f7d"
        );
        assert_eq!(
            catalog_name("server", &"long".repeat(25)),
            "server__longlonglonglonglonglonglonglonglonglonglonglon_12a732ff"
        );
    }

    #[test]
    fn similar_pairs_have_different_names() {
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
            let name = catalog_name(pair.0, pair.1);
            assert_valid(&name);
            assert_eq!(catalog_name(pair.0, pair.1), name);
            if let Some(other) = names.insert(name.clone(), pair) {
                panic!("{pair:?} and {other:?} are both {name}");
            }
        }
    }

    #[test]
    fn a_tool_cannot_take_the_name_of_another() {
        let victim = catalog_name("a.b", "c");
        let (server, tool) = victim.split_once(SEPARATOR).unwrap();
        let attacker = catalog_name(server, tool);
        assert_valid(&attacker);
        assert_ne!(attacker, victim);
    }

    #[test]
    fn the_server_of_a_name_is_recognized() {
        for server in ["crm", "my.server", "ünï", &"s".repeat(80)] {
            assert!(
                may_belong_to_server(&catalog_name(server, "tool"), server),
                "{server} {}",
                catalog_name(server, "tool")
            );
        }
        assert!(!may_belong_to_server("crm2__tool", "crm"));
    }
}
