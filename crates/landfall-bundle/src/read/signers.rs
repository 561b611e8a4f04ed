//! Verifies the signatures of a bundle against the allowed signers.

use super::Bundle;
use crate::error::{BundleError, lines};
use crate::format::names::NAMESPACE;
use jiff::Timestamp;
use landfall_model::Failure;
use landfall_model::sign::{AllowedSigners, PublicKey, Signature};
use std::collections::BTreeSet;

/// A signer whose signature of a bundle was verified.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{principals} ({key})")]
pub struct BundleSigner {
    /// The principals of the key in the file of allowed signers.
    pub principals: String,
    /// The key of the signature.
    pub key: PublicKey,
}

impl Bundle {
    /// The keys of the signatures that can be read, unverified.
    pub fn signing_keys(&self) -> Vec<PublicKey> {
        self.signatures()
            .iter()
            .filter_map(|text| Some(Signature::parse(text.as_bytes()).ok()?.key().clone()))
            .collect()
    }

    /// The keys of the signatures, unverified; for a signature that cannot be read, the reason.
    pub fn signature_keys(&self) -> Vec<String> {
        self.signatures()
            .iter()
            .map(|text| match Signature::parse(text.as_bytes()) {
                Ok(signature) => signature.key().to_string(),
                Err(error) => format!("cannot be read: {error}"),
            })
            .collect()
    }

    /// The failure of a check that needs a signature, if there is none.
    pub fn not_signed(&self) -> Failure {
        let path = self.0.path.display();
        Failure::refused(format!(
            "{path} is not signed; sign it with the key of an allowed signer: `landfall sign \
             {path} --key KEY`"
        ))
    }

    /// The allowed signers who signed the bundle, each key once, as of `now`. Other signatures are
    /// ignored.
    ///
    /// # Errors
    /// If fewer than `at_least` persons signed the bundle: signatures are missing, were made by
    /// keys that are not allowed, or cover other content. Keys with a common principal belong to
    /// one person. Also if the contents index cannot be read again.
    pub fn signed_by(
        &self,
        allowed: &AllowedSigners,
        at_least: usize,
        now: Timestamp,
    ) -> Result<Vec<BundleSigner>, BundleError> {
        if self.signatures().is_empty() {
            return Err(self.not_signed().into());
        }
        let index = self.0.index_bytes()?;
        let mut signers: Vec<BundleSigner> = Vec::new();
        let mut refused: Vec<Failure> = Vec::new();
        for text in self.signatures() {
            match check(text, &index, allowed, now) {
                // the same key twice is one signature
                Ok(by) if signers.iter().any(|other| other.key == by.key) => {}
                Ok(by) => signers.push(by),
                Err(why) => refused.push(why),
            }
        }
        let count = count_persons(&signers);
        if count >= at_least {
            return Ok(signers);
        }
        let path = self.0.path.display();
        match refused.pop() {
            Some(error) if at_least == 1 && refused.is_empty() => Err(Failure::refused(format!(
                "cannot accept the signature of {path}: {error}"
            ))
            .into()),
            last => {
                refused.extend(last);
                let refused = match &refused[..] {
                    [] => String::new(),
                    some => format!("\n{}", lines(some)),
                };
                Err(Failure::refused(format!(
                    "{path} is signed by {count} of the allowed signers, and {at_least} are \
                     needed; add a signature with `landfall sign {path} --key KEY`{refused}"
                ))
                .into())
            }
        }
    }
}

/// Counts persons, not keys: keys that have a principal in common belong to one person.
fn count_persons(signers: &[BundleSigner]) -> usize {
    let mut persons: Vec<BTreeSet<&str>> = Vec::new();
    for signer in signers {
        let mut principals: BTreeSet<&str> = signer.principals.split(',').collect();
        persons.retain(|person| {
            let is_other = person.is_disjoint(&principals);
            if !is_other {
                principals.extend(person);
            }
            is_other
        });
        persons.push(principals);
    }
    persons.len()
}

/// Verifies the signature `text` over `message` and returns its signer.
fn check(
    text: &str,
    message: &[u8],
    allowed: &AllowedSigners,
    now: Timestamp,
) -> Result<BundleSigner, Failure> {
    let signature = Signature::parse(text.as_bytes())?;
    signature.check(NAMESPACE, message)?;
    let key = signature.key();
    let principals = allowed.principals(key, NAMESPACE, now)?.to_owned();
    Ok(BundleSigner {
        principals,
        key: key.clone(),
    })
}
