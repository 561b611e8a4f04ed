//! Locks packages of apt repositories: fetches and verifies the metadata of all sources, then
//! chooses packages as apt does.

use super::chosen_packages::{check_chosen, choice_error, notes};
use super::locked::{LockedPackage, LockedPackageSet, PackageIndex, PackageSource};
use super::resolvable::{MachineBase, PackageSetRequest, PackageSourceRequest};
use super::suites::{ReadSuites, Suite};
use super::{fetch, kind};
use crate::file::is_file_url;
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use landfall_packages::apt::{
    AptRelease, AptSettings, AptVersion, AptVersionId, BaseSystem, Universe, choose, suite_packages,
};
use landfall_packages::file_url;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

/// Resolves `request`. Returns the set, and notes for people. `old` is the set of this name in the
/// last lock; it may be for other packages.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    let shared = resolver.suites.slot_for(request);
    let read = shared
        .get_or_try_init(async || {
            let suites = request.sources.iter().map(async |source| {
                let before = locked_source(old, source);
                let after = before.and_then(|before| before.date.as_deref());
                let mut suite = fetch::suite(resolver, source, &request.architectures, after)
                    .await
                    .map_err(|cause| cause.about(&source.describe()))?;
                suite.source.snapshot = snapshot_of(resolver, &suite, before).await;
                Ok::<_, ResolveError>(suite)
            });
            ReadSuites::read(try_join_all(suites).await?, request.architectures.clone())
                .map_err(|error| ResolveError::local(error.to_string()))
        })
        .await?;
    // Another set may have read these suites and compared their dates with its own record in the
    // last lock. Compare them with the record of this set, too.
    for (suite, source) in read.suites.iter().zip(&request.sources) {
        let after = locked_source(old, source).and_then(|before| before.date.as_deref());
        fetch::check_age(&suite.name, suite.source.date.as_deref(), after)
            .map_err(|cause| cause.about(&source.describe()))?;
    }
    let request = request.clone();
    read.query(move |universe, suites| lock(&request, universe, suites))
        .await
        .unwrap_or_else(|| {
            Err(ResolveError::local(
                "the thread that selects packages has stopped".into(),
            ))
        })
}

/// The record of `source` in the last lock.
fn locked_source<'l>(
    old: Option<&'l LockedPackageSet>,
    source: &PackageSourceRequest,
) -> Option<&'l PackageSource> {
    old?.sources
        .iter()
        .find(|old| old.url == source.url && old.suite == source.suite)
}

/// The URL of a snapshot with the metadata of `suite`. If the suite is unchanged, the snapshot in
/// the last lock is kept. Otherwise, or if the last lock has none, a snapshot is looked up.
async fn snapshot_of(
    resolver: &Resolver,
    suite: &Suite,
    old: Option<&PackageSource>,
) -> Option<String> {
    let metadata = suite.source.replaced_files().next()?;
    let known = old.filter(|old| {
        old.indexes
            .iter()
            .any(|index| index.digest == metadata.digest)
    });
    match known.and_then(|old| old.snapshot.clone()) {
        None => snapshot(resolver, &suite.release, metadata).await,
        known => known,
    }
}

/// The placeholder for the time in the URL of a snapshot.
const ID: &str = "@SNAPSHOTID@";
/// The time after which a new release has usually reached every mirror.
const SETTLED: SignedDuration = SignedDuration::from_mins(30);
/// The time that `lock` waits for a snapshot service. A snapshot is optional.
const PATIENCE: Duration = Duration::from_secs(20);

/// The URL of the snapshot that contains exactly `metadata`, the signed file of `release`. `None`
/// if the release names no snapshot service, or the file cannot be fetched from it.
async fn snapshot(
    resolver: &Resolver,
    release: &AptRelease,
    metadata: &PackageIndex,
) -> Option<String> {
    let template = release
        .snapshots
        .as_deref()
        .filter(|url| url.contains(ID) && is_file_url(url))?;
    resolver
        .sessions
        .check_named_target(template, &metadata.url)
        .await
        .ok()?;
    let now = Timestamp::now();
    let settled = release
        .date
        .and_then(|date| date.checked_add(SETTLED).ok())
        .filter(|at| *at < now);
    // A snapshot URL contains a time, and has the state of the repository at that time. The first
    // attempt uses a time shortly after the date of the release; the second uses the current time,
    // in case the service received the release later.
    let looking = async {
        for at in settled.into_iter().chain([now]) {
            let id = at.strftime("%Y%m%dT%H%M%SZ").to_string();
            let url = template.trim_end_matches('/').replace(ID, &id);
            let file = file_url(&url, &metadata.path);
            if resolver
                .small_file(&file, metadata.size as usize, Some(&metadata.digest))
                .await
                .is_ok()
            {
                return Some(url);
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, looking).await.ok().flatten()
}

/// Chooses the packages for `request`. Returns the set, and notes for people.
fn lock(
    request: &PackageSetRequest,
    universe: &Universe<'_>,
    suites: &[Suite],
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    // the suite in a request `name/suite` may be any of these names
    let names: Vec<Vec<String>> = suites
        .iter()
        .map(|suite| {
            let own = [
                Some(&suite.source.suite),
                suite.release.suite.as_ref(),
                suite.release.codename.as_ref(),
            ];
            own.into_iter().flatten().cloned().collect()
        })
        .collect();
    let settings = AptSettings {
        recommends: request.recommends,
        expects_rest: request.bases.is_empty(),
    };
    let bases = request.machines();
    let mut choices = Vec::new();
    // The universe is shared by all sets. A set with a base gets a copy, in which the packages of
    // the base are marked as installed.
    let mut machine = Cow::Borrowed(universe);
    for base in bases {
        if bases != [MachineBase::None] {
            machine.to_mut().forget_installed();
            install_base(base, machine.to_mut(), suites, request)?;
        }
        let chosen = choose(&machine, &names, &request.install, settings);
        choices.push(chosen.map_err(|why| choice_error(why, base, bases))?);
    }
    let universe = &*machine;
    let expected: BTreeSet<String> = choices
        .iter()
        .flat_map(|choice| choice.expected.iter().cloned())
        .collect();
    let all: Vec<&str> = expected.iter().map(String::as_str).collect();
    let notes = notes(&request.name, &all.join(", "), bases, |number| {
        let versions = choices[number].versions.iter();
        let is_shared = |version| choices.iter().all(|other| other.versions.contains(version));
        let own = versions.filter(|version| !is_shared(*version));
        own.map(|version| {
            let offer = universe.offer_of(*version);
            format!("{} {}", package_name(universe, offer), offer.version)
        })
        .collect()
    });
    let versions: BTreeSet<AptVersionId> = choices
        .iter()
        .flat_map(|choice| choice.versions.iter().copied())
        .collect();
    let mut sources: Vec<PackageSource> = suites.iter().map(|suite| suite.source.clone()).collect();
    for version in &versions {
        let offer = universe.offer_of(*version);
        // a version without a source is installed already
        if let Some(at) = offer.source {
            let source = &mut sources[at as usize];
            let package = locked(universe, offer, &source.url)?;
            source.packages.push(package);
        }
    }
    Ok((kind::set(request, expected, sources), notes))
}

/// Marks the packages of `base` as installed in the universe.
fn install_base<'t>(
    base: &'t MachineBase,
    universe: &mut Universe<'t>,
    suites: &[Suite],
    request: &PackageSetRequest,
) -> Result<(), ResolveError> {
    let system = match base {
        MachineBase::None | MachineBase::Rpms(_) => return Ok(()),
        MachineBase::Status(text) => {
            universe.add_installed(text);
            return Ok(());
        }
        MachineBase::Minimal => BaseSystem::Minimal,
        MachineBase::Standard => BaseSystem::Standard,
    };
    // debootstrap reads only the first source; updates from other sources are carried if a package
    // needs them
    let Some(first) = suites.first() else {
        return Ok(());
    };
    let texts: Vec<&str> = first.texts.iter().map(String::as_str).collect();
    let installed = suite_packages(&request.architectures, &texts, system);
    let installed =
        installed.map_err(|why| format!("the base `{base}` of {}: {why}", first.source.suite))?;
    for (name, version) in installed {
        universe.set_installed(&name, &version);
    }
    Ok(())
}

/// The lock's record of a chosen package.
fn locked(
    universe: &Universe<'_>,
    offer: &AptVersion<'_>,
    url: &str,
) -> Result<LockedPackage, ResolveError> {
    let name = package_name(universe, offer);
    // other sums, such as MD5, are not accepted
    let sum = match (offer.sha256, offer.sha512) {
        ("", "") => {
            return Err(format!(
                "{name} {} has no SHA-256 or SHA-512 in its index, so it cannot be verified",
                offer.version
            )
            .into());
        }
        ("", sum) => format!("sha512:{sum}"),
        (sum, _) => format!("sha256:{sum}"),
    };
    let digest = sum
        .parse()
        .map_err(|_| format!("{name} {}: '{sum}' is not a digest", offer.version))?;
    let package = LockedPackage {
        digest,
        size: offer.size,
        name: name.into(),
        version: offer.version.into(),
        arch: offer.arch.into(),
        path: String::new(),
        url: String::new(),
    };
    check_chosen(package, url, offer.path, &[])
}

fn package_name<'t>(universe: &Universe<'t>, offer: &AptVersion<'_>) -> &'t str {
    universe.text(universe.packages[offer.package as usize].name)
}
