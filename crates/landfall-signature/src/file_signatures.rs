//! Signature files as publishers store them next to a file: Sigstore bundles, signatures and
//! certificates of `cosign sign-blob`, and signatures of minisign, OpenSSH and OpenPGP;
//! and whether they meet a requirement.

use crate::requirement::{AcceptedSignature, SignatureFailure, SignatureRequirement};
use crate::signed_content::{
    CERTIFICATE, LOG_ENTRY, LogEntry, LogQuery, LoggedSignature, SIGNATURE, SignatureDocument,
    SignatureFormat,
};
use crate::signing_key::{BEGIN_CERTIFICATE, SignerKey, pem};
use crate::trust_root::{self, TrustRoot};
use crate::verified::{SignatureSubject, VerifiedSignature};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Digest;
use landfall_model::sign::{FileKey, OpenPgpKeys, SignatureTime};
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
        let (signatures, certificates) = self.bare();
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

    /// The signatures in base64 and the certificates in PEM that are in files of their own.
    fn bare(&self) -> (Vec<String>, Vec<String>) {
        let (mut signatures, mut certificates) = (Vec::new(), Vec::new());
        for document in &self.documents {
            match SignatureFile::read(document) {
                Ok(SignatureFile::Bare(signature)) => signatures.push(signature),
                Ok(SignatureFile::Certificate(certificate)) => {
                    certificates.push(pem("CERTIFICATE", certificate.as_bytes()));
                }
                _ => {}
            }
        }
        (signatures, certificates)
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

// Whether signatures of files and provenance files of charts meet the requirement of a rule.

impl SignatureRequirement {
    /// The signatures that meet the requirement for a file, sorted. There is at least one. OpenPGP
    /// signatures must be valid at `time`.
    pub(crate) fn verify_file(
        &self,
        signatures: &[FileSignatures<'_>],
        time: SignatureTime,
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        trust_root::install();
        let verifier = self.trust_root.as_ref().map(TrustRoot::verifier);
        let keys: Vec<String> = self.keys.iter().map(SignerKey::pem).collect();
        let mut verdicts = Vec::new();
        for FileSignatures {
            file, documents, ..
        } in signatures
        {
            for document in documents {
                for key in self.file_keys.iter().filter(|key| key.may_check(document)) {
                    let name = key.verify(document, time, || (file.open)());
                    verdicts.push(self.by_file_key(name.map_err(|error| error.to_string())));
                }
            }
        }
        for signatures in signatures {
            let subject = SignatureSubject::File(&signatures.file);
            for document in signatures.documents(&keys) {
                verdicts.push(document.and_then(|document| {
                    self.verify_document(verifier.as_ref(), &subject, &document)
                }));
            }
        }
        self.choose(verdicts)
    }

    /// The URL endings of the signature files that are published next to a file, in groups. The
    /// bundles of Sigstore come first, because they contain their certificates and log entries.
    pub(crate) fn signature_endings(&self) -> Vec<Vec<&'static str>> {
        let mut groups = Vec::new();
        let mut detached = Vec::new();
        if !self.keys.is_empty() || !self.identities.is_empty() {
            groups.extend([vec![".sigstore.json"], vec![".sigstore"]]);
            detached.push(".sig");
        }
        if !self.identities.is_empty() {
            detached.extend([".cert", ".pem"]);
        }
        for key in &self.file_keys {
            for ending in key.signature_endings() {
                if !detached.contains(ending) {
                    detached.push(ending);
                }
            }
        }
        groups.push(detached);
        groups
    }

    /// The signatures that meet the requirement for a document that contains its own OpenPGP
    /// signature. `check` verifies the document by keys.
    pub(crate) fn verify_clear_signed(
        &self,
        check: &dyn Fn(&OpenPgpKeys) -> Result<String, String>,
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        let keys = self.file_keys.iter().filter_map(FileKey::open_pgp);
        let mut verdicts: Vec<Result<AcceptedSignature, String>> =
            keys.map(|keys| self.by_file_key(check(keys))).collect();
        if verdicts.is_empty() {
            verdicts.push(Err("a provenance, which only OpenPGP keys verify".into()));
        }
        self.choose(verdicts)
    }

    /// Accepts the signature that the file key `name` made, unless the rule demands a SLSA
    /// provenance: file keys make plain signatures only.
    fn by_file_key(&self, name: Result<String, String>) -> Result<AcceptedSignature, String> {
        let name = name?;
        if self.provenance.is_some() {
            return Err("a signature, which is not a provenance".into());
        }
        Ok(VerifiedSignature::by_key(name).into())
    }

    /// The queries to transparency logs for signatures of a file that come without a log entry.
    pub(crate) fn log_queries(&self, signatures: &[FileSignatures<'_>]) -> Vec<LogQuery> {
        let mut queries = Vec::new();
        let Some(root) = &self.trust_root else {
            return queries;
        };
        for file in signatures {
            let (found, mut verifiers) = file.bare();
            verifiers.extend(self.keys.iter().map(SignerKey::pem));
            for signature in &found {
                for verifier in &verifiers {
                    let body = LoggedSignature::new(&file.file.digest.hex(), signature, verifier);
                    let urls = root.log_urls();
                    queries.extend(urls.map(|url| LogQuery::new(url, body.clone())));
                }
            }
        }
        queries
    }
}

#[cfg(test)]
mod tests {
    use super::{SignedFile, *};
    use crate::requirement::ProvenanceConditions;
    use landfall_model::Digest;
    use landfall_model::document::ProvenanceRule;

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

    /// A key, and its signature of the text `test`, from minisign's own documentation.
    const KEY: &[u8] = b"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    const SIGNATURE: &[u8] = b"untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
";

    const OTHER_KEY: &[u8] = b"RWTmpZQh8Jv9vCGwHqwxxW0+xyY0c1gIi8vVdM9u8ZB2RzIY+4lFpdhb";

    /// A key that gpg made on 2021-01-01 for one year, and its signature of `test` from that day.
    const EXPIRED_KEY: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEX+5mABYJKwYBBAHaRw8BAQdAzPAZvSa/XM2ADv+VXa7t9UR1iUuV1OObMpFZ
mYjDgjG0FW9sZCA8b2xkQGV4YW1wbGUuY29tPoiWBBMWCAA+FiEEttFuRoHEEdwD
XMDQn+S10E9JwNgFAl/uZgACGwMFCQHhM4AFCwkIBwIGFQoJCAsCBBYCAwECHgEC
F4AACgkQn+S10E9JwNgbUgEA9sL+3G2ZN/0LeMn1jyZIDjJ1WZMC3fDcQiZPL+/J
U+YBAJVIVu19E812OJOpHuvNme1Gi4J4Jl1Jlkocwz6yi/8O
=7Sgs
-----END PGP PUBLIC KEY BLOCK-----
";

    const EXPIRED_SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----

iHUEABYIAB0WIQS20W5GgcQR3ANcwNCf5LXQT0nA2AUCX+5mAAAKCRCf5LXQT0nA
2FOEAQDs+u3EwIouXm/bJeWixElq/NabHx5Hp2dRJijIVg+IsQEAu8Hl9NbXwZJP
H7uD9WJzGxA5QLLuBUIgZHtCx2vTHgM=
=e2KT
-----END PGP SIGNATURE-----
";

    const OPEN_PGP: &[u8] = include_bytes!("../../../tests/data/packages/key.asc");

    fn requirement(keys: &[&[u8]]) -> SignatureRequirement {
        let keys = keys.iter().map(|key| FileKey::parse("k", key).unwrap());
        SignatureRequirement {
            file_keys: keys.collect(),
            ..SignatureRequirement::default()
        }
    }

    fn verify(requirement: &SignatureRequirement) -> Result<Vec<AcceptedSignature>, String> {
        verify_at(requirement, SIGNATURE, SignatureTime::Now)
    }

    fn verify_at(
        requirement: &SignatureRequirement,
        signature: &[u8],
        time: SignatureTime,
    ) -> Result<Vec<AcceptedSignature>, String> {
        let digest = Digest::sha256(b"test");
        let signatures = [FileSignatures {
            file: SignedFile {
                digest: &digest,
                open: Box::new(|| Ok(Box::new(&b"test"[..]))),
            },
            documents: vec![signature.to_vec()],
            log_entry: None,
        }];
        let accepted = requirement.verify_file(&signatures, time);
        accepted.map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_signature_by_any_listed_key_is_accepted() {
        for keys in [[OTHER_KEY, KEY], [KEY, OTHER_KEY]] {
            let requirement = requirement(&keys);
            let accepted = verify(&requirement).unwrap();
            assert_eq!(accepted.len(), 1);
            assert!(requirement.accepts(&accepted[0].verified));
        }
        let refused = verify(&requirement(&[OTHER_KEY])).unwrap_err();
        assert!(refused.contains("did not make it"), "{refused}");
    }

    #[test]
    fn an_open_pgp_key_must_be_valid_at_the_given_time() {
        let requirement = requirement(&[EXPIRED_KEY]);
        let verify = |time| verify_at(&requirement, EXPIRED_SIGNATURE, time);
        assert_eq!(verify(SignatureTime::Made).unwrap().len(), 1);
        let refused = verify(SignatureTime::Now).unwrap_err();
        assert!(refused.contains("expired"), "{refused}");
    }

    #[test]
    fn a_file_key_does_not_meet_a_rule_that_demands_a_provenance() {
        let mut requirement = requirement(&[KEY, OPEN_PGP]);
        let signer = |_: &OpenPgpKeys| Ok("0123".to_owned());
        assert!(requirement.verify_clear_signed(&signer).is_ok());
        requirement.provenance = Some(ProvenanceConditions::new(&ProvenanceRule {
            builder: Some("b".into()),
            source: None,
        }));
        let clear_signed = requirement.verify_clear_signed(&signer);
        for refused in [
            verify(&requirement).unwrap_err(),
            clear_signed.unwrap_err().to_string(),
        ] {
            let why = "a signature, which is not a provenance";
            assert!(refused.contains(why), "{refused}");
        }
    }
}
