//! The layout of a bundle as far as it follows from the lock: the offsets of its stored entries.

use crate::format::header;
use crate::format::stored::stored_len;
use crate::plan::pack_plan::PackPlan;

/// Where the layout of `plan` puts things: the offsets of the entries that come before the
/// compressed ones, and of the first compressed entry.
pub(super) fn layout(plan: &PackPlan, compressed: usize) -> (Vec<u64>, u64) {
    let (mut at, mut starts) = (0, Vec::new());
    for entry in &plan.entries[..compressed] {
        starts.push(at);
        let size = entry.descriptor.size;
        let around = [header::encoded_len(&entry.name), header::padding(size)];
        at += around
            .map(|length| stored_len(length as u64))
            .iter()
            .sum::<u64>()
            + stored_len(size);
    }
    (starts, at)
}
