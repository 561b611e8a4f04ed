//! Computes the offsets of the stored entries from the lock alone.

use crate::format::header;
use crate::format::stored::stored_len;
use crate::plan::pack_plan::PackPlan;

/// The offsets of the entries of `plan` before the index `compressed`, and the offset of the first
/// compressed entry, which is at this index.
pub(super) fn stored_offsets(plan: &PackPlan, compressed: usize) -> (Vec<u64>, u64) {
    let mut at = 0;
    let mut starts = Vec::new();
    for entry in &plan.entries[..compressed] {
        starts.push(at);
        let size = entry.descriptor.size;
        let lengths = [header::encoded_len(&entry.name), header::padding(size)];
        // the length of a stored frame depends only on the size of its content, so the content
        // itself is not needed here
        at += lengths
            .map(|length| stored_len(length as u64))
            .iter()
            .sum::<u64>()
            + stored_len(size);
    }
    (starts, at)
}
