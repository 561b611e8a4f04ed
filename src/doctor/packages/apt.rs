//! Simulates apt on a node, with the carried indexes and the node's dpkg status file.

use super::{CarriedIndexes, SimulatedInstall};
use landfall_item::{LockedPackageSet, PackageSource};
use landfall_model::Failure;
use landfall_packages::apt::{AptRelease, AptSettings, Universe, check_index_size, choose};
use landfall_packages::{COMPRESSIONS, decompress};
use std::collections::BTreeSet;

/// Simulates the installation of `set` by apt on the node.
pub(super) fn simulate_install(
    set: &LockedPackageSet,
    carried: &CarriedIndexes<'_>,
    status: &str,
) -> Result<SimulatedInstall, Failure> {
    let mut texts = Vec::new();
    for source in &set.sources {
        let mut read = Vec::new();
        let mut known = BTreeSet::new();
        for index in &source.indexes {
            let Some((stem, compression)) = COMPRESSIONS.iter().find_map(|(form, compression)| {
                let stem = index.path.strip_suffix(form)?;
                (stem == "Packages" || stem.ends_with("/Packages")).then_some((stem, *compression))
            }) else {
                continue;
            };
            // The same index may be carried in several compressions.
            if known.insert(stem.to_owned()) {
                let bytes = index.read(carried.blobs)?;
                let text = decompress(
                    &index.path,
                    &bytes,
                    compression,
                    carried.limits.package_index_bytes,
                )?;
                let text = String::from_utf8_lossy(&text).into_owned();
                check_index_size(&index.path, &text)?;
                read.push(text);
            }
        }
        texts.push(read);
    }
    let mut universe = Universe::new(&set.architectures);
    let mut suites = Vec::new();
    for (source, texts) in set.sources.iter().zip(&texts) {
        let (priority, names) = suite_properties(source, carried)?;
        suites.push(names);
        let number = universe.add_source(priority);
        texts
            .iter()
            .for_each(|text| universe.add_index(number, text));
    }
    universe.add_installed(status);
    let packages: BTreeSet<(&str, &str, &str)> = set
        .sources
        .iter()
        .flat_map(|source| &source.packages)
        .map(|package| {
            (
                package.name.as_str(),
                package.version.as_str(),
                package.arch.as_str(),
            )
        })
        .collect();
    let settings = AptSettings {
        recommends: set.recommends,
        // The status file lists all installed packages, so no others are assumed to be installed.
        expects_rest: false,
    };
    let choice = match choose(&universe, &suites, &set.install, settings) {
        Ok(choice) => choice,
        Err(why) => return Ok(SimulatedInstall::refused(set, why)),
    };
    let wanted = choice.versions.iter().map(|version| {
        let offer = universe.offer_of(*version);
        let name = universe.text(universe.packages[offer.package as usize].name);
        let is_carried = packages.contains(&(name, offer.version, offer.arch));
        let is_own = offer.arch == "all"
            || set
                .architectures
                .first()
                .is_some_and(|own| own == offer.arch);
        // The notation of apt for packages of another architecture.
        let arch = if is_own {
            String::new()
        } else {
            format!(":{}", offer.arch)
        };
        (format!("{name}{arch} {}", offer.version), is_carried)
    });
    Ok(SimulatedInstall::of(wanted, choice.replaced))
}

/// What apt knows about a suite from its Release file: the priority of its packages, and the names
/// by which a request `name/suite` may refer to it.
fn suite_properties(
    source: &PackageSource,
    carried: &CarriedIndexes<'_>,
) -> Result<(i16, Vec<String>), Failure> {
    let own = source.suite.clone();
    let Some((index, text)) = source.release(carried.blobs)? else {
        // The usual priority, see apt_preferences(5).
        return Ok((500, vec![own]));
    };
    let release = AptRelease::parse(&index.path, &text)?;
    let names = [Some(own), release.suite, release.codename];
    Ok((release.pin, names.into_iter().flatten().collect()))
}
