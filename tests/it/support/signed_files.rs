//! Signatures of files as `cosign sign-blob` writes them, and a stand-in for the search of Rekor.

use super::images::hex;
use super::sigstore::{
    BUNDLE, ImageSigner, SIGNED_AT, Sigstore, Tampering, base64, hashedrekord, pem, raw_sha256,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::SigningKey;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
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

/// A stand-in for Rekor's search for entries. It runs until the process ends.
pub struct LogSearch {
    pub url: String,
    entries: Arc<Mutex<Vec<(String, Value)>>>,
    pub requests: Arc<Mutex<usize>>,
}

impl LogSearch {
    pub fn new() -> LogSearch {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let search = LogSearch {
            url,
            entries: Arc::default(),
            requests: Arc::default(),
        };
        let entries = search.entries.clone();
        let requests = search.requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let entries = entries.lock().unwrap().clone();
                answer(stream, &entries, &requests);
            }
        });
        search
    }

    /// Adds the entry of a signature to the log.
    pub fn add(&self, log: &Sigstore, signer: &ImageSigner, content: &[u8], signature: &str) {
        let body = hashedrekord(content, signature, signer);
        let entry = log.found_entry(&body);
        self.entries.lock().unwrap().push((body, entry));
    }
}

/// Answers one request, and closes the connection.
fn answer(mut stream: TcpStream, entries: &[(String, Value)], requests: &Mutex<usize>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push(std::mem::take(&mut line));
    }
    let mut body = vec![0; length];
    let is_search = head
        .first()
        .is_some_and(|line| line.starts_with("POST /api/v1/log/entries/retrieve "));
    let (status, text) = if is_search && reader.read_exact(&mut body).is_ok() {
        *requests.lock().unwrap() += 1;
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let asked = asked["entries"][0].to_string();
        let found = entries.iter().filter(|(body, _)| *body == asked);
        let found: Vec<Value> = found
            .map(|(_, entry)| json!({"24296fb24b8ad77a": entry}))
            .collect();
        ("200 OK", Value::from(found).to_string())
    } else {
        // also for the ClientHello of a probe, which is not an HTTP request
        ("404 Not Found", String::new())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(head.as_bytes());
}

/// Decodes `text` from base64.
pub fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}
