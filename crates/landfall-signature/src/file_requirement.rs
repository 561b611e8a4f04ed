//! Whether signatures of files and provenance files of charts meet the requirement of a rule.

use crate::crypto;
use crate::file_signatures::{BareFiles, FileSignatures};
use crate::requirement::{AcceptedSignature, SignatureFailure, SignatureRequirement};
use crate::signed_content::{LogQuery, LoggedSignature};
use crate::signer_key::SignerKey;
use crate::statement::SignatureSubject;
use crate::trust_root::TrustRoot;
use crate::verified::VerifiedSignature;
use landfall_model::sign::{FileKey, OpenPgpKeys, SignatureTime};

impl SignatureRequirement {
    /// The signatures that meet the requirement for a file, sorted. There is at least one. OpenPGP
    /// signatures must be valid at `time`.
    pub(crate) fn verify_file(
        &self,
        signatures: &[FileSignatures<'_>],
        time: SignatureTime,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::ProvenanceConditions;
    use crate::file_signatures::SignedFile;
    use landfall_model::Digest;
    use landfall_model::document::ProvenanceRule;

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
