//! Locks packages of apt repositories: fetches and verifies the metadata of all sources, then
//! chooses packages as apt does.

use super::fetch;
use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use super::parts;
use super::request::{MachineBase, PackageSetRequest, PackageSourceRequest};
use super::snapshot::snapshot;
use super::suites::{ReadSuites, Suite};
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use landfall_packages::apt::{
    AptSelection, AptSettings, AptVersion, AptVersionId, BaseSystem, Universe, choose,
    suite_packages,
};
use landfall_packages::{file_url, is_plain_path};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Resolves `request`. Returns the set, and notes for people. `old` is the set of this name in the
/// last lock; it may be for other packages.
pub(super) async fn resolve(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    let before = |wanted: &PackageSourceRequest| {
        let mut sources = old.iter().flat_map(|old| &old.sources);
        sources.find(|old| old.url == wanted.url && old.suite == wanted.suite)
    };
    let after = |wanted: &PackageSourceRequest| before(wanted)?.date.as_deref();
    let shared = resolver.suites().of(wish);
    let read = shared.get_or_try_init(async || {
        let suites = wish.sources.iter().map(async |wanted| {
            let found = fetch::suite(resolver, wanted, &wish.architectures, after(wanted)).await;
            let mut suite = found.map_err(|cause| cause.of(&wanted.place()))?;
            suite.source.snapshot = snapshot_of(resolver, &suite, before(wanted)).await;
            Ok::<_, ResolveError>(suite)
        });
        let read = ReadSuites::read(try_join_all(suites).await?, wish.architectures.clone());
        read.map_err(|error| ResolveError::local(error.to_string()))
    });
    let read = read.await?;
    // Another set may have read these suites first, for another age check: repeat it for this set.
    for (suite, wanted) in read.suites().iter().zip(&wish.sources) {
        fetch::check_age(&suite.name, suite.source.date.as_deref(), after(wanted))
            .map_err(|cause| cause.of(&wanted.place()))?;
    }
    let wanted = wish.clone();
    let answer = read
        .ask(move |universe, suites| lock(&wanted, universe, suites))
        .await;
    answer.unwrap_or_else(|| Err(ResolveError::local("the choice of packages stopped".into())))
}

/// The snapshot with the metadata of `suite`: that of the last lock if the suite is unchanged,
/// otherwise it is looked up.
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

/// Chooses the packages for `wish`. Returns the set, and notes for people.
fn lock(
    wish: &PackageSetRequest,
    universe: &Universe<'_>,
    suites: &[Suite],
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    let names: Vec<Vec<String>> = suites
        .iter()
        .map(|suite| {
            let Suite {
                source, release, ..
            } = suite;
            let own = [
                Some(&source.suite),
                release.suite.as_ref(),
                release.codename.as_ref(),
            ];
            own.into_iter().flatten().cloned().collect()
        })
        .collect();
    let settings = AptSettings {
        recommends: wish.recommends,
        expects_rest: wish.bases.is_empty(),
    };
    let nothing = [MachineBase::None];
    let bases = if wish.bases.is_empty() {
        &nothing[..]
    } else {
        &wish.bases
    };
    let mut choices = Vec::new();
    let mut machine = Cow::Borrowed(universe);
    for base in bases {
        if bases != nothing {
            machine.to_mut().forget_installed();
            apply(base, machine.to_mut(), suites, wish)?;
        }
        let chosen = choose(&machine, &names, &wish.install, settings);
        choices.push(chosen.map_err(|why| match bases.len() {
            1 => why,
            _ => format!("where the machine has {}: {why}", shown(base)),
        })?);
    }
    let universe = &*machine;
    let notes = notes(wish, universe, bases, &choices);
    let versions: BTreeSet<AptVersionId> = choices
        .iter()
        .flat_map(|choice| choice.versions.iter().copied())
        .collect();
    let expected: BTreeSet<String> = choices
        .into_iter()
        .flat_map(|choice| choice.expected)
        .collect();
    let mut sources: Vec<PackageSource> = Vec::new();
    let mut all = versions.iter().map(|version| universe.offer_of(*version));
    let mut packages: Vec<Vec<LockedPackage>> = suites.iter().map(|_| Vec::new()).collect();
    all.try_for_each(|offer| -> Result<(), ResolveError> {
        if let Some(at) = offer.source {
            packages[at as usize].push(locked(universe, offer, &suites[at as usize].source.url)?);
        }
        Ok(())
    })?;
    for (suite, packages) in suites.iter().zip(packages) {
        sources.push(PackageSource {
            packages,
            ..suite.source.clone()
        });
    }
    Ok((parts::set(wish, expected, sources), notes))
}

/// Marks the packages of `base` as installed in the universe.
fn apply<'t>(
    base: &'t MachineBase,
    universe: &mut Universe<'t>,
    suites: &[Suite],
    wish: &PackageSetRequest,
) -> Result<(), ResolveError> {
    let system = match base {
        MachineBase::None | MachineBase::Rpms(_) => return Ok(()),
        MachineBase::Status(text) => {
            universe.install(text);
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
    let installed = suite_packages(&wish.architectures, &texts, system);
    let installed = installed.map_err(|why| {
        format!(
            "what a machine of {} has, {base}: {why}",
            first.source.suite
        )
    })?;
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
    let name = universe.text(universe.packages[offer.package as usize].name);
    let sum = match (offer.sha256, offer.sha512) {
        ("", "") => {
            return Err(format!(
                "{name} {} has no SHA-256 in its index, so it cannot be checked",
                offer.version
            )
            .into());
        }
        ("", sum) => format!("sha512:{sum}"),
        (sum, _) => format!("sha256:{sum}"),
    };
    let digest = sum
        .parse()
        .map_err(|_| format!("{name} {}: '{sum}' is no digest", offer.version))?;
    let words = [name, offer.version, offer.arch];
    let is_word = |text: &&str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    if !is_plain_path(offer.path) || !words.iter().all(is_word) || offer.size == 0 {
        return Err(format!(
            "its index names {name} {} as '{}' of {} bytes, which is refused",
            offer.version, offer.path, offer.size
        )
        .into());
    }
    Ok(LockedPackage {
        digest,
        size: offer.size,
        name: name.into(),
        version: offer.version.into(),
        arch: offer.arch.into(),
        path: offer.path.into(),
        url: file_url(url, offer.path),
    })
}

fn shown(base: &MachineBase) -> String {
    match base {
        MachineBase::Status(_) => "what its status file says".into(),
        base => format!("the base `{base}`"),
    }
}

/// The packages that are expected on the machines, with notes where several bases lead to different
/// choices.
fn notes(
    wish: &PackageSetRequest,
    universe: &Universe<'_>,
    bases: &[MachineBase],
    choices: &[AptSelection],
) -> Vec<String> {
    let mut notes = Vec::new();
    let expected: BTreeSet<&String> = choices.iter().flat_map(|choice| &choice.expected).collect();
    if !expected.is_empty() {
        let all: Vec<&str> = expected.iter().map(|text| text.as_str()).collect();
        notes.push(format!(
            "{}: no source has {}; the machines must have it (with `base` or more `sources` it \
             is carried)",
            wish.name,
            all.join(", ")
        ));
    }
    let everywhere = |version: &AptVersionId| {
        choices
            .iter()
            .all(|choice| choice.versions.contains(version))
    };
    for (base, choice) in bases.iter().zip(choices) {
        let own: Vec<String> = choice
            .versions
            .iter()
            .filter(|version| !everywhere(version))
            .map(|version| {
                let offer = universe.offer_of(*version);
                format!(
                    "{} {}",
                    universe.text(universe.packages[offer.package as usize].name),
                    offer.version
                )
            })
            .collect();
        if choices.len() > 1 && !own.is_empty() {
            let few = own.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            let more = own.len().saturating_sub(10);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            notes.push(format!(
                "{}: only a machine that has {} takes {few}{more}",
                wish.name,
                shown(base)
            ));
        }
    }
    notes
}
