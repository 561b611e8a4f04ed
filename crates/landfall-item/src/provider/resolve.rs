//! Resolves a provider: finds its packages, and verifies their hashes.

use super::address::ProviderPlatform;
use super::kind;
use super::kind::{LockedProvider, LockedProviderPackage, zh};
use super::package_hash::package_hash;
use super::registry::ProviderRegistry;
use super::resolvable::ProviderRequest;
use crate::file::download;
use crate::resolver::{ResolveError, Resolver};
use landfall_content::BlobRead;
use landfall_model::Digest;
use std::collections::BTreeSet;

/// Resolves `request`. A package is not downloaded if `old` lists it with the digest that the
/// registry names.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &ProviderRequest,
    old: Option<&LockedProvider>,
) -> Result<LockedProvider, ResolveError> {
    let name = &request.name;
    if request.lacks_hashes() {
        return Err(
            "its lock file has no hashes for this version, so it accepts no package; add them with \
             `tofu providers lock`"
                .into(),
        );
    }
    let registry = ProviderRegistry::discover(resolver, &name.address.host).await?;
    let mut versions = registry.versions(&name.address).await?;
    let offered = versions
        .remove(&name.version)
        .ok_or_else(ResolveError::gone)?;
    let required = request.required_platforms();
    // `tofu init` does not read this list, and some registries leave it empty
    let platforms: Vec<ProviderPlatform> = if offered.is_empty() && !required.is_empty() {
        required.into_iter().cloned().collect()
    } else {
        chosen_platforms(request, &offered)?
    };
    let mut packages = Vec::new();
    for platform in platforms {
        let found = package(resolver, &registry, request, &platform, old).await;
        packages.push(found.map_err(|error| error.about(&platform.to_string()))?);
    }
    let mut provider = LockedProvider {
        name: name.clone(),
        digest: Digest::sha256(b""),
        platforms: request.platforms.clone(),
        packages,
    };
    provider.digest = kind::digest(&provider);
    Ok(provider)
}

/// Checks that the registry lists the version for the requested platforms. A version that an update
/// would select must have such a list: without it, the version may be incomplete.
pub(super) async fn check_platforms(
    resolver: &Resolver,
    request: &ProviderRequest,
) -> Result<(), ResolveError> {
    let address = &request.name.address;
    let registry = ProviderRegistry::discover(resolver, &address.host).await?;
    let mut versions = registry.versions(address).await?;
    let offered = versions
        .remove(&request.name.version)
        .ok_or_else(ResolveError::gone)?;
    chosen_platforms(request, &offered).map(drop)
}

/// The platforms of `request` that the registry has, or all of them if `request` names none,
/// sorted. Fails if the registry lacks a required platform or has none of the requested ones.
fn chosen_platforms(
    request: &ProviderRequest,
    offered: &BTreeSet<ProviderPlatform>,
) -> Result<Vec<ProviderPlatform>, ResolveError> {
    if offered.is_empty() {
        return Err("its registry lists no platform for it".into());
    }
    let has: Vec<String> = offered.iter().map(ToString::to_string).collect();
    if request.platforms.is_empty() {
        return Ok(offered.iter().cloned().collect());
    }
    let has = has.join(", ");
    let requested = request.platforms.iter().cloned();
    let (chosen, lacking): (Vec<_>, Vec<_>) = requested.partition(|one| offered.contains(one));
    let missing = lacking.iter().filter(|one| !request.optional.contains(one));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if missing.is_empty() {
        if chosen.is_empty() {
            return Err(ResolveError::other_platforms(format!(
                "it is only for {has}"
            )));
        }
        return Ok(chosen);
    }
    let missing = missing.join(" and no ");
    Err(format!("it has no {missing}, only {has}").into())
}

/// Finds, downloads and verifies the package for one platform.
async fn package(
    resolver: &Resolver,
    registry: &ProviderRegistry<'_>,
    request: &ProviderRequest,
    platform: &ProviderPlatform,
    old: Option<&LockedProvider>,
) -> Result<LockedProviderPackage, ResolveError> {
    let (url, offered) = registry.package(&request.name, platform).await?;
    let url = url.to_string();
    let mut packages = old.map(|old| &old.packages).into_iter().flatten();
    let same = packages.find(|one| one.platform == *platform && one.digest == offered);
    let package = match same {
        Some(old) => LockedProviderPackage { url, ..old.clone() },
        None => {
            let zh = zh(&offered);
            // an archive whose hashes cannot be accepted is not downloaded
            if !request.accepts(&zh) && !request.has_file_hashes() {
                return Err(not_accepted(&zh));
            }
            let (digest, size) = download(resolver, &url, Some(&offered)).await?;
            let h1 = hash_stored(resolver, &digest, size).await?;
            LockedProviderPackage {
                platform: platform.clone(),
                url,
                digest,
                size,
                h1,
            }
        }
    };
    check_hashes(request, &package)?;
    Ok(package)
}

/// Checks that `package` has one of the hashes that `request` accepts, as `tofu init` does.
pub(super) fn check_hashes(
    request: &ProviderRequest,
    package: &LockedProviderPackage,
) -> Result<(), ResolveError> {
    let zh = package.zh();
    if request.accepts(&zh) || request.accepts(&package.h1) {
        return Ok(());
    }
    Err(not_accepted(&format!("{} and {zh}", package.h1)))
}

fn not_accepted(hashes: &str) -> ResolveError {
    format!(
        "its hashes ({hashes}) are not in the lock file, which has other hashes for this version; \
         if the lock file was written for other platforms, add this platform with `tofu providers \
         lock`"
    )
    .into()
}

/// The `h1:` hash of an archive in the store.
async fn hash_stored(
    resolver: &Resolver,
    digest: &Digest,
    size: u64,
) -> Result<String, ResolveError> {
    let disk = resolver.disk.clone();
    let digest = digest.clone();
    let limits = *resolver.limits();
    let busy = resolver.sessions.transport().activity().busy();
    let hashing = tokio::task::spawn_blocking(move || {
        let blobs: &dyn BlobRead = &disk;
        package_hash(blobs, &digest, size, &limits)
    });
    let hashed = hashing.await;
    drop(busy);
    hashed?.map_err(|error| ResolveError::from(format!("its archive: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::address::ProviderName;
    use super::*;
    use landfall_model::document::SourceLocation;

    #[test]
    fn the_error_for_a_missing_platform_lists_the_platforms_of_the_registry() {
        let choose = |wanted: &[&str], offered: &[&str]| {
            let platforms = |words: &[&str]| -> Vec<ProviderPlatform> {
                words.iter().map(|word| word.parse().unwrap()).collect()
            };
            let request = ProviderRequest {
                name: ProviderName::new("h.test/a/b".parse().unwrap(), "1.0.0").unwrap(),
                platforms: platforms(wanted),
                optional: BTreeSet::new(),
                hashes: None,
                update: None,
                at: SourceLocation {
                    file: "m.yaml".into(),
                    line: 1,
                    column: 1,
                },
            };
            let chosen = chosen_platforms(&request, &platforms(offered).into_iter().collect());
            chosen.map_err(|error| error.to_string())
        };
        assert_eq!(choose(&[], &["linux_amd64"]).unwrap().len(), 1);
        for wanted in [&[][..], &["linux_amd64"]] {
            let why = choose(wanted, &[]).unwrap_err();
            assert_eq!(why, "its registry lists no platform for it");
        }
        let why = choose(&["linux_amd64"], &["linux_arm64"]).unwrap_err();
        assert_eq!(why, "it has no linux_amd64, only linux_arm64");
    }
}
