//! Lists the pages of `docs/`, and compresses them and the schemas, for `landfall help` and
//! `landfall schema`: as plain text they would be 3 % of the program. The debug program is linked
//! at a fixed address.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=docs");
    println!("cargo::rerun-if-changed=build.rs");
    let output = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let files = included_files(Path::new("docs"))?;
    let pages = format!("&{:?}\n", pages(&files));
    fs::write(Path::new(&output).join("pages.rs"), pages)?;
    let archive = File::create(Path::new(&output).join("pages.tar.gz"))?;
    let mut archive = tar::Builder::new(GzEncoder::new(archive, Compression::best()));
    // The same sources must give the same program: no times, no owners, sorted paths.
    archive.mode(tar::HeaderMode::Deterministic);
    for file in files {
        archive.append_path(file)?;
    }
    archive.into_inner()?.finish()?;
    // The tests start the debug program thousands of times, and it has 300,000 relocations.
    let setting = |name| std::env::var(name).unwrap_or_default();
    if setting("PROFILE") == "debug"
        && setting("CARGO_CFG_TARGET_OS") == "linux"
        && setting("CARGO_CFG_TARGET_ENV") == "gnu"
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    Ok(())
}

/// The name of each page, which is that of its file, and its path below `docs/`. If a page of a
/// platform has the name of another page, its name begins with `platform-`.
fn pages(files: &BTreeSet<PathBuf>) -> Vec<(String, &str)> {
    let is_page =
        |path: &&str| path.ends_with(".md") && !["README.md", "SUMMARY.md"].contains(path);
    let paths = files
        .iter()
        .filter_map(|file| file.strip_prefix("docs").ok()?.to_str());
    let mut pages = BTreeMap::new();
    // the pages of platforms are the last: their folder is deeper
    let (platforms, others): (Vec<&str>, _) = paths
        .filter(is_page)
        .partition(|path| path.contains("/platforms/"));
    for path in others.into_iter().chain(platforms) {
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or(path)
            .trim_end_matches(".md");
        let name = if path.contains("/platforms/") && pages.contains_key(name) {
            format!("platform-{name}")
        } else {
            name.to_owned()
        };
        let other = pages.insert(name, path);
        assert!(other.is_none(), "docs/{path}: another page has this name");
    }
    pages.into_iter().collect()
}

/// The Markdown and JSON files below `folder`.
fn included_files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(included_files(&path)?);
        } else if path
            .extension()
            .is_some_and(|ending| ending == "md" || ending == "json")
        {
            files.insert(path);
        }
    }
    Ok(files)
}
