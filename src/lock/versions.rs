//! Finds pairs of a removed and an added item that are two versions of one thing.

use super::change::LockChange;
use landfall_model::report::EntryKind;
use landfall_model::{ImageRef, TagVersion};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The kind, the source, and the shape of the version. Items that are equal in all three can be
/// versions of each other.
type VersionGroup = (EntryKind, String, String);

/// Marks removed and added items as versions of one thing. In each group, the newest removed item
/// is paired with the newest added one, the second with the second, and so on.
pub(super) fn pair(changes: &mut [LockChange]) {
    let mut groups: BTreeMap<VersionGroup, [Vec<(TagVersion, usize)>; 2]> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let side = match change.change {
            "removed" => 0,
            "added" => 1,
            _ => continue,
        };
        if let Some((group, version)) = version_group(change.kind, &change.name) {
            groups.entry(group).or_default()[side].push((version, at));
        }
    }
    for [mut removed, mut added] in groups.into_values() {
        for side in [&mut removed, &mut added] {
            side.sort_by(|(a, _), (b, _)| b.order(a));
        }
        for ((before, old), (after, new)) in removed.into_iter().zip(added) {
            let direction = match after.order(&before) {
                Ordering::Greater => "up",
                Ordering::Less => "down",
                Ordering::Equal => continue,
            };
            let [replaced, replacing] = [old, new].map(|at| changes[at].name.clone());
            changes[old].replaced_by = Some(replacing);
            changes[new].replaces = Some(replaced);
            changes[new].version = Some(direction);
        }
    }
}

/// The group and the version of an item. An image has its version in the tag; for other kinds, the
/// whole name counts as the version, because a URL may contain it anywhere.
fn version_group(kind: EntryKind, name: &str) -> Option<(VersionGroup, TagVersion)> {
    let image: Option<ImageRef> = name.parse().ok().filter(|_| kind == EntryKind::Image);
    let (source, version) = match &image {
        Some(image) => (image.name(), image.tag.as_deref()?),
        None => (String::new(), name),
    };
    let version = TagVersion::parse(version)?;
    // the shape keeps variants apart, and versions of different shapes have no order
    Some(((kind, source, version.shape().to_owned()), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(change: &'static str, kind: EntryKind, name: &str) -> LockChange {
        LockChange {
            change,
            kind,
            name: name.into(),
            ..LockChange::new(kind, "", "")
        }
    }

    #[test]
    fn the_newest_added_version_replaces_the_newest_removed_one_of_its_shape() {
        let image = |what, name| change(what, EntryKind::Image, name);
        let mut changes = [
            image("removed", "q.io/a:v1.9.0"),
            image("removed", "q.io/a:v1.8.0"),
            image("added", "q.io/a:v1.10.1"),
            image("removed", "q.io/b:2.0"),
            image("added", "q.io/b:1.9"),
            image("removed", "q.io/c:1.2-alpine"),
            image("added", "q.io/c:1.3"),
            image("added", "q.io/d:v1.10.1"),
            change(
                "removed",
                EntryKind::File,
                "https://h.test/v1.9/bin/linux/amd64/x",
            ),
            change(
                "removed",
                EntryKind::File,
                "https://h.test/v1.9/bin/linux/arm/x",
            ),
            change(
                "added",
                EntryKind::File,
                "https://h.test/v1.10/bin/linux/amd64/x",
            ),
        ];
        pair(&mut changes);
        let of = |at: usize| (changes[at].replaces.as_deref(), changes[at].version);
        assert_eq!(of(2), (Some("q.io/a:v1.9.0"), Some("up")));
        assert_eq!(of(4), (Some("q.io/b:2.0"), Some("down")));
        assert_eq!(
            of(10),
            (Some("https://h.test/v1.9/bin/linux/amd64/x"), Some("up"))
        );
        assert_eq!(changes[0].replaced_by.as_deref(), Some("q.io/a:v1.10.1"));
        for alone in [1, 5, 6, 7, 9] {
            assert_eq!(
                (&changes[alone].replaces, &changes[alone].replaced_by),
                (&None, &None),
                "{alone}"
            );
        }
    }
}
