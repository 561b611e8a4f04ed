//! A locked repository as an item.

use super::locked::{self, LockedGitRepository};
use super::manifest_entry::GitEntry;
use super::parts;
use super::repository_url::url_of;
use super::request::GitRequest;
use crate::file::is_file_url;
use crate::text::oversize;
use crate::{
    AuditedItem, Exclusion, ItemIdentity, ItemKind, LockedItem, ManifestResult, PushedItem,
    ServedItem,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::SourceSpan;
use landfall_model::report::{EntryKind, one_line};
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

impl ItemIdentity for LockedGitRepository {
    fn kind(&self) -> EntryKind {
        EntryKind::Git
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.name.clone()
    }
}

impl PushedItem for LockedGitRepository {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        vec![mapping.own_destination(&parts::own_repository(self))]
    }

    fn tag(&self) -> String {
        parts::tag(&self.digest)
    }
}

impl AuditedItem for LockedGitRepository {
    fn has_blob(&self, digest: &Digest) -> bool {
        let mut large_files = self.large_files.iter().flatten();
        self.digest == *digest
            || self.packs.iter().any(|pack| pack.digest == *digest)
            || large_files.any(|file| file.digest == *digest)
    }
}

impl ServedItem for LockedGitRepository {
    fn own_repository(&self) -> String {
        parts::own_repository(self)
    }
}

impl LockedItem for LockedGitRepository {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// The URL must be http or https, sizes must be plausible, and `refs`, `packs` and `wanted`
    /// must not be empty. Refs must be sorted, and contain the head and all verified refs. Shallow
    /// commits need a depth. The digest must be that of the artifact, which is computed from the
    /// other fields. Names of refs were checked when they were parsed.
    fn implausibility(&self) -> Option<String> {
        let url = self.url();
        if url.len() == self.name.len() || !is_file_url(url) {
            return Some(format!(
                "'{}' is not a git repository",
                one_line(&self.name)
            ));
        }
        let packs = self.packs.iter().map(|pack| pack.size);
        let large_files = self.large_files.iter().flatten().map(|file| file.size);
        if let Some(fault) = oversize(packs.chain(large_files)) {
            return Some(fault);
        }
        if self.refs.is_empty() || self.packs.is_empty() || self.wanted.is_empty() {
            return Some(format!("'{}' lacks refs, packs or wanted refs", self.name));
        }
        let has_head = |head: &String| self.refs.iter().any(|one| one.name == *head);
        if let Some(head) = self.head.as_ref().filter(|head| !has_head(head)) {
            return Some(format!("'{}' is not among the refs", one_line(head)));
        }
        if let Some(pair) = self
            .refs
            .windows(2)
            .find(|pair| pair[0].name >= pair[1].name)
        {
            return Some(format!("the refs are not sorted: '{}'", pair[1].name));
        }
        if !self.shallow.is_empty() && self.depth.is_none() {
            return Some(format!("'{}' has shallow commits, but no depth", self.name));
        }
        let at = |name: &str| {
            self.refs
                .binary_search_by(|one| one.name.as_str().cmp(name))
        };
        let is_ref = |name: &str| at(name).is_ok();
        if let Some(one) = self.verified.iter().find(|one| !is_ref(&one.r#ref)) {
            let name = one_line(&one.r#ref);
            return Some(format!("'{name}' is verified, but not among the refs"));
        }
        let found = parts::digest(self);
        (found != self.digest).then(|| {
            format!(
                "'{}' has the digest {}, but its other fields have {found}",
                self.name, self.digest
            )
        })
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn signature_subject(&self) -> Option<RuleSubject> {
        Some(RuleSubject::Git(self.name.clone()))
    }

    fn verify_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        let keys = self.signing_keys(policy, blobs, time);
        let keys = keys.map_err(|error| error.to_string())?;
        Ok(keys.into_iter().map(VerifiedSignature::by_key).collect())
    }

    fn as_git_repository(&self) -> Option<&LockedGitRepository> {
        Some(self)
    }
}

impl ItemKind for LockedGitRepository {
    const KIND: EntryKind = EntryKind::Git;
    const SECTION: &'static str = "git";
    type Name = String;
    type Request = GitRequest;
    type Entry = GitEntry;

    fn is_name(text: &str) -> bool {
        text.starts_with("git+http://") || text.starts_with("git+https://")
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        let url = text.strip_prefix(GitRequest::PREFIX).unwrap_or(text);
        url_of(url, span).map(|url| format!("{}{url}", GitRequest::PREFIX))
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        LockedGitRepository::parse_name(text, span).map(Exclusion::Url)
    }
}
