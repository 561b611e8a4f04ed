//! Opening a split bundle without one of its volumes, which is lost.

use super::bundle::Bundle;
use super::index::{Index, footer_before};
use super::open_bundle::OpenBundle;
use super::volume_reader::VolumeReader;
use super::volume_set::VolumeSet;
use crate::bundle::error::Error;
use crate::bundle::format::damage::Damage;
use crate::bundle::format::files::{file_name, volume_path};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const NO_INDEX: &str = "the contents index lies in it, or in a volume that is damaged, and without it nobody knows what \
                        was there; pack the bundle again with the same lock and --volume-size, which gives the same \
                        bytes";

/// Opens the bundle `base` without volume `number`: what was in it cannot be read. Returns also which part of the
/// bundle that is; `cannot` makes an error of the reason why it cannot be found out.
pub(crate) fn open_without(
    base: &Path,
    number: usize,
    cannot: &dyn Fn(&str) -> Error,
) -> Result<(Bundle, Range<u64>), Error> {
    let set = VolumeSet::with(base, number).map_err(|source| Error::Open { path: base.into(), source })?;
    let lost = volume_path(base, number);
    let mut missing = set.missing();
    missing.retain(|volume| *volume != file_name(&lost));
    if !missing.is_empty() {
        let why = "the others are needed for it, and of these too are missing: ";
        return Err(cannot(&format!("{why}{}", missing.join(", "))));
    }
    let others = VolumeReader::over(set.paths().filter(|path| *path != lost).collect(), true)?;
    let is_whole = || cannot("the other volumes hold the whole bundle, or are not of one bundle");
    let has_gap = |end: u64| end.checked_sub(others.length()).filter(|gap| *gap > 0).ok_or_else(is_whole);
    let start = others.start(number - 1);
    let no_index = |_: Damage| cannot(NO_INDEX);
    // where the last one is lost, this is no footer
    let footer = footer_before(&others, others.length()).map_err(no_index)?;
    let footer = footer.ok_or_else(|| cannot(NO_INDEX))?;
    let gap = has_gap(footer.bundle_len().unwrap_or_default())?;
    let volumes = others.with_gap(number - 1, gap);
    let index = Index::read(base, &volumes, footer, no_index)?;
    Ok((Bundle(Arc::new(OpenBundle::new(base, volumes, index))), start..start + gap))
}
