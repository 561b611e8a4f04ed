//! Files in the folder of an exported bare repository that are not part of the export, but change
//! what git reads: an earlier export, or people who used the repository, left them.

use landfall_content::if_exists;
use landfall_item::LockedGitRepository;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The file with the commits at which the history ends.
pub(super) const SHALLOW: &str = "shallow";
/// A file with a ref has the id of an object, or the name of another ref.
const MAX_REF_FILE: u64 = 4096;

/// Removes the end of the history that an earlier, shallow export left in `folder`. Returns an item
/// for each file that cannot be removed, and for each ref to which a file gives another value: such
/// a file overrides `packed-refs`, and people may have written it.
pub(super) fn settle_leftovers(repository: &LockedGitRepository, folder: &Path) -> Vec<ReportItem> {
    let mut items = Vec::new();
    if repository.shallow.is_empty()
        && let Err(error) = if_exists(fs::remove_file(folder.join(SHALLOW)))
    {
        let path = folder.join(SHALLOW);
        let why = format!("cannot remove {}: {error}", path.display());
        items.push(item_of(repository, SHALLOW, ItemStatus::Failed, Some(why)));
    }
    for one in &repository.refs {
        let path = folder.join(&one.name);
        if let Some(text) = ref_file(&path)
            && text.trim() != one.id.to_string()
        {
            let why = format!(
                "{} has another value, which overrides the exported one; remove this file",
                path.display()
            );
            let item = item_of(repository, &one.name, ItemStatus::Failed, Some(why));
            items.push(item);
        }
    }
    items
}

/// The lines of `shallow`, followed by the other lines of that file in `folder`.
pub(super) fn with_present_commits(shallow: &str, folder: &Path) -> String {
    let present = fs::read_to_string(folder.join(SHALLOW)).unwrap_or_default();
    let own: BTreeSet<&str> = shallow.lines().collect();
    let others = present
        .lines()
        .filter(|line| !own.contains(line))
        .map(|line| format!("{line}\n"));
    std::iter::once(shallow.to_owned()).chain(others).collect()
}

/// The content of the file with a ref; `None` if there is no such file.
fn ref_file(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let is_ref = metadata.is_file() && metadata.len() <= MAX_REF_FILE;
    is_ref.then(|| fs::read_to_string(path).ok())?
}

/// An item for `path` in the exported repository.
pub(super) fn item_of(
    repository: &LockedGitRepository,
    path: &str,
    status: ItemStatus,
    reason: Option<String>,
) -> ReportItem {
    ReportItem::new(
        EntryKind::Sidecar,
        format!("{}: {path}", repository.name),
        status,
        reason,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::LockedGitRef;

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn the_end_of_an_earlier_shallow_history_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SHALLOW);
        let mut repository = LockedGitRepository::without_refs("https://h/a");
        assert!(settle_leftovers(&repository, dir.path()).is_empty());
        fs::write(&path, format!("{ID}\n")).unwrap();
        repository.shallow = vec![ID.parse().unwrap()];
        assert!(settle_leftovers(&repository, dir.path()).is_empty());
        assert!(path.exists());
        repository.shallow.clear();
        assert!(settle_leftovers(&repository, dir.path()).is_empty());
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        let items = settle_leftovers(&repository, dir.path());
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].status, ItemStatus::Failed);
    }

    #[test]
    fn a_file_that_overrides_an_exported_ref_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let name = "refs/heads/main";
        let mut repository = LockedGitRepository::without_refs("https://h/a");
        repository.refs = vec![LockedGitRef {
            name: name.into(),
            id: ID.parse().unwrap(),
        }];
        let left = || settle_leftovers(&repository, dir.path());
        assert!(left().is_empty());
        // the folder of branches whose names begin with `main/`
        fs::create_dir_all(dir.path().join(name)).unwrap();
        assert!(left().is_empty());
        fs::remove_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name), format!("{ID}\n")).unwrap();
        assert!(left().is_empty());
        fs::write(dir.path().join(name), "ref: refs/heads/other\n").unwrap();
        let items = left();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].name, "git+https://h/a: refs/heads/main");
        assert_eq!(items[0].status, ItemStatus::Failed);
    }
}
