//! Signatures that ring cannot verify: ECDSA on P-521, and with SHA-512 on P-256 and P-384. The
//! certificate authorities of some companies, and of proxies that intercept TLS, have such keys.

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use rustls::SignatureScheme;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
};
use std::sync::{Arc, LazyLock};

type Verifier = &'static dyn SignatureVerificationAlgorithm;

/// Verifies with a key (SEC 1) and the hash of the message a signature in DER; `None` if one of
/// them is invalid.
type Verify = fn(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()>;

/// ECDSA with one curve and one hash.
#[derive(Debug)]
struct Ecdsa {
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
    hash: &'static Algorithm,
    verify: Verify,
}

impl Ecdsa {
    const fn new(
        key: AlgorithmIdentifier,
        (signature, hash): (AlgorithmIdentifier, &'static Algorithm),
        verify: Verify,
    ) -> Ecdsa {
        Ecdsa {
            key,
            signature,
            hash,
            verify,
        }
    }
}

const WITH_SHA256: (AlgorithmIdentifier, &Algorithm) = (alg_id::ECDSA_SHA256, &SHA256);
const WITH_SHA384: (AlgorithmIdentifier, &Algorithm) = (alg_id::ECDSA_SHA384, &SHA384);
const WITH_SHA512: (AlgorithmIdentifier, &Algorithm) = (alg_id::ECDSA_SHA512, &SHA512);

static P256_SHA512: Ecdsa = Ecdsa::new(alg_id::ECDSA_P256, WITH_SHA512, verify_p256);
static P384_SHA512: Ecdsa = Ecdsa::new(alg_id::ECDSA_P384, WITH_SHA512, verify_p384);
static P521_SHA256: Ecdsa = Ecdsa::new(alg_id::ECDSA_P521, WITH_SHA256, verify_p521);
static P521_SHA384: Ecdsa = Ecdsa::new(alg_id::ECDSA_P521, WITH_SHA384, verify_p521);
static P521_SHA512: Ecdsa = Ecdsa::new(alg_id::ECDSA_P521, WITH_SHA512, verify_p521);

/// The algorithms for the signatures of certificates.
static OF_CERTIFICATES: [Verifier; 5] = [
    &P256_SHA512,
    &P384_SHA512,
    &P521_SHA256,
    &P521_SHA384,
    &P521_SHA512,
];

/// The algorithms for the handshake of a server. TLS 1.3 uses the first one only.
static OF_HANDSHAKES: [Verifier; 3] = [&P521_SHA512, &P384_SHA512, &P256_SHA512];

/// Returns the provider of ring, extended by these algorithms.
pub(super) fn provider() -> Arc<CryptoProvider> {
    static CERTIFICATES: LazyLock<Vec<Verifier>> = LazyLock::new(|| {
        let of_ring = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        [of_ring.all, &OF_CERTIFICATES].concat()
    });
    static HANDSHAKES: LazyLock<Vec<(SignatureScheme, &[Verifier])>> = LazyLock::new(|| {
        let of_ring = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let more: (SignatureScheme, &[Verifier]) =
            (SignatureScheme::ECDSA_NISTP521_SHA512, &OF_HANDSHAKES);
        [of_ring.mapping, &[more]].concat()
    });
    let mut provider = rustls::crypto::ring::default_provider();
    provider.signature_verification_algorithms.all = &CERTIFICATES;
    provider.signature_verification_algorithms.mapping = &HANDSHAKES;
    Arc::new(provider)
}

impl SignatureVerificationAlgorithm for Ecdsa {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let hash = digest(self.hash, message);
        (self.verify)(public_key, hash.as_ref(), signature).ok_or(InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

fn verify_p256(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p256::ecdsa::Signature::from_der(signature).ok()?;
    key.verify_prehash(hash, &signature).ok()
}

fn verify_p384(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p384::ecdsa::Signature::from_der(signature).ok()?;
    key.verify_prehash(hash, &signature).ok()
}

fn verify_p521(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    const FIELD: usize = 66;
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p521::ecdsa::Signature::from_der(signature).ok()?;
    // the hash is a number (FIPS 186-5, 6.4.2), and the crate refuses one of less than 33 bytes
    let mut number = [0; FIELD];
    number[FIELD - hash.len()..].copy_from_slice(hash);
    key.verify_prehash(&number, &signature).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::CertificateVerifier;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::time::Duration;

    fn bytes(base64: &str) -> Vec<u8> {
        STANDARD.decode(base64).unwrap()
    }

    // made by `openssl dgst -sign` of the message "landfall"
    const P256: &str = "BP845J2Wsg5a1Vd41x5hBuJY2pR52NrDoZDnbGlukpzQEcMxeLpAm1zm40r+Zqr7GNhKdAxWuN\
                        TG2wLBomY/ifY=";
    const P384: &str = "BGAHL1YYFZOxT2UlN9Lbx3aqkskm6x+O+BP2meyllLCemMVsFgiqS9KpbMA9lbLGRCEdRKBRSj\
                        Y8lu7OcLn3uWMlX0skGqU6416EIPQLxnTiYgLqv+A3EMAbNCHWZGpZCg==";
    const P521: &str = "BADD8luifjBIw+a87vq+iBQcHHmSdCEX6OAVrogGCxLa8SnL6duQptI7Tfw+LgI4woQwsAK3cK\
                        fcd9FVQPnXqUxG5ADGPnew7p+uDvOejuOSePBXL/qyrPbOJhxC3il5sSRWU2V4PMjIOEnxZGbz\
                        /mod8TC+4KIXijYoum200793bNIRew==";

    #[test]
    fn signatures_of_openssl_are_verified() {
        let vectors: [(&Ecdsa, &str, &str); 5] = [
            (
                &P256_SHA512,
                P256,
                "MEUCIBFQH4DhrUC2yb1YIcI2DD8T2x0az8heB2740ZbTx+UvAiEAsFJfvvn0GIgWBdhq5VcmsmtcjDXc\
                 /wdzCypi3xLZqHY=",
            ),
            (
                &P384_SHA512,
                P384,
                "MGQCMHXhLh44SAg9BUYBE+NetptgMbHhjlnw1XU7pDNeWMtxhf84rHFExvBdZk5VctKRuAIwPBaAzDwa\
                 UJM4cPZW5UCbgWwPye8G3zjX4qgyOHe3zvj3OKWolpTuH4ZIMdPgvCGC",
            ),
            (
                &P521_SHA256,
                P521,
                "MIGIAkIA+cg3ODOz5OpnYnNVocYZW6dMGxnq4AlN7zm+9MstJPNeZrd5EnM1FCW3/6t065cIqNuRLg07\
                 xrxI0PCeX0emHH4CQgG2XNbVY9ma7O9Zeo/Z3y3UnfYDzT+tVH39ddBcRkUb+5TIZFTSkDpWcPF1LBdN\
                 oCNZsP/cDeJxiuNj+ZsPviSzUw==",
            ),
            (
                &P521_SHA384,
                P521,
                "MIGHAkF6fplaAju/wPBxaaQTBfkEXr4AtWWD7mhay/FsCxU93iubVyihb8euHlGXBzoWLsvdyZv1OGc1\
                 JMhfX+ngWd0spAJCAZ4s9qKZH42m8ieYrXqT8ZOXjidT/5gTL7FBvt8c+UBF0iViRTirFqnlVBaPbqOL\
                 /HOzHz0KFipxbzCpR92xPKIb",
            ),
            (
                &P521_SHA512,
                P521,
                "MIGIAkIA6V6p8ATsr+co9fyipLUGIJzCALq4sSjbrGUuUPWy63xFtJlNlptMvt0cwOhvkrjXL0I5T4jB\
                 s7CD9CaZIjYWuFACQgH7u2gIGRUL6Q6Y7AdFOzkqr6mk5zIN9s23o5CIaBHeA23ttOuuTj5lZ1O4kSMd\
                 lDAOqhLTAVU9G1eaq7/oLOb3iQ==",
            ),
        ];
        for (algorithm, key, signature) in vectors {
            let (key, signature) = (bytes(key), bytes(signature));
            let verify = |message: &[u8]| algorithm.verify_signature(&key, message, &signature);
            assert!(verify(b"landfall").is_ok(), "{algorithm:?}");
            assert!(verify(b"landfal").is_err(), "{algorithm:?}");
            for (key, signature) in [(&key[1..], &signature[..]), (&key[..], &signature[1..])] {
                let verified = algorithm.verify_signature(key, b"landfall", signature);
                assert!(verified.is_err(), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn an_authority_with_a_key_on_p521_is_trusted() {
        let authority = bytes(
            "MIIB/TCCAWCgAwIBAgIUELWBAAeaPYiBJVjB9BzrWy7NpsAwCgYIKoZIzj0EAwIwEDEOMAwGA1UEAwwF\
             UC01MjEwIBcNMjYxMjAxMDAyMTU0WhgPMjEyNjExMDcwMDIxNTRaMBAxDjAMBgNVBAMMBVAtNTIxMIGb\
             MBAGByqGSM49AgEGBSuBBAAjA4GGAAQAw/Jbon4wSMPmvO76vogUHBx5knQhF+jgFa6IBgsS2vEpy+nb\
             kKbSO038Pi4COMKEMLACt3Cn3HfRVUD516lMRuQAxj53sO6frg7zno7jknjwVy/6sqz2ziYcQt4pebEk\
             VlNleDzIyDhJ8WRm8/5qHfEwvuCiF4o2KLpttNO/d2zSEXujUzBRMB0GA1UdDgQWBBQMac35TJCwCBcy\
             gsheTcKDxZL1sTAfBgNVHSMEGDAWgBQMac35TJCwCBcygsheTcKDxZL1sTAPBgNVHRMBAf8EBTADAQH/\
             MAoGCCqGSM49BAMCA4GKADCBhgJBODN7nE0J88G6jgJ97ZJ4s7T+L/0BBFC/SO8vjJAE/A9kb3Qn20Oh\
             QuJXN834IPWFyFOKk7WQuqEioCrCVbhcFfgCQTibGFjngfCOdveuwr+WhDKy4qjgDZfNQ6qNYal/yOwB\
             dae4p7qYYamLLHXfgwzCTeC0SUdCLgtJ7VfdUnCjzQw8",
        );
        let own = bytes(
            "MIIBuzCCAR2gAwIBAgIUdx155JU29VO353ysBMFbE1jvjeIwCgYIKoZIzj0EAwIwEDEOMAwGA1UEAwwF\
             UC01MjEwIBcNMjYxMjAxMDAyMTU0WhgPMjEyNjExMDcwMDIxNTRaMAwxCjAIBgNVBAMMAXgwWTATBgcq\
             hkjOPQIBBggqhkjOPQMBBwNCAAQvbhjJ28JX/U5+aDoAf6ZLPlZm+yCF2BXf5UHEwvBbdQAUotHPj8FT\
             /QwJmBqAGtw0uUMX5YT/h4fpX47o/loWo1cwVTATBgNVHREEDDAKgghyZWcudGVzdDAdBgNVHQ4EFgQU\
             Wbh6I5MdRdEuB/Q33Rb91FkDuAMwHwYDVR0jBBgwFoAUDGnN+UyQsAgXMoLIXk3Cg8WS9bEwCgYIKoZI\
             zj0EAwIDgYsAMIGHAkIBHTveHowTpMlmaYifBdCoa7/nJEY2/dDorEjyQXQPK6U3X0u2SAvsMGTmvZKl\
             Q6T+YJOKPJ7IPgCVyiJ2zxE0EhgCQRK6REnovbwAhi95bpTSWh1lDeklfGMkQ6WiG8tcESj+MONOjwpP\
             RDBjkTIJX+ELygPvl71lcEkRZLY5YSq0+/7x",
        );
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_900_000_000));
        let host = ServerName::try_from("reg.test").unwrap();
        let accepts = |named: &[u8], provider: Arc<CryptoProvider>| {
            let named = vec![CertificateDer::from(named.to_vec())];
            let verifier = CertificateVerifier::new(named, provider);
            let own = CertificateDer::from(own.clone());
            let verified = verifier.verify_server_cert(&own, &[], &host, &[], now);
            verified.is_ok()
        };
        assert!(accepts(&authority, provider()));
        let of_ring = Arc::new(rustls::crypto::ring::default_provider());
        assert!(!accepts(&authority, of_ring));
        let mut wrong = authority.clone();
        // a byte of the key
        wrong[200] ^= 1;
        assert!(!accepts(&wrong, provider()));
    }
}
