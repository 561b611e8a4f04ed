//! Compresses the pages and schemas of `docs/` for `landfall help` and `landfall schema`: as plain
//! text they would be 3 % of the program.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=docs");
    println!("cargo::rerun-if-changed=build.rs");
    let output = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let archive = File::create(Path::new(&output).join("pages.tar.gz"))?;
    let mut archive = tar::Builder::new(GzEncoder::new(archive, Compression::best()));
    // The same sources must give the same program: no times, no owners, sorted paths.
    archive.mode(tar::HeaderMode::Deterministic);
    for file in included_files(Path::new("docs"))? {
        archive.append_path(file)?;
    }
    archive.into_inner()?.finish()?;
    Ok(())
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
