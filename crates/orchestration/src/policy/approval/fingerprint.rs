//! What a tool's definition is, in a few characters: a yes is a yes to one definition.

use sha2::{Digest, Sha256};
use switchboard_domain::ToolDefinition;

/// A tool's definition as 64 hexadecimal digits: SHA-256 of its
/// [identity](ToolDefinition::identity).
///
/// The MCP host tells changes by the same digits
/// ([`ToolHostChange::ToolRedefined`](switchboard_domain::ToolHostChange::ToolRedefined)).
pub fn fingerprint(tool: &ToolDefinition) -> String {
    let digest = Sha256::digest(tool.identity());
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}
