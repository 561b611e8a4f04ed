//! Finds newer versions of pinned packages in the sources of a machine.

use super::fetch;
use super::request::{PackageSetRequest, PackageSourceRequest};
use super::yum;
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use landfall_packages::apt;
use landfall_packages::yum::{RpmPin, compare_versions};
use std::collections::{BTreeMap, BTreeSet};

/// A version of a package that a source offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedVersion {
    /// The version, as the pin is written.
    pub version: String,
    /// The source that offers it. Of several, a security source is preferred, otherwise the first.
    pub source: String,
}

/// A package that a manifest pins: its name, with the architecture if that is written, and its
/// version.
pub type PinnedPackage = (String, String);

/// Finds the versions newer than each pin in the sources of `wish`, the newest first. The indexes
/// are verified as for a lock.
///
/// # Errors
/// If the metadata of a source cannot be downloaded or is refused.
pub async fn newer_packages(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    pins: BTreeSet<PinnedPackage>,
) -> Result<BTreeMap<PinnedPackage, Result<Vec<OfferedVersion>, String>>, ResolveError> {
    if wish.is_yum() {
        return of_yum(resolver, wish, pins).await;
    }
    let suites = wish.sources.iter().map(async |wanted| {
        let found = fetch::suite(resolver, wanted, &wish.architectures, None).await;
        found.map_err(|cause| cause.of(&wanted.place()))
    });
    let suites = try_join_all(suites).await?;
    let places: Vec<String> = wish
        .sources
        .iter()
        .map(PackageSourceRequest::place)
        .collect();
    let native = wish.architectures.first().cloned().unwrap_or_default();
    let reading = tokio::task::spawn_blocking(move || {
        let names: BTreeSet<&str> = pins.iter().map(|(name, _)| bare(name).0).collect();
        let mut offers = Vec::new();
        for (suite, place) in suites.iter().zip(&places) {
            for text in &suite.texts {
                let found = apt::offered(text, &names).into_iter();
                offers.extend(found.map(|one| SuiteOffer {
                    one,
                    pin: suite.release.pin,
                    place,
                }));
            }
        }
        let of_pin = |pin: PinnedPackage| {
            let newer = newer(&offers, &pin, &native);
            (pin, newer)
        };
        pins.iter().cloned().map(of_pin).collect()
    });
    reading
        .await
        .map_err(|error| ResolveError::local(error.to_string()))
}

/// A version of a package that a suite offers.
struct SuiteOffer<'t> {
    one: apt::IndexedVersion<'t>,
    /// The pin priority of the suite (`apt_preferences(5)`).
    pin: i16,
    place: &'t str,
}

/// Splits `name:arch` into name and architecture.
fn bare(name: &str) -> (&str, Option<&str>) {
    name.split_once(':')
        .map_or((name, None), |(name, arch)| (name, Some(arch)))
}

/// The versions in apt suites that are newer than the pin. Suites with a low priority, such as
/// backports, count only if the pinned version comes from such a suite.
fn newer(
    offers: &[SuiteOffer<'_>],
    pin: &PinnedPackage,
    native: &str,
) -> Result<Vec<OfferedVersion>, String> {
    let ((name, arch), current) = (bare(&pin.0), &pin.1);
    let arch = arch.filter(|arch| *arch != "any").unwrap_or(native);
    let of_name = offers.iter().filter(|offer| {
        offer.one.name == name && (offer.one.arch == arch || offer.one.arch == "all")
    });
    let of_name: Vec<&SuiteOffer<'_>> = of_name.collect();
    if of_name.is_empty() {
        return Err(format!("no source has {}", pin.0));
    }
    let standing = of_name
        .iter()
        .filter(|offer| offer.one.version == current)
        .map(|offer| offer.pin)
        .max();
    let least = standing.unwrap_or(500).min(500);
    let mut newer: Vec<&SuiteOffer<'_>> = of_name
        .into_iter()
        .filter(|offer| offer.pin >= least)
        .collect();
    newer.retain(|offer| apt::compare_versions(offer.one.version, current).is_gt());
    // the sort is stable: of equal versions, the one of the first source stays first
    newer.sort_by(|a, b| {
        let order = apt::compare_versions(b.one.version, a.one.version);
        order.then_with(|| is_for_security(b.place).cmp(&is_for_security(a.place)))
    });
    newer.dedup_by(|later, first| later.one.version == first.one.version);
    let offered = newer.into_iter().map(|offer| OfferedVersion {
        version: offer.one.version.into(),
        source: offer.place.into(),
    });
    Ok(offered.collect())
}

/// Whether a source contains only security updates, judging by its name: `bookworm-security`,
/// `/debian-security`.
fn is_for_security(place: &str) -> bool {
    place.contains("security")
}

async fn of_yum(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    pins: BTreeSet<PinnedPackage>,
) -> Result<BTreeMap<PinnedPackage, Result<Vec<OfferedVersion>, String>>, ResolveError> {
    let pool = yum::visible(resolver, wish).await?;
    let places: Vec<String> = wish
        .sources
        .iter()
        .map(PackageSourceRequest::place)
        .collect();
    let of_pin = |(name, current): &PinnedPackage| {
        let of_name: Vec<(String, usize)> = pool
            .ids()
            .filter(|id| {
                pool.name(*id) == name || format!("{}.{}", pool.name(*id), pool.arch(*id)) == *name
            })
            .filter_map(|id| {
                Some((
                    pool.evr(id).to_owned(),
                    usize::from(pool.package(id).source()?),
                ))
            })
            .collect();
        if of_name.is_empty() {
            // `gcc-toolset-12` is a package name rather than version 12 of `gcc-toolset`
            let whole = format!("{name}-{current}");
            if !pool.named(&whole).is_empty() {
                return Ok(Vec::new());
            }
            return Err(format!(
                "no source has {name}; write its version as name-version-release"
            ));
        }
        let written = |evr: &str| RpmPin::written_like(current, evr);
        let standing = of_name
            .iter()
            .map(|(evr, _)| evr)
            .find(|evr| written(evr) == *current);
        let now = standing.cloned().unwrap_or_else(|| current.clone());
        let compared = |evr: &str| {
            if standing.is_some() {
                evr.to_owned()
            } else {
                written(evr)
            }
        };
        let mut newer: Vec<&(String, usize)> = of_name
            .iter()
            .filter(|(evr, _)| {
                written(evr) != *current && compare_versions(&compared(evr), &now).is_gt()
            })
            .collect();
        newer.sort_by(|(a, _), (b, _)| compare_versions(b, a));
        newer.dedup_by(|(later, _), (first, _)| written(later) == written(first));
        let offered = newer.into_iter().map(|(evr, source)| OfferedVersion {
            version: written(evr),
            source: places.get(*source).cloned().unwrap_or_default(),
        });
        Ok(offered.collect())
    };
    Ok(pins.iter().map(|pin| (pin.clone(), of_pin(pin))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_versions_the_security_source_is_named_and_backports_stay_out() {
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
            ("http://h stable-backports", 100, text("1:3.0-1")),
        ];
        let names = BTreeSet::from(["x"]);
        let offers: Vec<SuiteOffer<'_>> = texts
            .iter()
            .flat_map(|(place, pin, text)| {
                apt::offered(text, &names)
                    .into_iter()
                    .map(move |one| SuiteOffer {
                        one,
                        pin: *pin,
                        place,
                    })
            })
            .collect();
        let told = |current: &str| {
            let found = newer(&offers, &("x".to_owned(), current.to_owned()), "amd64").unwrap();
            found
                .into_iter()
                .map(|one| format!("{} {}", one.version, one.source))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("1:1.0-1"), ["1:1.0-2 http://h stable-security"]);
        assert_eq!(
            told("1:1.0~rc1-1"),
            [
                "1:1.0-2 http://h stable-security",
                "1:1.0-1 http://h stable"
            ]
        );
        assert_eq!(told("1:3.0-1"), Vec::<String>::new());
        assert_eq!(told("1:2.9"), Vec::<String>::new());
        assert!(newer(&offers, &("y".to_owned(), "1".to_owned()), "amd64").is_err());
        assert!(newer(&offers, &("x:i386".to_owned(), "1".to_owned()), "amd64").is_err());
    }
}
