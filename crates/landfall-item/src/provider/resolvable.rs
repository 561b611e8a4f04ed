//! How a request for a provider is merged, resolved and updated.

use super::address::{ProviderName, ProviderPlatform};
use super::kind::LockedProvider;
use super::registry::provider_versions;
use super::resolve::{check_hashes, check_platforms, resolve};
use crate::item_kind::meets_rules;
use crate::text::{FieldConflict, merge_option};
use crate::{ItemRequest, PinPolicy, ResolveError, ResolveOutcome, Resolver};
use landfall_model::Digest;
use landfall_model::document::{SourceLocation, UpdateRule};
use std::collections::BTreeSet;

impl ItemRequest for ProviderRequest {
    type Name = ProviderName;
    type Item = LockedProvider;

    fn name(&self) -> &ProviderName {
        &self.name
    }

    fn merge(&mut self, other: &ProviderRequest) -> Result<(), FieldConflict> {
        let required = [&*self, other].map(ProviderRequest::required_platforms);
        let required: BTreeSet<ProviderPlatform> =
            required.into_iter().flatten().cloned().collect();
        self.optional.extend(other.optional.iter().cloned());
        self.optional
            .retain(|platform| !required.contains(platform));
        if self.platforms.is_empty() || other.platforms.is_empty() {
            self.platforms.clear();
        } else {
            self.platforms.extend(other.platforms.iter().cloned());
            self.platforms.sort();
            self.platforms.dedup();
        }
        if let Some(others) = &other.hashes {
            let hashes = self.hashes.get_or_insert_default();
            hashes.extend(others.iter().cloned());
        }
        merge_option("update", &mut self.update, &other.update)
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedProvider>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedProvider> {
        let keeps = pins.keeps();
        let has = |old: &LockedProvider, platform: &ProviderPlatform| {
            let mut packages = old.packages.iter();
            packages.any(|package| package.platform == *platform)
        };
        let matching = old.filter(|old| {
            old.platforms == self.platforms
                && self
                    .required_platforms()
                    .iter()
                    .all(|platform| has(old, platform))
                && self.accepts_packages_of(old)
        });
        if let Some(old) = matching.filter(|_| keeps) {
            return ResolveOutcome::Kept(old.clone());
        }
        match resolve(resolver, self, old).await {
            Ok(found) if old == Some(&found) => ResolveOutcome::Kept(found),
            Ok(found) => match old.filter(|_| keeps).and_then(|old| changed(old, &found)) {
                // packages that were published again are never accepted silently
                Some(cause) => ResolveOutcome::Failed(matching.cloned(), cause),
                None => ResolveOutcome::New(found),
            },
            Err(cause) => ResolveOutcome::lost(matching, pins, cause),
        }
    }

    fn accepts(&self, old: &LockedProvider, resolver: &Resolver) -> bool {
        self.accepts_packages_of(old) && meets_rules(old, resolver)
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedProvider) -> Result<(), ResolveError> {
        find_version(resolver, &old.name).await
    }

    fn update_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref()
    }

    async fn look_up(
        &self,
        resolver: &Resolver,
    ) -> Result<(Option<Digest>, Option<u64>), ResolveError> {
        find_version(resolver, &self.name).await?;
        Ok((None, None))
    }

    async fn check_content(
        &self,
        resolver: &Resolver,
        _digest: Option<&Digest>,
    ) -> Result<(), ResolveError> {
        check_platforms(resolver, self).await
    }
}

impl ProviderRequest {
    /// Whether each package of `old` has a hash that the request accepts.
    fn accepts_packages_of(&self, old: &LockedProvider) -> bool {
        let mut packages = old.packages.iter();
        packages.all(|package| check_hashes(self, package).is_ok())
    }
}

/// Checks that the registry lists the version.
async fn find_version(resolver: &Resolver, name: &ProviderName) -> Result<(), ResolveError> {
    let versions = provider_versions(resolver, &name.address).await?;
    if versions.contains(&name.version) {
        Ok(())
    } else {
        Err(ResolveError::gone())
    }
}

/// Why `found` must not replace `old` without `--refresh`: a package for the same platform has
/// another digest.
fn changed(old: &LockedProvider, found: &LockedProvider) -> Option<ResolveError> {
    let mut pairs = old.packages.iter().filter_map(|old| {
        let mut packages = found.packages.iter();
        let found = packages.find(|found| found.platform == old.platform)?;
        (found.digest != old.digest).then_some((old, found))
    });
    let (old, found) = pairs.next()?;
    Some(
        format!(
            "upstream now has {} for {}, but the lock has {}; use `--refresh` to accept it",
            found.digest, found.platform, old.digest
        )
        .into(),
    )
}

/// A request for one version of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRequest {
    /// The source address and the version.
    pub name: ProviderName,
    /// The platforms, sorted; empty for all that the registry has.
    pub platforms: Vec<ProviderPlatform>,
    /// Those of `platforms` that the registry may lack.
    pub optional: BTreeSet<ProviderPlatform>,
    /// The hashes in lock files of OpenTofu or Terraform. Each package must have one of them, so a
    /// lock file without hashes accepts none. `None` if no lock file names the version; then every
    /// package is accepted.
    pub hashes: Option<BTreeSet<String>>,
    /// What `landfall update` may move the version to.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl ProviderRequest {
    /// Those of `platforms` that the registry must have.
    pub(super) fn required_platforms(&self) -> Vec<&ProviderPlatform> {
        let platforms = self.platforms.iter();
        platforms
            .filter(|one| !self.optional.contains(one))
            .collect()
    }

    /// Whether a package with this hash is accepted.
    pub(super) fn accepts(&self, hash: &str) -> bool {
        self.hashes
            .as_ref()
            .is_none_or(|hashes| hashes.contains(hash))
    }

    /// Whether a package may be accepted by its `h1:` hash, which is known only after the download.
    pub(super) fn has_file_hashes(&self) -> bool {
        let mut hashes = self.hashes.iter().flatten();
        hashes.any(|hash| hash.starts_with("h1:"))
    }

    /// Whether lock files name the version, but none has a hash for it.
    pub(super) fn lacks_hashes(&self) -> bool {
        self.hashes.as_ref().is_some_and(BTreeSet::is_empty)
    }
}
