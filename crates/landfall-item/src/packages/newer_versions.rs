//! Finds newer versions of pinned packages in the sources of a machine.

use super::fetch;
use super::resolvable::{PackageSetRequest, PackageSourceRequest};
use super::yum::visible_packages;
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use landfall_model::split_optional;
use landfall_packages::apt;
use landfall_packages::yum::{Pool, RpmPin, compare_versions};
use std::collections::{BTreeMap, BTreeSet};

/// The priority that apt gives a suite by default (`apt_preferences(5)`). Suites such as backports
/// have a lower one.
const DEFAULT_PRIORITY: i16 = 500;

/// A version of a package that a source offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedVersion {
    /// The version, in the notation of the pin.
    pub version: String,
    /// The source that offers the version. If several sources offer it, the first of them; for apt,
    /// a security source is preferred.
    pub source: String,
}

/// A package that a manifest pins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinnedPackage {
    /// The name, with the architecture if that is written.
    pub name: String,
    /// The version as the manifest writes it.
    pub version: String,
}

/// The newer versions of each pin, or why they are not known.
pub type NewerVersions = BTreeMap<PinnedPackage, Result<Vec<OfferedVersion>, String>>;

/// Finds the newer versions of each pin in the sources of `request`, the newest first. The indexes
/// are verified as for a lock.
///
/// # Errors
/// If the metadata of a source cannot be downloaded or is rejected.
pub async fn newer_packages(
    resolver: &Resolver,
    request: &PackageSetRequest,
    pins: BTreeSet<PinnedPackage>,
) -> Result<NewerVersions, ResolveError> {
    if request.is_yum() {
        newer_rpms(resolver, request, pins).await
    } else {
        newer_debs(resolver, request, pins).await
    }
}

async fn newer_debs(
    resolver: &Resolver,
    request: &PackageSetRequest,
    pins: BTreeSet<PinnedPackage>,
) -> Result<NewerVersions, ResolveError> {
    let suites = request.sources.iter().map(async |source| {
        let found = fetch::suite(resolver, source, &request.architectures, None).await;
        found.map_err(|cause| cause.about(&source.describe()))
    });
    let suites = try_join_all(suites).await?;
    let sources = describe_sources(request);
    let native = request.architectures.first().cloned().unwrap_or_default();
    let searching = tokio::task::spawn_blocking(move || {
        let names: BTreeSet<&str> = pins
            .iter()
            .map(|pin| split_optional(&pin.name, ':').0)
            .collect();
        let mut offers = Vec::new();
        for (suite, source) in suites.iter().zip(&sources) {
            for text in &suite.texts {
                let found = apt::listed_versions(text, &names).into_iter();
                offers.extend(found.map(|package| SuiteOffer {
                    package,
                    priority: suite.release.pin,
                    source,
                }));
            }
        }
        pins.iter()
            .map(|pin| (pin.clone(), newer_in_suites(&offers, pin, &native)))
            .collect()
    });
    Ok(searching.await?)
}

/// The sources of `request` as messages name them.
fn describe_sources(request: &PackageSetRequest) -> Vec<String> {
    request
        .sources
        .iter()
        .map(PackageSourceRequest::describe)
        .collect()
}

/// A version of a package that a suite offers.
struct SuiteOffer<'t> {
    package: apt::IndexedVersion<'t>,
    /// The pin priority of the suite (`apt_preferences(5)`).
    priority: i16,
    source: &'t str,
}

/// The versions in apt suites that are newer than the pin. Suites with a low priority, such as
/// backports, count only if the pinned version comes from such a suite.
fn newer_in_suites(
    offers: &[SuiteOffer<'_>],
    pin: &PinnedPackage,
    native: &str,
) -> Result<Vec<OfferedVersion>, String> {
    let ((name, arch), current) = (split_optional(&pin.name, ':'), &pin.version);
    // `name:any` matches the package of any architecture; machines install the native one
    let arch = arch.filter(|arch| *arch != "any").unwrap_or(native);
    let mut offers: Vec<&SuiteOffer<'_>> = offers
        .iter()
        .filter(|offer| {
            let package = &offer.package;
            package.name == name && (package.arch == arch || package.arch == "all")
        })
        .collect();
    if offers.is_empty() {
        return Err(format!("no source has {}", pin.name));
    }
    let current_priority = offers
        .iter()
        .filter(|offer| offer.package.version == current)
        .map(|offer| offer.priority)
        .max();
    let lowest = current_priority
        .unwrap_or(DEFAULT_PRIORITY)
        .min(DEFAULT_PRIORITY);
    offers.retain(|offer| {
        offer.priority >= lowest && apt::compare_versions(offer.package.version, current).is_gt()
    });
    // Of equal versions, that of a security source comes first. Otherwise, that of the first source
    // comes first, because the sort is stable.
    offers.sort_by(|a, b| {
        let order = apt::compare_versions(b.package.version, a.package.version);
        order.then_with(|| is_for_security(b.source).cmp(&is_for_security(a.source)))
    });
    offers.dedup_by(|later, first| later.package.version == first.package.version);
    let offered = offers.into_iter().map(|offer| OfferedVersion {
        version: offer.package.version.into(),
        source: offer.source.into(),
    });
    Ok(offered.collect())
}

/// Whether a source contains only security updates, judging by its name: `bookworm-security`,
/// `/debian-security`.
fn is_for_security(source: &str) -> bool {
    source.contains("security")
}

async fn newer_rpms(
    resolver: &Resolver,
    request: &PackageSetRequest,
    pins: BTreeSet<PinnedPackage>,
) -> Result<NewerVersions, ResolveError> {
    let pool = visible_packages(resolver, request).await?;
    let sources = describe_sources(request);
    let newer = pins.into_iter().map(|pin| {
        let newer = newer_in_pool(&pool, &pin, &sources);
        (pin, newer)
    });
    Ok(newer.collect())
}

/// The versions in yum repositories that are newer than the pin. `sources` are the repositories as
/// messages name them.
fn newer_in_pool(
    pool: &Pool,
    pin: &PinnedPackage,
    sources: &[String],
) -> Result<Vec<OfferedVersion>, String> {
    let PinnedPackage {
        name,
        version: current,
    } = pin;
    // each version with the number of its source
    let offers: Vec<(String, usize)> = pool
        .ids()
        .filter(|id| {
            pool.name(*id) == name || format!("{}.{}", pool.name(*id), pool.arch(*id)) == *name
        })
        .filter_map(|id| {
            let source = usize::from(pool.package(id).source?);
            Some((pool.evr(id).to_owned(), source))
        })
        .collect();
    if offers.is_empty() {
        // `gcc-toolset-12` is a package name rather than version 12 of `gcc-toolset`
        let whole = format!("{name}-{current}");
        if !pool.named(&whole).is_empty() {
            return Ok(Vec::new());
        }
        return Err(format!(
            "no source has {name}; write its version as name-version-release"
        ));
    }
    // A pin may omit the epoch or the release, and a new version omits the same parts. If a source
    // still has the pinned version, complete versions are compared, so that the omitted parts
    // count.
    let written = |evr: &str| RpmPin::written_like(current, evr);
    let current_evr = offers
        .iter()
        .map(|(evr, _)| evr)
        .find(|evr| written(evr) == *current);
    let mut newer: Vec<&(String, usize)> = offers
        .iter()
        .filter(|(evr, _)| {
            let order = match current_evr {
                Some(current_evr) => compare_versions(evr, current_evr),
                None => compare_versions(&written(evr), current),
            };
            written(evr) != *current && order.is_gt()
        })
        .collect();
    newer.sort_by(|(a, _), (b, _)| compare_versions(b, a));
    newer.dedup_by(|(later, _), (first, _)| written(later) == written(first));
    let offered = newer.into_iter().map(|(evr, source)| OfferedVersion {
        version: written(evr),
        source: sources.get(*source).cloned().unwrap_or_default(),
    });
    Ok(offered.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_sources_are_preferred_and_only_backports_pins_get_backports() {
        let text =
            |version: &str| format!("Package: x\nVersion: {version}\nArchitecture: amd64\n\n");
        let texts = [
            (
                "http://h stable",
                500,
                text("1:1.0-1") + &text("1:1.0-2") + &text("1:1.0~rc1-1"),
            ),
            (
                "http://h stable-security",
                500,
                text("1:1.0-2") + &text("2.0"),
            ),
            (
                "http://h stable-backports",
                100,
                text("1:3.0-1") + &text("1:3.0-2"),
            ),
        ];
        let names = BTreeSet::from(["x"]);
        let offers: Vec<SuiteOffer<'_>> = texts
            .iter()
            .flat_map(|(source, priority, text)| {
                apt::listed_versions(text, &names)
                    .into_iter()
                    .map(move |package| SuiteOffer {
                        package,
                        priority: *priority,
                        source,
                    })
            })
            .collect();
        let pin = |name: &str, version: &str| PinnedPackage {
            name: name.into(),
            version: version.into(),
        };
        let newer = |current: &str| {
            let found = newer_in_suites(&offers, &pin("x", current), "amd64").unwrap();
            found
                .into_iter()
                .map(|one| format!("{} {}", one.version, one.source))
                .collect::<Vec<_>>()
        };
        assert_eq!(newer("1:1.0-1"), ["1:1.0-2 http://h stable-security"]);
        assert_eq!(
            newer("1:1.0~rc1-1"),
            [
                "1:1.0-2 http://h stable-security",
                "1:1.0-1 http://h stable"
            ]
        );
        // a pin from backports follows backports
        assert_eq!(newer("1:3.0-1"), ["1:3.0-2 http://h stable-backports"]);
        assert_eq!(newer("1:2.9"), Vec::<String>::new());
        assert!(newer_in_suites(&offers, &pin("y", "1"), "amd64").is_err());
        assert!(newer_in_suites(&offers, &pin("x:i386", "1"), "amd64").is_err());
    }
}
