//! Identifies bad volumes by the checksums next to them, when the bundle itself cannot be opened.

use super::bundle::Bundle;
use super::checksums::hash_file;
use super::repair::BadVolumes;
use super::volume_set::VolumeSet;
use super::without_volume::{open_rest, open_without};
use crate::error::BundleError;
use crate::format::files::{checksums_path, file_name};
use crate::format::loss::Loss;
use landfall_model::report::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A bundle that cannot be opened completely.
pub struct UnopenedBundle {
    /// Why the bundle cannot be opened.
    pub error: BundleError,
    /// The bundle without its bad volume, if only one is bad. The items that need that volume count
    /// as missing.
    pub rest: Option<Bundle>,
}

/// Compares the volumes at `locations` with the checksums next to them, after opening them failed
/// with `error`. If volumes are missing, truncated, damaged or of another bundle, the result has an
/// error that lists them and the consequences. Otherwise it has `error` itself.
pub fn name_bad_volumes(
    error: BundleError,
    locations: &[PathBuf],
    progress: &dyn Progress,
) -> UnopenedBundle {
    let (BundleError::Damaged { .. } | BundleError::Missing { .. }) = error else {
        return UnopenedBundle { error, rest: None };
    };
    let Ok(Some(set)) = VolumeSet::of(locations) else {
        return UnopenedBundle { error, rest: None };
    };
    let damaged = damaged(&set, progress);
    let missing = set.missing();
    let numbers: BTreeSet<usize> = damaged
        .keys()
        .copied()
        .chain(missing.iter().copied())
        .collect();
    let Some(first) = numbers.first() else {
        return UnopenedBundle { error, rest: None };
    };
    // if only one volume is bad, its length can be computed from the footer
    let rest = if numbers.len() == 1 {
        open_rest(locations, *first)
    } else {
        None
    };
    let (is_rebuildable, has_lock) = match &rest {
        Some((rest, _)) => (!rest.has_recipes(), true),
        None if numbers.len() > 1 => (false, false),
        None => {
            let opened = open_without(locations, *first, &|why| BundleError::Volume {
                volume: set.name(*first),
                why: why.into(),
            });
            (opened.is_ok_and(|(rest, _)| !rest.has_recipes()), false)
        }
    };
    let repair = BadVolumes {
        set: &set,
        locations,
        numbers: &numbers,
        is_rebuildable,
        has_lock,
    }
    .repair_advice();
    let (rest, items) = rest.unzip();
    let path = set.base.clone();
    let loss = Some(Loss {
        items,
        has_rest: rest.is_some(),
        repair,
    });
    // if no volume is damaged, a shorter message requests the missing ones
    let error = if damaged.is_empty() {
        let volumes = missing.into_iter().map(|number| set.name(number)).collect();
        BundleError::Missing {
            path,
            volumes,
            loss,
        }
    } else {
        let bad = numbers.iter().map(|number| {
            let why = damaged.get(number).map_or("it is missing", String::as_str);
            format!("{}: {why}", set.name(*number))
        });
        BundleError::Volumes {
            path,
            bad: bad.collect(),
            loss,
        }
    };
    UnopenedBundle { error, rest }
}

/// The existing volumes that do not match their checksums, by number, with the problem.
fn damaged(set: &VolumeSet, progress: &dyn Progress) -> BTreeMap<usize, String> {
    progress.begin("verify", set.sums.len() as u64, 0);
    let sums = file_name(&checksums_path(&set.base));
    let mut damaged = BTreeMap::new();
    for (number, path) in set.found() {
        // without a checksum, a volume cannot be checked
        let Some(sum) = set.sums.get(number) else {
            continue;
        };
        let why = match hash_file(path) {
            Ok(found) if found == *sum => None,
            Ok(_) => Some(format!("its SHA-256 is not the one in {sums}")),
            Err(source) => Some(format!("cannot be read: {source}")),
        };
        damaged.extend(why.map(|why| (*number, why)));
        progress.item(&set.name(*number));
    }
    progress.end();
    damaged
}
