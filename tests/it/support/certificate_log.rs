//! A certificate transparency log (RFC 6962). Its promises (SCTs) are embedded in certificates.

use super::sigstore::{ImageSigner, Sigstore, base64, raw_sha256};
use super::timestamps::tagged;
use rcgen::{CertificateParams, CustomExtension, KeyPair, PublicKeyData, SerialNumber, SigningKey};
use serde_json::{Value, json};

/// The extension with the list of promises.
const PROMISES: [u64; 10] = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
/// Noon of 1 January 2026, in milliseconds.
const LOGGED_AT: u64 = 1_767_268_800_000;

pub struct CertificateLog(KeyPair);

impl CertificateLog {
    pub fn new() -> CertificateLog {
        CertificateLog(KeyPair::generate().unwrap())
    }

    /// The log in a `trusted_root.json`.
    pub fn trusted(&self) -> Value {
        let key = self.0.subject_public_key_info();
        json!({
            "baseUrl": "https://ct.test",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": base64(&key), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": "2020-01-01T00:00:00Z"},
            },
            "logId": {"keyId": base64(raw_sha256(&key))},
        })
    }

    /// A signer with a certificate that `sigstore` issued and that contains a promise of this log.
    pub fn signer(&self, sigstore: &Sigstore, mut params: CertificateParams) -> ImageSigner {
        params.serial_number = Some(SerialNumber::from(7_u64));
        let key = KeyPair::generate().unwrap();
        let logged = params.signed_by(&key, &sigstore.issuer).unwrap();
        let promise = self.promise(sigstore, first_value(logged.der()));
        let mut list = u16::try_from(promise.len() + 2)
            .unwrap()
            .to_be_bytes()
            .to_vec();
        list.extend(u16::try_from(promise.len()).unwrap().to_be_bytes());
        list.extend(promise);
        let extension = CustomExtension::from_oid_content(&PROMISES, tagged(4, &list));
        params.custom_extensions.push(extension);
        let certificate = params.signed_by(&key, &sigstore.issuer).unwrap();
        ImageSigner {
            key,
            certificate: Some(certificate.der().to_vec()),
        }
    }

    /// The promise (RFC 6962, 3.2) for a certificate without promises.
    fn promise(&self, sigstore: &Sigstore, to_be_signed: &[u8]) -> Vec<u8> {
        let issuer = sigstore.issuer.key().subject_public_key_info();
        let length = u32::try_from(to_be_signed.len()).unwrap().to_be_bytes();
        // version, type of signature, time, type of entry, issuer, certificate, no extensions
        let signed = [
            &[0, 0][..],
            &LOGGED_AT.to_be_bytes(),
            &[0, 1],
            &raw_sha256(&issuer),
            &length[1..],
            to_be_signed,
            &[0, 0],
        ]
        .concat();
        let signature = self.0.sign(&signed).unwrap();
        let id = raw_sha256(&self.0.subject_public_key_info());
        let length = u16::try_from(signature.len()).unwrap().to_be_bytes();
        // version, log, time, no extensions, SHA-256, ECDSA
        [
            &[0][..],
            &id,
            &LOGGED_AT.to_be_bytes(),
            &[0, 0, 4, 3],
            &length,
            &signature,
        ]
        .concat()
    }
}

/// The first value in a DER sequence. The lengths of the sequence and of the value must be encoded
/// in two bytes, as in certificates.
fn first_value(sequence: &[u8]) -> &[u8] {
    let content = &sequence[4..];
    let length = usize::from(u16::from_be_bytes([content[2], content[3]]));
    &content[..4 + length]
}
