//! Random values and PKCE code challenges (RFC 7636) for OAuth logins.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Returns 244 random bits as 43 URL-safe characters. RFC 7636 requires 43 to 128 characters for a
/// PKCE verifier.
pub(in crate::auth) fn random_token() -> String {
    let mut bytes = Uuid::new_v4().into_bytes().to_vec();
    bytes.extend(Uuid::new_v4().into_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the PKCE code challenge of a verifier with method `S256`.
pub(in crate::auth) fn pkce_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_matches_the_standard() {
        // RFC 7636, appendix B.
        assert_eq!(
            pkce_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        assert_eq!(random_token().len(), 43);
        assert_ne!(random_token(), random_token());
    }
}
