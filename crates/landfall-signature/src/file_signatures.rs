//! Signature files as publishers store them next to a file: Sigstore bundles, signatures and
//! certificates of `cosign sign-blob`, and signatures of minisign, OpenSSH and OpenPGP.

use crate::signed_content::{
    CERTIFICATE, LOG_ENTRY, LogEntry, LoggedSignature, SIGNATURE, SignatureDocument,
    SignatureFormat,
};
use crate::signer_key::{BEGIN_CERTIFICATE, pem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::Value;
use sigstore_verify::types::DerCertificate;
use std::io::{self, Read};

/// A file whose signatures are verified.
pub struct SignedFile<'a> {
    /// The SHA-256 of its content.
    pub digest: &'a Digest,
    /// Opens the content, which some signatures need.
    pub open: Box<dyn Fn() -> io::Result<Box<dyn Read + Send>> + 'a>,
}

/// A file, and the signature files about it.
pub struct FileSignatures<'a> {
    /// The signed file.
    pub file: SignedFile<'a>,
    /// The signature files and certificates, in any order.
    pub documents: Vec<Vec<u8>>,
    /// The entry of a transparency log for a signature that was published without its entry.
    pub log_entry: Option<&'a LogEntry>,
}

/// Signatures and certificates in files of their own.
#[derive(Default)]
pub(crate) struct BareFiles {
    /// The signatures in base64.
    pub(crate) signatures: Vec<String>,
    /// The certificates in PEM.
    pub(crate) certificates: Vec<String>,
}

/// The document that `cosign sign-blob --bundle` wrote before Sigstore's bundles.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CosignBundle {
    base64_signature: String,
    #[serde(default)]
    cert: String,
    rekor_bundle: Option<Value>,
}

/// A signature file.
enum SignatureFile {
    /// A signature, with its certificate and log entry if it has them.
    Complete(SignatureDocument),
    /// Only a signature, in base64.
    Bare(String),
    /// Only a certificate.
    Certificate(DerCertificate),
    /// A signature in a format that [`landfall_model::sign::FileKey`] verifies.
    Foreign,
}

impl FileSignatures<'_> {
    /// The signatures in Sigstore's formats, and an error message for each malformed file. A bare
    /// signature is returned alone and with each certificate; if there is a log entry, also with
    /// each of `keys` in PEM.
    pub(crate) fn documents(&self, keys: &[String]) -> Vec<Result<SignatureDocument, String>> {
        let mut found = Vec::new();
        for document in &self.documents {
            match SignatureFile::read(document) {
                Ok(SignatureFile::Complete(document)) => found.push(Ok(document)),
                Ok(_) => {}
                Err(why) => found.push(Err(why)),
            }
        }
        let BareFiles {
            signatures,
            certificates,
        } = self.bare();
        for signature in &signatures {
            for certificate in &certificates {
                let mut document = self.detached(signature, Some(certificate));
                let annotations = &mut document.annotations;
                annotations.insert(CERTIFICATE.into(), certificate.clone());
                found.push(Ok(document));
            }
            for key in keys.iter().filter(|_| self.log_entry.is_some()) {
                found.push(Ok(self.detached(signature, Some(key))));
            }
            found.push(Ok(self.detached(signature, None)));
        }
        found
    }

    /// The signatures and certificates that are in files of their own.
    pub(crate) fn bare(&self) -> BareFiles {
        let mut bare = BareFiles::default();
        for document in &self.documents {
            match SignatureFile::read(document) {
                Ok(SignatureFile::Bare(signature)) => bare.signatures.push(signature),
                Ok(SignatureFile::Certificate(certificate)) => {
                    let certificate = pem("CERTIFICATE", certificate.as_bytes());
                    bare.certificates.push(certificate);
                }
                _ => {}
            }
        }
        bare
    }

    /// A bare signature. If there are a log entry and a `verifier` (a certificate or key in PEM),
    /// the document contains the log entry with `verifier` in its body.
    fn detached(&self, signature: &str, verifier: Option<&str>) -> SignatureDocument {
        let mut document = SignatureDocument::new(SignatureFormat::Detached, Vec::new(), [].into());
        let annotations = &mut document.annotations;
        annotations.insert(SIGNATURE.into(), signature.into());
        if let (Some(entry), Some(verifier)) = (self.log_entry, verifier) {
            let body = LoggedSignature::new(&self.file.digest.hex(), signature, verifier);
            annotations.insert(LOG_ENTRY.into(), body.annotation(entry));
        }
        document
    }
}

impl SignatureFile {
    fn read(bytes: &[u8]) -> Result<SignatureFile, String> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            // as `openssl dgst -sign` writes it
            return Ok(SignatureFile::Bare(STANDARD.encode(bytes)));
        };
        let text = text.trim();
        if text.starts_with('{') {
            return json(text);
        }
        if text.starts_with(BEGIN_CERTIFICATE) {
            return certificate(text);
        }
        if text.starts_with("-----BEGIN") || text.starts_with("untrusted comment:") {
            return Ok(SignatureFile::Foreign);
        }
        // base64 may be wrapped
        let joined: String = text.split_ascii_whitespace().collect();
        match STANDARD.decode(&joined) {
            // `cosign sign-blob --output-certificate` encodes the PEM text once more
            Ok(decoded) if decoded.starts_with(BEGIN_CERTIFICATE.as_bytes()) => {
                certificate(&String::from_utf8_lossy(&decoded))
            }
            Ok(_) => Ok(SignatureFile::Bare(joined)),
            Err(_) => Ok(SignatureFile::Bare(STANDARD.encode(bytes))),
        }
    }
}

/// Reads a Sigstore bundle, or the bundle of older releases of cosign.
fn json(text: &str) -> Result<SignatureFile, String> {
    let malformed = |error: serde_json::Error| format!("a malformed bundle ({error})");
    let value: Value = serde_json::from_str(text).map_err(malformed)?;
    if value["base64Signature"].is_null() {
        let bytes = text.as_bytes().to_vec();
        let document = SignatureDocument::new(SignatureFormat::Bundle, bytes, [].into());
        return Ok(SignatureFile::Complete(document));
    }
    let CosignBundle {
        base64_signature,
        cert,
        rekor_bundle,
    } = serde_json::from_value(value).map_err(malformed)?;
    let mut document = SignatureDocument::new(SignatureFormat::Detached, Vec::new(), [].into());
    let annotations = &mut document.annotations;
    annotations.insert(SIGNATURE.into(), base64_signature);
    // a certificate or, if a key signed, its public key
    let cert = STANDARD.decode(&cert).unwrap_or_else(|_| cert.into_bytes());
    if cert.starts_with(BEGIN_CERTIFICATE.as_bytes()) {
        let text = String::from_utf8_lossy(&cert).into_owned();
        annotations.insert(CERTIFICATE.into(), text);
    }
    if let Some(entry) = rekor_bundle {
        annotations.insert(LOG_ENTRY.into(), entry.to_string());
    }
    Ok(SignatureFile::Complete(document))
}

/// Reads the first certificate in PEM.
fn certificate(pem: &str) -> Result<SignatureFile, String> {
    let end = "-----END CERTIFICATE-----";
    let first = match pem.split_once(end) {
        Some((first, _)) => format!("{first}{end}\n"),
        None => pem.to_owned(),
    };
    let certificate = DerCertificate::from_pem(&first)
        .map_err(|error| format!("a malformed certificate ({error})"))?;
    Ok(SignatureFile::Certificate(certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> String {
        match SignatureFile::read(bytes) {
            Ok(SignatureFile::Complete(document)) => format!("{:?}", document.format),
            Ok(SignatureFile::Bare(text)) => text,
            Ok(SignatureFile::Certificate(certificate)) => certificate.to_base64(),
            Ok(SignatureFile::Foreign) => "foreign".into(),
            Err(why) => why,
        }
    }

    #[test]
    fn the_format_of_a_signature_file_is_detected_from_its_content() {
        let pem = pem("CERTIFICATE", b"abcd");
        let chain = format!("{pem}{}", super::pem("CERTIFICATE", b"root"));
        assert_eq!(kind(chain.as_bytes()), "YWJjZA==");
        // as `cosign sign-blob --output-certificate` writes it
        assert_eq!(kind(STANDARD.encode(&pem).as_bytes()), "YWJjZA==");
        assert_eq!(kind(b" c2ln\nbmVk\n"), "c2lnbmVk");
        assert_eq!(kind(&[0x30, 0xff]), "MP8=");
        assert_eq!(kind(b"not base64"), STANDARD.encode("not base64"));
        assert_eq!(kind(b"-----BEGIN PGP SIGNATURE-----\n"), "foreign");
        assert_eq!(kind(b"untrusted comment: x\n"), "foreign");
        assert_eq!(kind(b"{\"mediaType\": \"x\"}"), "Bundle");
        assert_eq!(kind(b"{\"base64Signature\": \"c2ln\"}"), "Detached");
        assert!(kind(b"{").starts_with("a malformed bundle"));
    }

    #[test]
    fn pem_text_is_wrapped_at_64_columns_as_in_logs() {
        let text = pem("CERTIFICATE", &[7; 60]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1].len()), (4, 64));
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
        assert!(DerCertificate::from_pem(&text).is_ok());
    }
}
