//! Verifies the signatures of tags and commits.

use super::locked::{LockedGitRef, LockedGitRepository, VerifiedGitRef};
use jiff::Timestamp;
use landfall_git::{GitError, GitObjectKind, ObjectDatabase, SignedObject, tag_name};
use landfall_model::report::one_line;
use landfall_model::sign::GitSigners;

/// The reason why a ref does not have a signature that it needs.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefSignatureError {
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] GitError),
    /// Neither the tag nor its commit is signed.
    #[error("{name} is not signed, and `verify` requires a signature")]
    Unsigned { name: String },
    /// The signed tag was made for another name. A server could offer an old tag as a new one.
    #[error("{name} is a signed tag with another name: '{found}'")]
    OtherName { name: String, found: String },
    /// None of the keys made the signature.
    #[error("the signature of {name} is not valid: {why}")]
    Refused { name: String, why: String },
}

/// Whether all refs of `repository` were verified with keys in `signers`, or need no signature.
pub(super) fn is_verified(repository: &LockedGitRepository, signers: &[GitSigners]) -> bool {
    let has_signer = |one: &LockedGitRef| {
        let mut verified = repository.verified.iter();
        verified
            .any(|found| found.r#ref == one.name && signers.iter().any(|keys| keys.has(&found.key)))
    };
    signers.is_empty() || repository.refs.iter().all(has_signer)
}

/// Verifies that one of `signers` signed each of `refs`: the annotated tag or, if the tag has no
/// signature, the commit.
pub(super) fn verified_refs(
    database: &ObjectDatabase,
    refs: &[LockedGitRef],
    signers: &[GitSigners],
) -> Result<Vec<VerifiedGitRef>, RefSignatureError> {
    if signers.is_empty() {
        return Ok(Vec::new());
    }
    let mut verified = Vec::new();
    for one in refs {
        let signed = signed_object(database, one)?;
        verified.push(VerifiedGitRef {
            r#ref: one.name.clone(),
            key: signer_of(&one.name, &signed, signers)?,
        });
    }
    Ok(verified)
}

/// The signed tag or commit that a ref names.
fn signed_object(
    database: &ObjectDatabase,
    one: &LockedGitRef,
) -> Result<SignedObject, RefSignatureError> {
    let name = one.name.clone();
    let object = database.find(one.id)?;
    if database.kind(object) == GitObjectKind::Tag {
        let content = database.content(object)?;
        if let Some(signed) = SignedObject::of_tag(&content) {
            let found = tag_name(&signed.payload).unwrap_or_default();
            if name.strip_prefix("refs/tags/").map(str::as_bytes) == Some(found) {
                return Ok(signed);
            }
            let found = one_line(&String::from_utf8_lossy(found));
            return Err(RefSignatureError::OtherName { name, found });
        }
    }
    let commit = database.peeled(object)?;
    let signed = match database.kind(commit) {
        GitObjectKind::Commit => SignedObject::of_commit(&database.content(commit)?),
        _ => None,
    };
    signed.ok_or(RefSignatureError::Unsigned { name })
}

/// The name of the key that made the signature.
fn signer_of(
    name: &str,
    signed: &SignedObject,
    signers: &[GitSigners],
) -> Result<String, RefSignatureError> {
    let refused = |why: String| RefSignatureError::Refused {
        name: name.to_owned(),
        why,
    };
    let made = signed.time().and_then(|at| Timestamp::from_second(at).ok());
    let made = made.ok_or_else(|| refused("it does not say when it was made".into()))?;
    let mut failures = Vec::new();
    for keys in signers
        .iter()
        .filter(|keys| keys.may_check(&signed.signature))
    {
        match keys.verify(&signed.signature, &signed.payload, made) {
            Ok(key) => return Ok(key),
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() {
        let names: Vec<String> = signers.iter().map(ToString::to_string).collect();
        failures.push(format!(
            "it does not have the format of {}",
            names.join(" or ")
        ));
    }
    Err(refused(failures.join("; ")))
}
