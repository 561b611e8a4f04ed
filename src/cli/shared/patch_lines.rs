//! The lines about the patches of a bundle.

use landfall_bundle::RecipeSummary;
use landfall_model::human_size;
use landfall_model::report::count_of;
use std::collections::BTreeMap;

/// How many blobs are carried as patches, what that saves, and why others are not.
pub(crate) fn patch_lines(summary: Option<&RecipeSummary>) -> String {
    let Some(summary) = summary else {
        return String::new();
    };
    let mut text = match summary.patched {
        0 => "  patched           nothing\n".to_owned(),
        count => format!(
            "  patched           {} of {} in {}\n",
            count_of(count, "blob"),
            human_size(summary.patched_bytes),
            human_size(summary.recipe_bytes)
        ),
    };
    let mut reasons: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for one in &summary.unpatched {
        let (count, bytes) = reasons.entry(one.reason).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(one.blob.size);
    }
    for (reason, (count, bytes)) in reasons {
        let blobs = count_of(count, "blob");
        text += &format!(
            "  not patched       {blobs} ({}): {reason}\n",
            human_size(bytes)
        );
    }
    text
}
