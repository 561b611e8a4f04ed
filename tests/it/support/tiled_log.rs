//! A Rekor v2 transparency log: tiled, with a checkpoint for each entry, and without times (C2SP,
//! tlog-checkpoint and signed-note).

use super::sigstore::{ImageSigner, base64, raw_sha256};
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData, SigningKey};
use serde_json::{Value, json};

const ORIGIN: &str = "log2026.rekor.test";

pub struct TiledLog(KeyPair);

impl TiledLog {
    pub fn new() -> TiledLog {
        TiledLog(KeyPair::generate_for(&PKCS_ED25519).unwrap())
    }

    /// The log in a `trusted_root.json`.
    pub fn trusted(&self) -> Value {
        json!({
            "baseUrl": format!("https://{ORIGIN}"),
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": base64(self.0.subject_public_key_info()),
                "keyDetails": "PKIX_ED25519",
                "validFor": {"start": "2020-01-01T00:00:00Z"},
            },
            "logId": {"keyId": base64(self.id())},
        })
    }

    /// The ID of the log's key, as defined for signed notes.
    fn id(&self) -> Vec<u8> {
        let key = self.0.der_bytes();
        raw_sha256(&[ORIGIN.as_bytes(), b"\n\x01", key].concat())
    }

    /// Replaces the log entries in `bundle`, which contains a statement, with one entry of this
    /// log. `signed` are the bytes that `signer` signed.
    pub fn log(&self, bundle: &mut Value, signer: &ImageSigner, signed: &[u8]) {
        let certificate = base64(signer.certificate.as_ref().unwrap());
        let body = json!({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {
            "hashedRekordV002": {
                "data": {"algorithm": "SHA2_256", "digest": base64(raw_sha256(signed))},
                "signature": {
                    "content": bundle["dsseEnvelope"]["signatures"][0]["sig"],
                    "verifier": {
                        "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                        "x509Certificate": {"rawBytes": certificate},
                    },
                },
            },
        }})
        .to_string();
        let root = base64(raw_sha256(&[&[0], body.as_bytes()].concat()));
        let note = format!("{ORIGIN}\n1\n{root}\n");
        let signature = self.0.sign(note.as_bytes()).unwrap();
        let signature = base64([&self.id()[..4], &signature].concat());
        let entry = json!({
            "logIndex": "0",
            "logId": {"keyId": base64(self.id())},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
            "inclusionProof": {
                "logIndex": "0", "rootHash": root, "treeSize": "1", "hashes": [],
                "checkpoint": {"envelope": format!("{note}\n\u{2014} {ORIGIN} {signature}\n")},
            },
            "canonicalizedBody": base64(&body),
        });
        bundle["verificationMaterial"]["tlogEntries"] = json!([entry]);
    }
}
