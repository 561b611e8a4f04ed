//! Finds the files whose images a kustomization replaces: its resources, its bases, and their
//! resources.

use super::FileFinding;
use crate::index::pin;
use crate::inputs::{InputContent, InputFile, read};
use crate::inventory::LockCoverage;
use crate::yaml::{YamlNode, documents, items_of, text_of};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lists of files, and of folders with other kustomizations.
const LISTS: [&str; 4] = ["resources", "bases", "components", "patchesStrategicMerge"];

/// Keys of an image with what replaces it.
const REPLACEMENTS: [&str; 3] = ["newName", "newTag", "digest"];

/// The maximum number of files and folders that are visited for all kustomizations together: many
/// overlays may share many bases.
const MAX_VISITS: usize = 100_000;

/// The maximum number of kustomizations that are known for one file.
const MAX_OF_FILE: usize = 100;

/// The kustomizations among the audited files.
pub(super) struct Kustomizations {
    all: Vec<Kustomization>,
    /// The positions of those that read a file and replace images, by its canonical path.
    by_file: BTreeMap<PathBuf, Vec<usize>>,
}

struct Kustomization {
    /// The path of the file, as messages show it.
    path: PathBuf,
    /// The canonical path of its folder.
    folder: PathBuf,
    /// The path of the file in this folder.
    file: PathBuf,
    /// The canonical paths of its files and bases.
    resources: Vec<PathBuf>,
    /// The names of the images that it replaces.
    names: BTreeSet<String>,
}

impl Kustomizations {
    /// Reads the kustomizations among `inputs`.
    pub(super) fn of(inputs: &[InputFile]) -> Kustomizations {
        let all: Vec<Kustomization> = inputs.iter().filter_map(Kustomization::read).collect();
        let by_file = by_file(&all);
        Kustomizations { all, by_file }
    }

    /// If a kustomization replaces the image of `found`, the lock need not have it: the image that
    /// replaces it is looked up as well.
    pub(super) fn settle(&self, found: &mut FileFinding) {
        if self.by_file.is_empty() || !found.finding.coverage.is_missing() {
            return;
        }
        let reference = &found.finding.reference;
        let name = &reference[..reference.len() - pin(reference).len()];
        let Ok(file) = Path::new(&found.file).canonicalize() else {
            return;
        };
        let readers = self.by_file.get(&file).into_iter().flatten();
        let mut readers = readers.map(|at| &self.all[*at]);
        if let Some(reader) = readers.find(|one| one.names.contains(name)) {
            let by = reader.path.display();
            let why = format!("{by} replaces it; audit the output of `kustomize build`");
            found.finding.coverage = LockCoverage::Undecided { why };
        }
    }
}

impl Kustomization {
    /// Reads the kustomization in `input`. `None` if it is another file, or cannot be read.
    fn read(input: &InputFile) -> Option<Kustomization> {
        let stem = input.path.file_stem()?;
        if !stem.eq_ignore_ascii_case("kustomization") {
            return None;
        }
        let Ok(InputContent::Text(text, _)) = read(input) else {
            return None;
        };
        // a relative path without folders has the empty path as its parent
        let folder = Path::new(".").join(input.path.parent()?);
        let folder = folder.canonicalize().ok()?;
        let mut resources = Vec::new();
        let mut names = BTreeSet::new();
        for document in documents(&text).flatten() {
            let root = document.entries();
            let items = LISTS.iter().flat_map(|list| items_of(root, list));
            let items = items.filter_map(|item| item.scalar()?.text());
            let patches = items_of(root, "patches").iter();
            let patches = patches.filter_map(|patch| text_of(patch.entries(), "path"));
            let paths = items.chain(patches).map(|path| folder.join(path.trim()));
            // other resources are URLs, or in git
            resources.extend(paths.filter_map(|path| path.canonicalize().ok()));
            let images = items_of(root, "images").iter();
            names.extend(images.filter_map(replaced_name));
        }
        Some(Kustomization {
            path: input.path.clone(),
            file: folder.join(input.path.file_name()?),
            folder,
            resources,
            names,
        })
    }
}

/// The name of the images that the item `image` of the list `images` replaces.
fn replaced_name(image: &YamlNode<'_>) -> Option<String> {
    let entries = image.entries();
    let is_replaced = REPLACEMENTS
        .iter()
        .any(|key| text_of(entries, key).is_some());
    let name = text_of(entries, "name").filter(|_| is_replaced);
    name.map(str::to_owned)
}

/// The positions in `all` of the kustomizations that replace images of a file.
fn by_file(all: &[Kustomization]) -> BTreeMap<PathBuf, Vec<usize>> {
    let folders = all.iter().map(|one| (&one.folder, one));
    let by_folder: BTreeMap<&PathBuf, &Kustomization> = folders.collect();
    let mut found: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    let mut visits = 0;
    for (at, overlay) in all.iter().enumerate() {
        if overlay.names.is_empty() {
            continue;
        }
        let mut seen = BTreeSet::from([&overlay.folder]);
        let mut open: Vec<&PathBuf> = overlay.resources.iter().collect();
        while let Some(path) = open.pop() {
            visits += 1;
            if visits > MAX_VISITS {
                return found;
            }
            if !seen.insert(path) {
                continue;
            }
            let base = by_folder.get(path);
            open.extend(base.into_iter().flat_map(|base| &base.resources));
            // a base may replace images as well, which this one replaces again
            let file = base.map_or(path, |base| &base.file);
            let readers = found.entry(file.clone()).or_default();
            if readers.len() < MAX_OF_FILE {
                readers.push(at);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::audit::{Inventory, audit_tree};
    use landfall_item::lockfile::Lock;
    use landfall_model::Limits;

    #[test]
    fn images_of_bases_that_a_kustomization_replaces_are_undecided() {
        let folder = tempfile::tempdir().unwrap();
        let pods =
            "containers:\n- image: quay.io/a/b\n- image: quay.io/a/c:1\n- image: quay.io/a/d\n";
        for (name, text) in [
            ("base/pods.yaml", pods),
            ("base/kustomization.yaml", "resources: [pods.yaml]\n"),
            (
                "middle/kustomization.yaml",
                "resources: [../base, ../middle]\n\
                 images: [{name: quay.io/a/b, newTag: '3'}, {name: quay.io/a/d}]\n",
            ),
            (
                "overlay/kustomization.yml",
                "resources: [../middle, ../gone]\nimages:\n\
                 - {name: quay.io/a/b, newTag: '2'}\n\
                 - {name: quay.io/a/c, newName: quay.io/a/e, newTag: '1'}\n",
            ),
            ("other/pods.yaml", "containers: [{image: quay.io/a/b}]\n"),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let paths = [folder.path().to_path_buf()];
        let audited = audit_tree(&paths, &inventory, &Limits::default()).unwrap();
        let references = |is_missing: bool| {
            let found = audited.found.iter();
            let found = found.filter(|one| one.finding.coverage.is_missing() == is_missing);
            let mut found: Vec<&str> = found.map(|one| &*one.finding.reference).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(
            references(false),
            ["quay.io/a/b", "quay.io/a/b:3", "quay.io/a/c:1"]
        );
        assert_eq!(
            references(true),
            [
                "quay.io/a/b",
                "quay.io/a/b:2",
                "quay.io/a/d",
                "quay.io/a/e:1"
            ]
        );
    }
}
