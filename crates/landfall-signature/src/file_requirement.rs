//! Whether signatures of files and provenance files of charts meet the requirement of a rule.

use crate::crypto;
use crate::file_signatures::{BareFiles, FileSignatures};
use crate::log_query::{LogQuery, LoggedSignature};
use crate::requirement::{AcceptedSignature, SignatureFailure, SignatureRequirement};
use crate::signed_message::SignatureSubject;
use crate::signer_key::SignerKey;
use crate::trust_root::TrustRoot;
use crate::verified::VerifiedSignature;
use landfall_model::sign::{FileKey, OpenPgpKeys};

impl SignatureRequirement {
    /// The signatures that meet the requirement for a file, sorted. There is at least one.
    pub(crate) fn verify_file(
        &self,
        signatures: &[FileSignatures<'_>],
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        crypto::install();
        let verifier = self.trust_root.as_ref().map(TrustRoot::verifier);
        let keys: Vec<String> = self.keys.iter().map(SignerKey::pem).collect();
        let mut verdicts = Vec::new();
        for FileSignatures {
            file, documents, ..
        } in signatures
        {
            for document in documents {
                let mut keys = self.file_keys.iter();
                if let Some(key) = keys.find(|key| key.may_check(document)) {
                    let name = key.verify(document, || (file.open)());
                    verdicts.push(match name {
                        Ok(name) if self.provenance.is_none() => {
                            Ok(VerifiedSignature::by_key(name).into())
                        }
                        Ok(_) => Err("a signature, which is not a provenance".into()),
                        Err(error) => Err(error.to_string()),
                    });
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
        let mut verdicts: Vec<Result<AcceptedSignature, String>> = keys
            .map(|keys| {
                let signer = check(keys).map(VerifiedSignature::by_key);
                signer.map(AcceptedSignature::from)
            })
            .collect();
        if verdicts.is_empty() {
            verdicts.push(Err("a provenance, which only OpenPGP keys verify".into()));
        }
        self.choose(verdicts)
    }

    /// The queries to transparency logs for signatures of a file that come without a log entry.
    pub(crate) fn log_queries(&self, signatures: &[FileSignatures<'_>]) -> Vec<LogQuery> {
        let mut queries = Vec::new();
        let Some(root) = &self.trust_root else {
            return queries;
        };
        for file in signatures {
            let BareFiles {
                signatures: found,
                certificates: mut verifiers,
            } = file.bare();
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
