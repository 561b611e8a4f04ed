//! `landfall render PLATFORM`: each platform's files, compared byte for byte with
//! `tests/data/platforms/`. Run with `LANDFALL_WRITE_GOLDEN=1` to write the expected files again,
//! and review the difference.

mod accounts;
mod both_sites;
mod common;
mod containerd;
mod giantswarm;
mod into_objects;
mod k0s;
mod kubeadm_lists;
mod kubeone;
mod kubermatic;
mod kubernetes;
mod kubespray;
mod merged;
mod nerdctl;
mod node;
mod node_machine;
mod nodes_page;
mod packages;
mod pages;
mod published;
mod scheme;
mod seeds;
mod signature_policy;
mod systemd;
mod talos;
mod trivy;

pub use published::assert_published;

use crate::support::Place;
use crate::support::images::lock_of;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The text of a certificate file. It is not a real certificate: no command decodes it.
pub const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n";

/// A lock of these images.
pub fn lock(images: &[&str]) -> String {
    let mut images = images.to_vec();
    images.sort_unstable();
    lock_of(&images)
}

/// A folder with `site.yaml` (given without its first two lines) and a lock of `images`.
pub fn place(site: &str, images: &[&str]) -> Place {
    let place = Place::new();
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
    );
    place.write("landfall.lock", lock(images));
    place
}

/// Asserts that `landfall render ARGS --site site.yaml -o out` in `place` exits with `exit` and
/// writes nothing. Returns its stderr.
pub fn refused(place: &Place, exit: i32, args: &[&str]) -> String {
    let args = [&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat();
    let message = place.stderr(exit, &args);
    assert!(!place.path("out").exists(), "{args:?}: {message}");
    message
}

/// Runs `landfall render ARGS --site site.yaml -o out` in `place`, and compares its files and its
/// output with `tests/data/platforms/NAME/`. The output contains the modes of the files.
pub fn golden(place: &Place, name: &str, args: &[&str]) {
    let printed = place.ok(&[&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat());
    let mut made = files(&place.path("out"));
    made.insert("printed.txt".into(), printed);
    compare(&made, name);
}

/// Compares the written files with `tests/data/platforms/NAME/`.
pub fn compare(made: &BTreeMap<PathBuf, String>, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/platforms")
        .join(name);
    if std::env::var_os("LANDFALL_WRITE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(&folder);
        for (path, text) in made {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    let expected = files(&folder);
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(made), names(&expected), "the files of {name}");
    for (path, text) in made {
        assert_eq!(*text, expected[path], "{name}/{}", path.display());
    }
}

/// Like [`files`], without the first line of each file.
pub fn files_without_header(folder: &Path) -> BTreeMap<PathBuf, String> {
    files(folder)
        .into_iter()
        .map(|(path, text)| (path, text.split_once('\n').unwrap().1.to_owned()))
        .collect()
}

/// The text of every file below `folder`, by the relative path of the file. The list of the files
/// that landfall wrote is left out.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                // the link of an enabled unit leads to a path on the machine
                false if !path.exists() => {}
                false if path.ends_with(".landfall-files") => {}
                false => {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
                }
            }
        }
    }
    found
}

/// The entries of a NO_PROXY list, without leading dots. They are a set, because their order does
/// not matter.
pub fn entries(list: &str) -> BTreeSet<String> {
    list.split(',')
        .map(|entry| entry.trim().trim_start_matches('.').to_owned())
        .collect()
}

/// The values of `Environment=` lines, by their names.
pub fn environment(unit: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let pair = line.strip_prefix("Environment=\"")?.strip_suffix('"')?;
        pair.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    unit.lines().filter_map(line).collect()
}
