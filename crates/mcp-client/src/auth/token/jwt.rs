//! Client authentication with a signed JWT (`private_key_jwt`, RFC 7523, section 2.2).

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::auth::{error::AuthError, login::pkce::random_token, store::unix_seconds_now};

pub(in crate::auth) const ASSERTION_TYPE: &str =
    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Validity of a client assertion in seconds. It allows for the request time and clock differences.
const LIFETIME: u64 = 60;

enum SigningKey {
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Creates a signed JWT that authenticates the client at an authorization server (RFC 7523).
pub(in crate::auth) fn client_assertion(
    key: &SecretString,
    client: &str,
    issuer: &str,
) -> Result<SecretString, AuthError> {
    let key = parse_private_key(key)?;
    let algorithm = match &key {
        SigningKey::P256(_) => "ES256",
        SigningKey::Rsa(_) => "RS256",
    };
    let now = unix_seconds_now();
    let header = json!({"alg": algorithm, "typ": "JWT"});
    let claims = json!({
        "iss": client,
        "sub": client,
        // RFC 7523bis requires the issuer as audience, instead of the URL of the token endpoint.
        "aud": issuer,
        "iat": now,
        "exp": now + LIFETIME,
        "jti": random_token(),
    });
    let encoded = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&header), encoded(&claims));
    let signature = sign_message(&key, signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}

fn sign_message(key: &SigningKey, message: &[u8]) -> Result<Vec<u8>, AuthError> {
    let failed = |_| AuthError::Configuration {
        reason: "signing with `private_key` failed".to_owned(),
    };
    let random = SystemRandom::new();
    match key {
        SigningKey::P256(key) => {
            let signature = key.sign(&random, message).map_err(failed)?;
            Ok(signature.as_ref().to_vec())
        }
        SigningKey::Rsa(key) => {
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                .map_err(failed)?;
            Ok(signature)
        }
    }
}

fn parse_private_key(pem: &SecretString) -> Result<SigningKey, AuthError> {
    let unusable = || AuthError::Configuration {
        reason: "`private_key` is not a P-256 or RSA key in PKCS #8 PEM format (starts with \
                 `-----BEGIN PRIVATE KEY-----`)"
            .to_owned(),
    };
    let text: String = pem
        .expose_secret()
        .split_once("-----BEGIN PRIVATE KEY-----")
        .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"))
        .map(|(inner, _)| inner.split_whitespace().collect())
        .ok_or_else(unusable)?;
    let der = STANDARD.decode(text).map_err(|_| unusable())?;
    if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der) {
        return Ok(SigningKey::P256(key));
    }
    RsaKeyPair::from_pkcs8(&der)
        .map(SigningKey::Rsa)
        .map_err(|_| unusable())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::AsDer,
        signature::{
            ECDSA_P256_SHA256_FIXED, KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
            VerificationAlgorithm,
        },
    };
    use serde_json::Value;

    use super::*;

    fn pem(der: &[u8]) -> SecretString {
        let text = STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n").into()
    }

    fn check(
        key: &SecretString,
        name: &str,
        by: &'static dyn VerificationAlgorithm,
        public: &[u8],
    ) {
        let assertion = client_assertion(key, "me", "https://as").unwrap();
        let (signed, signature) = assertion.expose_secret().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(by, public);
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(parts[0]["alg"], name);
        assert_eq!(parts[1]["iss"], "me");
        assert_eq!(parts[1]["sub"], "me");
        assert_eq!(parts[1]["aud"], "https://as");
    }

    #[test]
    fn assertions_are_signed_with_both_kinds_of_keys() {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let der = key.to_pkcs8v1().unwrap();
        let public = key.public_key().as_ref();
        check(
            &pem(der.as_ref()),
            "ES256",
            &ECDSA_P256_SHA256_FIXED,
            public,
        );

        let key = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let der = key.as_der().unwrap();
        let public = key.public_key().as_ref();
        check(
            &pem(der.as_ref()),
            "RS256",
            &RSA_PKCS1_2048_8192_SHA256,
            public,
        );
    }

    #[test]
    fn errors_do_not_show_an_invalid_key() {
        for text in [
            "",
            "secret-key",
            "-----BEGIN PRIVATE KEY-----\nsecret-key\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ] {
            let error = client_assertion(&text.into(), "me", "https://as").unwrap_err();
            assert!(!error.to_string().contains("secret-key"), "{error}");
        }
    }
}
