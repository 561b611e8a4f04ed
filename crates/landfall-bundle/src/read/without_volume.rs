//! Opening a split bundle without one of its volumes, which is lost.

use super::bundle::Bundle;
use super::index::{Index, footer_before};
use super::lost_items::lost_items;
use super::open_bundle::OpenBundle;
use super::volume_reader::VolumeReader;
use super::volume_set::VolumeSet;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::entry::TarEntry;
use crate::format::footer::Footer;
use crate::format::names::ItemName;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

const NO_INDEX: &str = "the contents index lies in it, or in a volume that is damaged, and without it nobody knows what \
                        was there; pack the bundle again with the same lock, --level and --volume-size, which gives \
                        the same bytes";

/// Opens the split bundle at `places` without volume `number`: what was in it cannot be read.
/// Returns also which part of the bundle that is; `cannot` makes an error of the reason why it
/// cannot be found out.
pub(crate) fn open_without(
    places: &[PathBuf],
    number: usize,
    cannot: &dyn Fn(&str) -> BundleError,
) -> Result<(Bundle, Range<u64>), BundleError> {
    let path = places.first().cloned().unwrap_or_default();
    let set = VolumeSet::of(places).map_err(|source| BundleError::Open {
        path: path.clone(),
        source,
    })?;
    let set = set.ok_or_else(|| cannot("no other volume is there"))?;
    let (is_beyond, is_listed) = (number > set.last, !set.sums.is_empty());
    let no_volume = |count| BundleError::NoVolume {
        path: path.clone(),
        number,
        count,
    };
    if is_beyond && is_listed {
        return Err(no_volume(set.last));
    }
    let set = set.without(number);
    let missing: Vec<String> = set
        .missing()
        .into_iter()
        .filter(|other| *other != number)
        .map(|other| set.name(other))
        .collect();
    let others = VolumeReader::over(set.found().values().cloned().collect(), true)?;
    // where the last one is lost, this is no footer
    let footer = footer_before(&others, others.length()).ok().flatten();
    let length = footer
        .as_ref()
        .and_then(Footer::bundle_len)
        .unwrap_or_default();
    if is_beyond && length == others.length() {
        return Err(no_volume(set.found().len()));
    }
    if !missing.is_empty() {
        let why = "the others are needed for it, and of these too are missing: ";
        return Err(cannot(&format!("{why}{}", missing.join(", "))));
    }
    let footer = footer.ok_or_else(|| cannot(NO_INDEX))?;
    let gap = length.checked_sub(others.length()).filter(|gap| *gap > 0);
    let gap = gap.ok_or_else(|| {
        cannot("the other volumes hold the whole bundle, or are not of one bundle")
    })?;
    let start = others.start(number - 1);
    let volumes = others.with_gap(number - 1, gap);
    let index = Index::read(&path, &volumes, footer, |_: Damage| cannot(NO_INDEX))?;
    Ok((
        Bundle(Arc::new(OpenBundle::new(places, volumes, index))),
        start..start + gap,
    ))
}

/// What is left of the split bundle at `places` without volume `number`: it says that it lacks the
/// items which need what was in that, and which these are. `None` where that cannot be told.
pub(super) fn open_rest(places: &[PathBuf], number: usize) -> Option<(Bundle, Vec<ItemName>)> {
    let cannot = |why: &str| BundleError::Volume {
        volume: number.to_string(),
        why: why.into(),
    };
    let (bundle, lost) = open_without(places, number, &cannot).ok()?;
    // who reads an item needs no tar headers
    let is_lost = |entry: &TarEntry| entry.content_offset() < lost.end && entry.end() > lost.start;
    let items = lost_items(&bundle, is_lost)?;
    let mut opened = Arc::into_inner(bundle.0)?;
    opened.partial.extend(items.iter().cloned());
    opened.partial.sort();
    Some((Bundle(Arc::new(opened)), items))
}
