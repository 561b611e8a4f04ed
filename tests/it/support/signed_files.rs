//! Signatures of files as `cosign sign-blob` writes them, and a stand-in for the search of Rekor.

use super::images::hex;
use super::reverse_proxy::{ProxyAction, ReverseProxy};
use super::sigstore::{
    BUNDLE, ImageSigner, SIGNED_AT, Sigstore, Tampering, base64, hashedrekord, pem, raw_sha256,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::SigningKey;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

impl ImageSigner {
    /// The signature of `content` in base64.
    pub fn file_signature(&self, content: &[u8]) -> String {
        base64(self.key.sign(content).unwrap())
    }

    /// The certificate in PEM.
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", self.certificate.as_ref().unwrap())
    }
}

impl Sigstore {
    /// The Sigstore bundle of a file with this signature.
    pub fn file_bundle(
        &self,
        signer: &ImageSigner,
        content: &[u8],
        signature: &str,
        tampering: Tampering,
    ) -> Value {
        let body = hashedrekord(content, signature, signer);
        let entry = self.log_entry("hashedrekord", &body, tampering);
        let entry = Some(entry).filter(|_| tampering != Tampering::Missing);
        let digest = base64(raw_sha256(content));
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": signer.material(entry),
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": digest},
                "signature": signature,
            },
        })
    }

    /// A bundle in the format that `cosign sign-blob` wrote before there were Sigstore bundles.
    pub fn cosign_bundle(&self, signer: &ImageSigner, content: &[u8], signature: &str) -> Value {
        let entry = self.found_entry(&hashedrekord(content, signature, signer));
        json!({
            "base64Signature": signature,
            "cert": base64(signer.certificate_pem()),
            "rekorBundle": {
                "SignedEntryTimestamp": entry["verification"]["signedEntryTimestamp"],
                "Payload": {
                    "body": entry["body"], "integratedTime": SIGNED_AT, "logIndex": 0,
                    "logID": entry["logID"],
                },
            },
        })
    }

    /// An entry as Rekor's search returns it.
    fn found_entry(&self, body: &str) -> Value {
        let id = hex(&self.log_id());
        let body = base64(body);
        let promise = self.promise(&body);
        json!({
            "body": body, "integratedTime": SIGNED_AT, "logID": id, "logIndex": 0,
            "verification": {"signedEntryTimestamp": promise},
        })
    }
}

/// Where Rekor answers searches.
const SEARCH: &str = "/api/v1/log/entries/retrieve";

/// A stand-in for Rekor's search for entries. It runs until the process ends.
pub struct LogSearch {
    server: ReverseProxy,
    entries: Arc<Mutex<Vec<(String, Value)>>>,
}

impl LogSearch {
    pub fn new() -> LogSearch {
        let entries: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let known = entries.clone();
        let server = ReverseProxy::new("", move |request| {
            if !request.is("POST", SEARCH) {
                return ProxyAction::status(404);
            }
            let known = known.clone();
            ProxyAction::Read(Box::new(move |request| {
                let asked: Value = serde_json::from_slice(&request.body).unwrap();
                let asked = asked["entries"][0].to_string();
                let known = known.lock().unwrap();
                let found = known.iter().filter(|(body, _)| *body == asked);
                let found: Vec<Value> = found
                    .map(|(_, entry)| json!({"24296fb24b8ad77a": entry}))
                    .collect();
                let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
                ProxyAction::Answer(200, headers, Value::from(found).to_string())
            }))
        });
        LogSearch { server, entries }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The number of searches.
    pub fn count(&self) -> usize {
        self.server.count("POST", SEARCH)
    }

    /// Adds the entry of a signature to the log.
    pub fn add(&self, log: &Sigstore, signer: &ImageSigner, content: &[u8], signature: &str) {
        let body = hashedrekord(content, signature, signer);
        let entry = log.found_entry(&body);
        self.entries.lock().unwrap().push((body, entry));
    }
}

/// Decodes `text` from base64.
pub fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}
