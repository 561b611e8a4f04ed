//! Opens a split bundle without one of its volumes.

use super::bundle::Bundle;
use super::index::{BundleIndex, footer_ending_at};
use super::lost_items::lost_items;
use super::open_bundle::OpenBundle;
use super::volume_reader::VolumeReader;
use super::volume_set::VolumeSet;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::files::volume_path;
use crate::format::footer::Footer;
use crate::format::names::ItemName;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

const NO_INDEX: &str = "the contents index is in this volume or in a damaged one, and without it \
                        no volume can be rebuilt; pack the bundle again with the same lock, \
                        --level and --volume-size, which gives the same bytes";

/// Opens the split bundle at `locations` without volume `number`. Reading content of that volume
/// then fails. Also returns the byte range of the volume. If the bundle cannot be opened like this,
/// `cannot` turns the reason into an error.
pub(crate) fn open_without(
    locations: &[PathBuf],
    number: usize,
    cannot: &dyn Fn(&str) -> BundleError,
) -> Result<(Bundle, Range<u64>), BundleError> {
    let path = locations.first().cloned().unwrap_or_default();
    let set = VolumeSet::of(locations).map_err(|source| BundleError::Open {
        path: path.clone(),
        source,
    })?;
    let set = set.ok_or_else(|| cannot("there is no other volume"))?;
    let is_beyond = number > set.last;
    let is_listed = !set.sums.is_empty();
    if is_beyond && is_listed {
        return Err(BundleError::NoVolume {
            path,
            number,
            count: set.last,
        });
    }
    // the volume may exist but be damaged
    let set = set.without(number);
    let missing: Vec<String> = set
        .missing()
        .into_iter()
        .filter(|other| *other != number)
        .map(|other| set.name(other))
        .collect();
    let others = VolumeReader::over(set.found().values().cloned().collect(), true)?;
    // if the last volume is missing, the other volumes do not end with a footer
    let footer = footer_ending_at(&others, others.length()).ok().flatten();
    let length = footer
        .as_ref()
        .and_then(Footer::bundle_len)
        .unwrap_or_default();
    if is_beyond && length == others.length() {
        return Err(BundleError::NoVolume {
            path,
            number,
            count: set.found().len(),
        });
    }
    if !missing.is_empty() {
        let why = "all other volumes are needed, but these are missing, too: ";
        return Err(cannot(&format!("{why}{}", missing.join(", "))));
    }
    let footer = footer.ok_or_else(|| cannot(NO_INDEX))?;
    // the footer states the length of the whole bundle; the lost volume has all bytes that are not
    // in the other volumes
    let gap = length.checked_sub(others.length()).filter(|gap| *gap > 0);
    let gap = gap.ok_or_else(|| {
        cannot("the other volumes are a complete bundle, or belong to different bundles")
    })?;
    let start = others.start(number - 1);
    let volumes = others.with_gap(number - 1, gap, volume_path(&set.base, number));
    let index = BundleIndex::read(&path, &volumes, footer, |_: Damage| cannot(NO_INDEX))?;
    Ok((
        Bundle(Arc::new(OpenBundle::new(locations, volumes, index))),
        start..start + gap,
    ))
}

/// Opens the rest of the split bundle at `locations` without volume `number`. The items that need
/// the volume are reported as missing and returned. `None` if the bundle cannot be opened like
/// this, or the items cannot be determined.
pub(super) fn open_rest(locations: &[PathBuf], number: usize) -> Option<(Bundle, Vec<ItemName>)> {
    let opened = open_without(locations, number, &|why| BundleError::Volume {
        volume: number.to_string(),
        why: why.into(),
    });
    let (bundle, lost) = opened.ok()?;
    let items = lost_items(&bundle, |entry| !bundle.is_readable_without(&lost, entry))?;
    let mut opened = Arc::into_inner(bundle.0)?;
    opened.partial.extend(items.iter().cloned());
    opened.partial.sort();
    Some((Bundle(Arc::new(opened)), items))
}
