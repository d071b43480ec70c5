//! The access token of HTTP clients.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Minimum length of a token in characters. Shorter tokens can be guessed.
pub const MIN_TOKEN_LENGTH: usize = 16;

/// An access token that clients send as `Authorization: Bearer TOKEN` or as `x-api-key: TOKEN`.
/// This type contains only the SHA-256 digest of the token.
#[derive(Clone, derive_more::Debug)]
#[debug("AccessToken {{ .. }}")]
pub struct AccessToken {
    digest: [u8; 32],
}

impl AccessToken {
    /// Creates an access token. Returns `None` for a token with fewer than [`MIN_TOKEN_LENGTH`]
    /// characters or with a character that is not a visible ASCII character.
    pub fn new(token: &SecretString) -> Option<Self> {
        let token = token.expose_secret();
        let fits_header = token.bytes().all(|byte| byte.is_ascii_graphic());
        (fits_header && token.len() >= MIN_TOKEN_LENGTH).then(|| Self {
            digest: Sha256::digest(token).into(),
        })
    }

    /// Returns whether `given` equals this token. The comparison takes the same time for every
    /// wrong token, so that its duration does not show how much of a token is correct.
    pub(crate) fn matches_token(&self, given: &[u8]) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        self.digest.ct_eq(&given).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tokens_and_invalid_header_values_are_refused() {
        for (token, is_valid) in [
            ("0123456789abcdef", true),
            ("0123456789abcde", false),
            ("0123456789 abcdef", false),
            ("0123456789abcdeä", false),
            ("", false),
        ] {
            let made = AccessToken::new(&SecretString::from(token));
            assert_eq!(made.is_some(), is_valid, "{token}");
            assert!(!format!("{made:?}").contains("0123"));
        }
    }
}
