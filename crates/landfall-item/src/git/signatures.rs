//! Verifies the signatures of tags and commits.

use super::locked::{LockedGitRef, LockedGitRepository, VerifiedGitRef};
use super::pack_writing::stored_objects;
use super::request::GitRequest;
use crate::resolver::Resolver;
use jiff::Timestamp;
use landfall_content::GitPack;
use landfall_git::{GitError, GitObjectKind, ObjectDatabase, ObjectIndex, SignedObject, tag_name};
use landfall_model::report::one_line;
use landfall_model::sign::GitSigners;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// The reason why a ref does not have a signature that it needs.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefSignatureError {
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] GitError),
    /// Neither the tag nor its commit is signed.
    #[error("{name} is not signed, and `verify` requires a signature")]
    Unsigned { name: String },
    /// The tag has no signature of its own, but the server decides which tags are chosen.
    #[error(
        "{name} is not a signed tag, and a tag that `tags` or `update` chooses must be one: the \
         signature of a commit does not cover the names of tags"
    )]
    UnsignedTag { name: String },
    /// The signed tag was made for another name. A server could offer an old tag as a new one.
    #[error("{name} is a signed tag with another name: '{found}'")]
    OtherName { name: String, found: String },
    /// None of the keys made the signature.
    #[error("the signature of {name} is not valid: {why}")]
    Refused { name: String, why: String },
}

/// Whether all refs of `repository` were verified with keys in `signers`, or need no signature.
pub(super) fn is_verified(repository: &LockedGitRepository, signers: &[GitSigners]) -> bool {
    let verified = repository.verified.iter();
    let verified = verified.filter(|found| signers.iter().any(|keys| keys.has(&found.key)));
    let verified: HashSet<&str> = verified.map(|found| found.r#ref.as_str()).collect();
    let is_verified = |one: &LockedGitRef| verified.contains(one.name.as_str());
    signers.is_empty() || repository.refs.iter().all(is_verified)
}

/// Whether all tags of `old` that must be signed themselves are: the lock records the key that
/// signed a tag or its commit, but not which of the two it signed. `None` if the store lacks the
/// packs that show it.
pub(super) async fn has_signed_tags(
    resolver: &Resolver,
    request: &GitRequest,
    old: &LockedGitRepository,
) -> Option<bool> {
    let named = request.tags_signed_by_commits();
    let must_be_signed =
        |one: &LockedGitRef| one.name.starts_with("refs/tags/") && !named.contains(&one.name);
    if request.signers.is_empty() || !old.refs.iter().any(must_be_signed) {
        return Some(true);
    }
    let disk = resolver.disk().clone();
    let limits = *resolver.limits();
    let (request, old) = (request.clone(), old.clone());
    let verifying = tokio::task::spawn_blocking(move || {
        let packs = old.git_packs();
        let has = |pack: &GitPack| disk.has(&pack.digest, pack.size).unwrap_or(false);
        if !packs.packs.iter().all(has) {
            return None;
        }
        let database = stored_objects(&disk, &packs, limits);
        let verified = database.map(|database| verified_refs(&database, &old.refs, &request));
        Some(verified.is_ok_and(|verified| verified.is_ok()))
    });
    verifying.await.ok().flatten()
}

/// Verifies that one of the signers of `request` signed each of `refs`: the annotated tag or, if
/// the tag has no signature and `request` names it, the commit.
pub(super) fn verified_refs(
    database: &ObjectDatabase,
    refs: &[LockedGitRef],
    request: &GitRequest,
) -> Result<Vec<VerifiedGitRef>, RefSignatureError> {
    if request.signers.is_empty() {
        return Ok(Vec::new());
    }
    let mut verified = Vec::new();
    let named = request.tags_signed_by_commits();
    // many refs may name the same object, whose signature is verified once
    let mut unsigned: HashSet<ObjectIndex> = HashSet::new();
    let mut keys: HashMap<ObjectIndex, String> = HashMap::new();
    for one in refs {
        let object = database.find(one.id)?;
        let tag = match database.kind(object) {
            GitObjectKind::Tag if !unsigned.contains(&object) => signed_tag(database, object, one)?,
            _ => None,
        };
        let key = match tag {
            Some(signed) => signer_of(&one.name, &signed, &request.signers)?,
            None if one.name.starts_with("refs/tags/") && !named.contains(&one.name) => {
                let name = one.name.clone();
                return Err(RefSignatureError::UnsignedTag { name });
            }
            None => {
                unsigned.insert(object);
                let commit = database.peeled(object)?;
                match keys.entry(commit) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(entry) => {
                        let signed = signed_commit(database, commit, one)?;
                        let key = signer_of(&one.name, &signed, &request.signers)?;
                        entry.insert(key).clone()
                    }
                }
            }
        };
        verified.push(VerifiedGitRef {
            r#ref: one.name.clone(),
            key,
        });
    }
    Ok(verified)
}

/// The annotated tag `object`, which the ref `one` names. `None` if it is not signed.
fn signed_tag(
    database: &ObjectDatabase,
    object: ObjectIndex,
    one: &LockedGitRef,
) -> Result<Option<SignedObject>, RefSignatureError> {
    let Some(signed) = SignedObject::of_tag(&database.content(object)?) else {
        return Ok(None);
    };
    let found = tag_name(&signed.payload).unwrap_or_default();
    if one.name.strip_prefix("refs/tags/").map(str::as_bytes) == Some(found) {
        return Ok(Some(signed));
    }
    Err(RefSignatureError::OtherName {
        name: one.name.clone(),
        found: one_line(&String::from_utf8_lossy(found)),
    })
}

/// The commit that the ref `one` names in the end.
fn signed_commit(
    database: &ObjectDatabase,
    commit: ObjectIndex,
    one: &LockedGitRef,
) -> Result<SignedObject, RefSignatureError> {
    let signed = match database.kind(commit) {
        GitObjectKind::Commit => SignedObject::of_commit(&database.content(commit)?),
        _ => None,
    };
    signed.ok_or_else(|| RefSignatureError::Unsigned {
        name: one.name.clone(),
    })
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
