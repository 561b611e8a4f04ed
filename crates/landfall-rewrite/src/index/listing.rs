//! Lists of locked tags and digests in messages.

use landfall_model::{Digest, ImageRef};

/// How many a message lists.
pub(super) const LISTED: usize = 4;

/// The tags of `images`, which are of one repository, or the digests where they have no tag.
pub(crate) fn listed<'i>(
    images: impl ExactSizeIterator<Item = (&'i ImageRef, &'i Digest)>,
) -> String {
    let count = images.len();
    let short = |(name, digest): (&ImageRef, &Digest)| match &name.tag {
        Some(tag) => tag.clone(),
        None => format!("@{}:{}…", digest.algorithm().as_str(), digest.short(12)),
    };
    let mut listed: Vec<String> = images.take(LISTED).map(short).collect();
    if count > LISTED {
        listed.push(format!("{} more", count - LISTED));
    }
    listed.join(", ")
}
