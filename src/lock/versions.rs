//! Which removed and added items of a difference are one thing in two versions.

use super::change::LockChange;
use landfall_model::report::EntryKind;
use landfall_model::{ImageRef, TagVersion};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What is compared: things of one kind, from one place, whose versions look alike.
type VersionGroup = (EntryKind, String, String);

/// Marks those that are removed and added as versions of one thing: the newest with the newest, as
/// long as there are both.
pub(super) fn pair(changes: &mut [LockChange]) {
    let mut places: BTreeMap<VersionGroup, [Vec<(TagVersion, usize)>; 2]> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let side = match change.change {
            "removed" => 0,
            "added" => 1,
            _ => continue,
        };
        if let Some((place, version)) = placed(change.kind, &change.name) {
            places.entry(place).or_default()[side].push((version, at));
        }
    }
    for [mut gone, mut come] in places.into_values() {
        for side in [&mut gone, &mut come] {
            side.sort_by(|(a, _), (b, _)| b.order(a));
        }
        for ((before, old), (after, new)) in gone.into_iter().zip(come) {
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

/// Where an item is from, without its version; and the version. The version of what is no image
/// stands somewhere in its name.
fn placed(kind: EntryKind, name: &str) -> Option<(VersionGroup, TagVersion)> {
    let image: Option<ImageRef> = name.parse().ok().filter(|_| kind == EntryKind::Image);
    let (source, version) = match &image {
        Some(image) => (image.name(), image.tag.as_deref()?),
        None => (String::new(), name),
    };
    let version = TagVersion::parse(version)?;
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
            ..LockChange::of(kind, "", "")
        }
    }

    #[test]
    fn the_newest_replaces_the_newest_and_only_what_looks_alike() {
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
