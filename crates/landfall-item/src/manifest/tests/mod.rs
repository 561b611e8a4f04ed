//! Tests of [`load`]: the items of files and folders, and the messages for errors in them.

mod items;
mod messages;

use super::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HEAD: &str = "apiVersion: landfall/v1\nkind: Manifest\n";

/// A folder with these files; `*.yaml` gets the head of a manifest if it has none.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bare = name.ends_with(".yaml") && !text.contains("apiVersion");
        std::fs::write(
            path,
            if bare {
                format!("{HEAD}{text}")
            } else {
                (*text).into()
            },
        )
        .unwrap();
    }
    folder
}

fn load_files(folder: &Path, names: &[&str]) -> Result<MergedManifest, String> {
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    let prefix = format!("{}/", folder.display());
    load(&paths).map_err(|error| error.to_string().replace(&prefix, ""))
}

/// The requests of one manifest with this body.
fn wanted(body: &str) -> MergedManifest {
    let folder = folder(&[("m.yaml", body)]);
    load_files(folder.path(), &["m.yaml"]).unwrap_or_else(|error| panic!("{error}"))
}

/// The error message for one manifest with this body. The body begins on line 3.
fn fault(body: &str) -> String {
    let folder = folder(&[("m.yaml", body)]);
    load_files(folder.path(), &["m.yaml"]).unwrap_err()
}

/// The first line of the message, and the fix.
fn brief(body: &str) -> String {
    let fault = fault(body);
    let help = fault
        .split_once("= help: ")
        .map(|(_, help)| format!(" | {help}"));
    format!(
        "{}{}",
        fault.lines().next().unwrap(),
        help.unwrap_or_default()
    )
}

fn names(wanted: &MergedManifest) -> Vec<String> {
    let images = wanted
        .requests
        .images
        .iter()
        .map(|image| image.name.to_string());
    images
        .chain(wanted.requests.files.iter().map(|file| file.url.clone()))
        .collect()
}

fn digest(text: &str) -> landfall_model::Digest {
    landfall_model::Digest::sha256(text.as_bytes())
}
