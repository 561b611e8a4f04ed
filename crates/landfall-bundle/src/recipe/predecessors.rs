//! The blobs that a new blob probably resembles.

use landfall_item::LockedItem;
use landfall_model::Descriptor;

/// A blob of an item, and the family of the item. A blob is compared with blobs of its family if
/// there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FamilyBlob {
    pub(super) blob: Descriptor,
    /// The name of the item without digest, tag and digits, such as the repository of an image: the
    /// same for all versions of the item.
    pub(super) family: String,
    /// The position of the blob among those of its item.
    pub(super) position: usize,
    /// The name of the item, if it is an image or a chart.
    pub(super) image: Option<String>,
    /// The repository of the item below the prefix of a destination, if the item is neither an
    /// image nor a chart.
    pub(super) path: Option<String>,
}

/// The blobs of an item.
pub(super) fn family_blobs(item: &dyn LockedItem) -> Vec<FamilyBlob> {
    let entry = item.entry();
    let family = family(&entry.name);
    let image = item.reference().map(ToString::to_string);
    let path = image.is_none().then(|| item.own_repository());
    let stored = entry
        .parts
        .iter()
        .filter(|part| part.is_stored() && !part.is_manifest());
    stored
        .enumerate()
        .map(|(position, part)| FamilyBlob {
            blob: part.descriptor.clone(),
            family: family.clone(),
            position,
            image: image.clone(),
            path: path.clone(),
        })
        .collect()
}

/// The name of an item without digest, tag and digits.
fn family(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[last..]
        .find(':')
        .map_or(name.len(), |colon| last + colon);
    name[..end]
        .chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

/// Returns the blobs of `pool` to compare with `new`, at most `limit`: first those at the most
/// similar position. They are of the same family as `new`. If the pool has no blob of this family,
/// they are blobs for which `is_gone` is true: a blob that the new lock no longer names was
/// probably replaced.
pub(super) fn candidates<'a>(
    new: &FamilyBlob,
    pool: &'a [FamilyBlob],
    is_gone: impl Fn(&FamilyBlob) -> bool,
    limit: usize,
) -> Vec<&'a FamilyBlob> {
    let other = |old: &&FamilyBlob| old.blob.digest != new.blob.digest;
    let mut found: Vec<&FamilyBlob> = pool
        .iter()
        .filter(other)
        .filter(|old| old.family == new.family)
        .collect();
    if found.is_empty() {
        found = pool
            .iter()
            .filter(other)
            .filter(|old| is_gone(old))
            .collect();
    }
    let distance = |old: &FamilyBlob| old.position.abs_diff(new.position);
    // at the same distance, the blob with the most similar size is first
    found.sort_by_key(|old| (distance(old), old.blob.size.abs_diff(new.blob.size)));
    let mut seen = std::collections::HashSet::new();
    found.retain(|old| seen.insert(&old.blob.digest));
    found.truncate(limit);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_item_are_one_family() {
        assert_eq!(
            family("quay.io/prometheus/node-exporter:v1.9.0"),
            "quay.io/prometheus/node-exporter"
        );
        assert_eq!(family("localhost:5000/a/b@sha256:00"), "localhost:/a/b");
        let file = "https://dl.k8s.io/v1.31.1/bin/linux/amd64/kubelet";
        assert_eq!(
            family(file),
            family("https://dl.k8s.io/v1.30.12/bin/linux/amd64/kubelet")
        );
        assert_ne!(
            family(file),
            family("https://dl.k8s.io/v1.31.1/bin/linux/arm64/kubectl")
        );
    }
}
