//! Which volumes are bad: found by the checksums beside them, where the bundle itself cannot tell.

use super::bundle::Bundle;
use super::checksums::hash_file;
use super::mend::Bad;
use super::volume_set::VolumeSet;
use super::without_volume::{open_rest, open_without};
use crate::error::BundleError;
use crate::format::files::{checksums_path, file_name};
use crate::format::loss::Loss;
use landfall_model::report::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Why a bundle cannot be opened.
pub struct UnopenedBundle {
    /// What is wrong with it.
    pub error: BundleError,
    /// What is left where one volume is bad. It says that it lacks the items which need that.
    pub rest: Option<Bundle>,
}

/// Compares the volumes at `places` with the checksums beside them, after opening them has failed
/// with `error`. Returns an error that names all volumes that are missing, cut short, damaged or of
/// another bundle, and what that means; or `error` itself where that says no more.
pub fn name_bad_volumes(
    error: BundleError,
    places: &[PathBuf],
    progress: &dyn Progress,
) -> UnopenedBundle {
    let as_it_is = |error| UnopenedBundle { error, rest: None };
    let (BundleError::Damaged { .. } | BundleError::Missing { .. }) = error else {
        return as_it_is(error);
    };
    let Ok(Some(set)) = VolumeSet::of(places) else {
        return as_it_is(error);
    };
    let damaged = damaged(&set, progress);
    let missing = set.missing();
    let numbers: BTreeSet<usize> = damaged
        .keys()
        .copied()
        .chain(missing.iter().copied())
        .collect();
    let Some(first) = numbers.first() else {
        return as_it_is(error);
    };
    let rest = if numbers.len() == 1 {
        open_rest(places, *first)
    } else {
        None
    };
    let (has_index, has_lock) = match &rest {
        Some(_) => (true, true),
        None => {
            let cannot = |why: &str| BundleError::Volume {
                volume: set.name(*first),
                why: why.into(),
            };
            (
                numbers.len() == 1 && open_without(places, *first, &cannot).is_ok(),
                false,
            )
        }
    };
    let mend = Bad {
        set: &set,
        places,
        numbers: &numbers,
        has_index,
        has_lock,
    }
    .mend();
    let (rest, items) = rest.unzip();
    let (path, loss) = (
        set.base.clone(),
        Some(Loss {
            items,
            has_rest: rest.is_some(),
            mend,
        }),
    );
    let error = match damaged.is_empty() {
        true => {
            let volumes = missing.into_iter().map(|number| set.name(number)).collect();
            BundleError::Missing {
                path,
                volumes,
                loss,
            }
        }
        false => {
            let bad = numbers.iter().map(|number| {
                let why = damaged.get(number).map_or("it is missing", String::as_str);
                format!("{}: {why}", set.name(*number))
            });
            BundleError::Volumes {
                path,
                bad: bad.collect(),
                loss,
            }
        }
    };
    UnopenedBundle { error, rest }
}

/// The volumes that are there and do not have their checksums: what is wrong, by number.
fn damaged(set: &VolumeSet, progress: &dyn Progress) -> BTreeMap<usize, String> {
    progress.begin("verify", set.sums.len() as u64, 0);
    let sums = file_name(&checksums_path(&set.base));
    let mut damaged = BTreeMap::new();
    for (number, path) in set.found() {
        let Some(sum) = set.sums.get(number) else {
            continue;
        };
        let why = match hash_file(path) {
            Ok(found) if found == *sum => None,
            Ok(_) => Some(format!("it does not have the SHA-256 that {sums} gives it")),
            Err(source) => Some(format!("cannot be read: {source}")),
        };
        damaged.extend(why.map(|why| (*number, why)));
        progress.item(&set.name(*number));
    }
    progress.end();
    damaged
}
