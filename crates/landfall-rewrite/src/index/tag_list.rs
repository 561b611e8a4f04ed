//! Lists of locked tags and digests in messages.

use landfall_model::{Digest, ImageRef};

/// The maximum number of tags or names that a message lists.
pub(super) const LISTED: usize = 4;

/// Lists the tags of `images`, which all belong to one repository. Images without a tag are listed
/// by digest.
pub(crate) fn listed<'i>(
    images: impl ExactSizeIterator<Item = (&'i ImageRef, &'i Digest)>,
) -> String {
    let count = images.len();
    let mut listed = Vec::new();
    for (name, digest) in images.take(LISTED) {
        listed.push(match &name.tag {
            Some(tag) => tag.clone(),
            None => format!("@{}:{}…", digest.algorithm().as_str(), digest.short(12)),
        });
    }
    if count > LISTED {
        listed.push(format!("{} more", count - LISTED));
    }
    listed.join(", ")
}
