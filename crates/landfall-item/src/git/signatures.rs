//! Verifies the signatures of tags and commits.

use super::locked::{LockedGitRef, LockedGitRepository, VerifiedGitRef};
use super::pack_writing::{GitFault, store_pack, stored_objects};
use super::request::GitRequest;
use crate::resolver::{ResolveError, Resolver};
use jiff::Timestamp;
use landfall_content::upstream::write_packs;
use landfall_content::{BlobRead, GitPack};
use landfall_git::{GitObjectKind, ObjectDatabase, ObjectIndex, SignedObject, tag_name};
use landfall_model::report::one_line;
use landfall_model::sign::{GitSigners, SignatureTime};
use landfall_model::{Failure, Limits};
use landfall_signature::SignaturePolicy;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The signatures that the refs of a repository need.
pub(super) struct RefRules<'a> {
    /// Lists of keys, of each of which one key must have signed.
    pub(super) signers: &'a [Vec<GitSigners>],
    /// The tags for which the signature of their commit is enough.
    pub(super) named: HashSet<String>,
    /// When keys of OpenPGP must be valid.
    pub(super) time: SignatureTime,
}

impl RefRules<'_> {
    /// Whether a ref is a tag that must be signed itself.
    fn needs_signed_tag(&self, one: &LockedGitRef) -> bool {
        one.name.starts_with("refs/tags/") && !self.named.contains(&one.name)
    }
}

/// Whether all refs of `repository` were verified with a key of each list in `signers`.
pub(super) fn is_verified(repository: &LockedGitRepository, signers: &[Vec<GitSigners>]) -> bool {
    signers.iter().all(|signers| {
        let verified = repository.verified.iter();
        let verified = verified.filter(|found| signers.iter().any(|keys| keys.has(&found.key)));
        let verified: HashSet<&str> = verified.map(|found| found.r#ref.as_str()).collect();
        let mut refs = repository.refs.iter();
        refs.all(|one| verified.contains(one.name.as_str()))
    })
}

/// Whether all tags of `old` that must be signed themselves are: the lock records the key that
/// signed a tag or its commit, but not which of the two it signed. `None` if the store lacks the
/// packs that show it.
pub(super) async fn has_signed_tags(
    resolver: &Resolver,
    request: &GitRequest,
    old: &LockedGitRepository,
) -> Option<bool> {
    let rules = request.ref_rules();
    let mut refs = old.refs.iter();
    if request.signers.is_empty() || !refs.any(|one| rules.needs_signed_tag(one)) {
        return Some(true);
    }
    let disk = resolver.disk.clone();
    let limits = *resolver.limits();
    let (request, old) = (request.clone(), old.clone());
    let verifying = tokio::task::spawn_blocking(move || {
        let packs = old.git_packs();
        let has = |pack: &GitPack| disk.has(&pack.digest, pack.size).unwrap_or(false);
        if !packs.packs.iter().all(has) {
            return None;
        }
        let blobs: Arc<dyn BlobRead> = Arc::new(disk);
        let database = stored_objects(&blobs, &packs.packs, limits);
        let verified =
            database.map(|database| verified_refs(&database, &old.refs, &request.ref_rules()));
        Some(verified.is_ok_and(|verified| verified.is_ok()))
    });
    verifying.await.ok().flatten()
}

/// Verifies that each of `refs` is signed as `rules` demand: the annotated tag or, if the tag has
/// no signature and is named, the commit. Returns the keys in the order of the refs.
pub(super) fn verified_refs(
    database: &ObjectDatabase,
    refs: &[LockedGitRef],
    rules: &RefRules<'_>,
) -> Result<Vec<VerifiedGitRef>, GitFault> {
    if rules.signers.is_empty() {
        return Ok(Vec::new());
    }
    let mut verified = Vec::new();
    // many refs may name the same object, whose signature is verified once
    let mut unsigned: HashSet<ObjectIndex> = HashSet::new();
    let mut known: HashMap<ObjectIndex, BTreeSet<String>> = HashMap::new();
    for one in refs {
        let object = database.find(one.id)?;
        let tag = match database.kind(object) {
            GitObjectKind::Tag if !unsigned.contains(&object) => signed_tag(database, object, one)?,
            _ => None,
        };
        let keys = match tag {
            Some(signed) => signers_of(&one.name, &signed, rules)?,
            None if rules.needs_signed_tag(one) => {
                // the server decides which tags are chosen
                return Err(Failure::failed(format!(
                    "{} is not a signed tag, and a tag that `tags` or `update` chooses must be one: \
                     the signature of a commit does not cover the names of tags",
                    one.name
                ))
                .into());
            }
            None => {
                unsigned.insert(object);
                let commit = database.peeled(object)?;
                match known.entry(commit) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(entry) => {
                        let signed = signed_commit(database, commit, one)?;
                        let keys = signers_of(&one.name, &signed, rules)?;
                        entry.insert(keys).clone()
                    }
                }
            }
        };
        verified.extend(keys.into_iter().map(|key| VerifiedGitRef {
            r#ref: one.name.clone(),
            key,
        }));
    }
    Ok(verified)
}

impl LockedGitRepository {
    /// Verifies the signatures of all refs by `policy`, with the packs in `blobs`. Returns the
    /// names of the keys; empty if the repository needs no signature. The tags that `wanted` names
    /// count as named by the manifest. Keys of OpenPGP must be valid at `time`.
    pub(crate) fn signing_keys(
        &self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        time: SignatureTime,
    ) -> Result<BTreeSet<String>, GitFault> {
        let signers = policy.git_signers(&self.name);
        if signers.is_empty() {
            return Ok(BTreeSet::new());
        }
        let named = self.wanted.iter();
        let rules = RefRules {
            signers: &signers,
            named: named.filter_map(|one| GitRequest::named_tag(one)).collect(),
            time,
        };
        let database = self.objects(blobs, Limits::default())?;
        let verified = verified_refs(&database, &self.refs, &rules)?;
        Ok(verified.into_iter().map(|one| one.key).collect())
    }

    /// Downloads the packs that the store of `resolver` lacks, so that the signatures can be
    /// verified.
    pub(crate) async fn download_packs(&self, resolver: &Resolver) -> Result<(), ResolveError> {
        let packs = Arc::new(self.git_packs());
        let disk = resolver.disk.clone();
        let has = |pack: &GitPack| disk.has(&pack.digest, pack.size).unwrap_or(false);
        if packs.packs.iter().all(has) {
            return Ok(());
        }
        // packs that the lock does not name get other digests, and verification misses the right
        // ones
        let folder = &resolver.lock_folder;
        let written = write_packs(&resolver.sessions, folder, packs, move |database, plan| {
            store_pack(&disk, database, plan)
        });
        Ok(written.await.map(drop)?)
    }
}

/// The annotated tag `object`, which the ref `one` names. `None` if it is not signed.
fn signed_tag(
    database: &ObjectDatabase,
    object: ObjectIndex,
    one: &LockedGitRef,
) -> Result<Option<SignedObject>, GitFault> {
    let Some(signed) = SignedObject::of_tag(&database.content(object)?) else {
        return Ok(None);
    };
    let found = tag_name(&signed.payload).unwrap_or_default();
    if one.name.strip_prefix("refs/tags/").map(str::as_bytes) == Some(found) {
        return Ok(Some(signed));
    }
    // a server could offer an old tag as a new one
    Err(Failure::failed(format!(
        "{} is a signed tag with another name: '{}'",
        one.name,
        one_line(&String::from_utf8_lossy(found))
    ))
    .into())
}

/// The commit that the ref `one` names in the end.
fn signed_commit(
    database: &ObjectDatabase,
    commit: ObjectIndex,
    one: &LockedGitRef,
) -> Result<SignedObject, GitFault> {
    let signed = match database.kind(commit) {
        GitObjectKind::Commit => SignedObject::of_commit(&database.content(commit)?),
        _ => None,
    };
    signed.ok_or_else(|| {
        let name = &one.name;
        Failure::failed(format!(
            "{name} is not signed, and `verify` requires a signature"
        ))
        .into()
    })
}

/// The names of the keys that made the signature: one for each list of keys, without duplicates.
fn signers_of(
    name: &str,
    signed: &SignedObject,
    rules: &RefRules<'_>,
) -> Result<BTreeSet<String>, Failure> {
    let lists = rules.signers.iter();
    lists
        .map(|signers| signer_of(name, signed, signers, rules.time))
        .collect()
}

/// The name of the key among `signers` that made the signature.
fn signer_of(
    name: &str,
    signed: &SignedObject,
    signers: &[GitSigners],
    time: SignatureTime,
) -> Result<String, Failure> {
    let refused =
        |why: String| Failure::failed(format!("the signature of {name} is not valid: {why}"));
    let made = signed.time().and_then(|at| Timestamp::from_second(at).ok());
    let made = made.ok_or_else(|| refused("it does not say when it was made".into()))?;
    let mut failures = Vec::new();
    for keys in signers
        .iter()
        .filter(|keys| keys.may_check(&signed.signature))
    {
        match keys.verify(&signed.signature, &signed.payload, made, time) {
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
