//! How a request for a file is merged, resolved and updated.

use super::locked::LockedFile;
use super::{resolve, signature_lookup};
use crate::item_kind::meets_rules;
use crate::text::{FieldConflict, merge_option};
use crate::{ItemRequest, LocalPlace, PinPolicy, ResolveError, ResolveOutcome, Resolver};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::FileKey;

impl ItemRequest for FileRequest {
    type Name = String;
    type Item = LockedFile;

    fn name(&self) -> &String {
        &self.url
    }

    fn is_local(&self) -> bool {
        self.local.is_some()
    }

    fn urls(&self) -> Vec<&str> {
        std::iter::once(&self.url)
            .chain(&self.also)
            .map(String::as_str)
            .collect()
    }

    fn further_urls(&self) -> Vec<&str> {
        let sidecar = match &self.checksum {
            Some(Checksum::Sidecar(url)) => Some(url),
            _ => None,
        };
        let urls = sidecar.into_iter().chain(&self.signatures);
        urls.map(String::as_str).collect()
    }

    fn merge(&mut self, other: &FileRequest) -> Result<(), FieldConflict> {
        if let (Some(first), Some(second)) = (&self.local, &other.local) {
            FieldConflict::check_equal("path", first, second, LocalPlace::to_string)?;
        }
        merge_option("checksum", &mut self.checksum, &other.checksum)?;
        merge_option("mode", &mut self.mode, &other.mode)?;
        self.also.extend(other.also.iter().cloned());
        self.also.sort();
        self.also.dedup();
        if let (Some(first), Some(second)) = (&self.key, &other.key) {
            FieldConflict::check_equal("key", first, second, FileKey::to_string)?;
        }
        self.key = self.key.take().or_else(|| other.key.clone());
        // unlike `also`, these lists keep the order of the manifest: signatures are tried in that
        // order
        for (own, others) in [
            (&mut self.signatures, &other.signatures),
            (&mut self.unpack, &other.unpack),
        ] {
            for text in others {
                if !own.contains(text) {
                    own.push(text.clone());
                }
            }
        }
        Ok(())
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedFile>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedFile> {
        let checksum = self.checksum.as_ref().map(Checksum::to_string);
        let locked = old.filter(|old| old.checksum == checksum);
        let old = locked.filter(|old| has_required_signatures(old, self, resolver));
        let outcome = self.resolve_content(resolver, old, pins).await;
        // if only the signatures in the manifest changed, the content must be the same: a file that
        // was replaced is not accepted silently
        if let (ResolveOutcome::New(file), Some(locked), None) = (&outcome, locked, &self.local)
            && pins.keeps()
            && file.digest != locked.digest
        {
            let why = format!(
                "upstream now has {}, but the lock has {}; use `--refresh` to accept it",
                file.digest, locked.digest
            );
            return ResolveOutcome::Failed(None, why.into());
        }
        signature_lookup::verify_outcome(resolver, self, outcome, old, pins).await
    }

    fn accepts(&self, old: &LockedFile, resolver: &Resolver) -> bool {
        is_signed_for(self, old) && meets_rules(old, resolver)
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedFile) -> Result<(), ResolveError> {
        resolve::size_of(resolver, &old.name).await.map(drop)
    }

    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        match &self.checksum {
            Some(Checksum::Digest(digest)) => Some((digest, &self.at)),
            _ => None,
        }
    }

    async fn look_up(
        &self,
        resolver: &Resolver,
    ) -> Result<(Option<Digest>, Option<u64>), ResolveError> {
        // without its checksum file, the file could not be locked either
        if let Some(Checksum::Sidecar(url)) = &self.checksum {
            resolve::size_of(resolver, url).await?;
        }
        Ok((None, resolve::size_of(resolver, &self.url).await?))
    }
}

impl FileRequest {
    /// Resolves the file without the rules of `verify:`.
    async fn resolve_content(
        &self,
        resolver: &Resolver,
        old: Option<&LockedFile>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedFile> {
        if let Some(place) = &self.local {
            let found = resolve::resolve_local(resolver, self, place).await;
            return ResolveOutcome::of(found, old);
        }
        if let Some(old) = old.filter(|_| pins.keeps()) {
            // these fields come from the manifest, so changing them needs no request
            return ResolveOutcome::Kept(LockedFile {
                also: self.also.clone(),
                mode: self.mode.clone(),
                signed_by: old.signed_by.clone().filter(|_| self.key.is_some()),
                unpack: self.unpack.clone(),
                ..old.clone()
            });
        }
        match resolve::resolve(resolver, self).await {
            Ok(file) => ResolveOutcome::New(file),
            Err(cause) => ResolveOutcome::Failed(old.cloned(), cause),
        }
    }
}

/// Whether `old` has exactly the signatures that `request` names and, if `request` has a key, one
/// of them was verified with it. If `request` names no signatures, `old` may have those that were
/// found next to the file.
fn has_required_signatures(old: &LockedFile, request: &FileRequest, resolver: &Resolver) -> bool {
    let is_own = |url: &String| {
        old.checksum.as_ref() == Some(url)
            || request.signatures.contains(url)
            || request.signatures.is_empty() && signature_lookup::is_found(old, url, resolver)
    };
    let mut named = request.signatures.iter();
    let has_all = named.all(|url| old.sidecars.iter().any(|sidecar| sidecar.url == *url));
    has_all
        && is_signed_for(request, old)
        && old.sidecars.iter().all(|sidecar| is_own(&sidecar.url))
}

/// Whether a signature of `old` was verified with the key of `request`, if it has one.
fn is_signed_for(request: &FileRequest, old: &LockedFile) -> bool {
    let key = request.key.as_ref();
    key.is_none_or(|key| old.signed_by.as_ref().is_some_and(|name| key.has(name)))
}

/// A request for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// The URL of the file: http or https, without userinfo, in its normal form. `local:` and a
    /// path for a file next to the manifest.
    pub url: String,
    /// Where the content of a local file is.
    pub local: Option<LocalPlace>,
    /// The checksum that the file must have.
    pub checksum: Option<Checksum>,
    /// Other URLs at which clients request the file, sorted.
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in `0755`.
    pub mode: Option<String>,
    /// The URLs of signatures of the file or its checksum file.
    pub signatures: Vec<String>,
    /// The public key that must verify one of the signatures.
    pub key: Option<FileKey>,
    /// The members that an export extracts from the archive.
    pub unpack: Vec<String>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// The checksum of a file. `Display` formats it as in the lock.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Checksum {
    /// The digest of the file, written in the manifest.
    Digest(Digest),
    /// The URL of a checksum file.
    Sidecar(String),
}
