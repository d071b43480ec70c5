//! Fingerprints of tool definitions.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use switchboard_domain::ToolDefinition;

/// Returns the SHA-256 of a tool's [identity](ToolDefinition::identity) as 64 hexadecimal digits.
///
/// The MCP host uses the same digests
/// ([`ToolHostChange::ToolRedefined`](switchboard_domain::ToolHostChange::ToolRedefined)).
pub fn fingerprint(tool: &ToolDefinition) -> String {
    let digest = Sha256::digest(tool.identity());
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
