//! Exports providers as a mirror: the tree of the provider network mirror protocol, which is also a
//! filesystem mirror.

use super::export_charts::may_exist;
use super::export_files::write_all;
use super::{ExportFile, ExportMode, claim_files};
use landfall_content::{BlobRead, MemoryBlobs};
use landfall_item::lockfile::Lock;
use landfall_item::{MirrorFile, ProviderMirror};
use landfall_model::report::{EntryKind, Progress, RunReport};
use landfall_model::{Descriptor, Failure, media_type};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes every provider of `lock` from `blobs` to `dir`: packages and the JSON documents that list
/// them. Documents that exist keep their other versions and platforms, unless their files are gone.
/// Files with the right content are left unchanged.
///
/// # Errors
/// Before anything is written: when a file of others exists. Later failures are in the report.
pub fn export_providers(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    mode: ExportMode,
    progress: &dyn Progress,
) -> Result<RunReport, Failure> {
    let mut mirror = ProviderMirror::default();
    for provider in &lock.providers {
        // no warnings to report: a lock has each name once, and each name has its own paths
        mirror.add(provider);
    }
    let mut documents = MemoryBlobs::default();
    let mut packages = Vec::new();
    let mut indexes = Vec::new();
    for (path, file) in mirror.files() {
        match file {
            MirrorFile::Document(text) => {
                let text = with_present(text, &dir.join(&path));
                indexes.push((path, documents.put(text, media_type::OCTETS)));
            }
            MirrorFile::Package { digest, size } => {
                packages.push((path, Descriptor::new(digest, size, media_type::ZIP_PACKAGE)));
            }
        }
    }
    // after the packages: a document must not name files that are not there yet
    let packages = export_files(EntryKind::Provider, &packages);
    let indexes = export_files(EntryKind::Sidecar, &indexes);
    claim_files(dir, packages.iter().chain(&indexes), mode, is_document)?;
    let mut report = write_all(packages, blobs, dir, mode.dry_run, progress);
    let written = write_all(indexes, &documents, dir, mode.dry_run, progress);
    report.append(written);
    Ok(report)
}

/// Whether the file at `path` is a document of a mirror, whose entries [`with_present`] keeps.
fn is_document(path: &Path) -> bool {
    read_document(path).is_some_and(|document| {
        ["versions", "archives"]
            .iter()
            .any(|key| document[key].is_object())
    })
}

fn read_document(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// `text`, a document of the mirror, with the versions and platforms that the document at `path`
/// lists in addition: other exports may have written them.
fn with_present(text: String, path: &Path) -> String {
    let new = serde_json::from_str::<Value>(&text);
    let (Some(present), Ok(mut document)) = (read_document(path), new) else {
        return text;
    };
    let folder = path.parent().unwrap_or(path);
    let mut is_longer = false;
    for key in ["versions", "archives"] {
        let (Some(listed), Some(others)) = (
            document.get_mut(key).and_then(Value::as_object_mut),
            present[key].as_object(),
        ) else {
            continue;
        };
        for (name, entry) in others {
            // a version has a document of its own, and a platform has the URL of a package
            let url = entry["url"].as_str();
            let file = url.map_or_else(|| format!("{name}.json"), str::to_owned);
            if may_exist(&file, folder) && !listed.contains_key(name) {
                listed.insert(name.clone(), entry.clone());
                is_longer = true;
            }
        }
    }
    if is_longer {
        format!("{document:#}\n")
    } else {
        text
    }
}

fn export_files(kind: EntryKind, blobs: &[(String, Descriptor)]) -> Vec<ExportFile<'_>> {
    let files = blobs.iter();
    files
        .map(|(path, content)| ExportFile::new(kind, path, content, path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_keep_the_versions_and_platforms_of_other_exports() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.json");
        let merged = |new: &Value, present: &Value| -> Value {
            fs::write(&path, present.to_string()).unwrap();
            serde_json::from_str(&with_present(format!("{new:#}\n"), &path)).unwrap()
        };
        for name in ["1.0.0.json", "a.zip"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let new = json!({"versions": {"2.0.0": {}}});
        assert_eq!(
            merged(&new, &json!({"versions": {"1.0.0": {}, "0.9.0": {}}})),
            json!({"versions": {"2.0.0": {}, "1.0.0": {}}})
        );
        let new = json!({"archives": {"linux_amd64": {"url": "new.zip"}}});
        let present = json!({"archives": {
            "linux_amd64": {"url": "a.zip"},
            "linux_arm64": {"url": "a.zip"},
            "darwin_arm64": {"url": "gone.zip"},
            "darwin_amd64": {"url": "/rooted.zip"},
        }});
        let platforms = json!({
            "linux_amd64": {"url": "new.zip"},
            "linux_arm64": {"url": "a.zip"},
            "darwin_amd64": {"url": "/rooted.zip"},
        });
        assert_eq!(merged(&new, &present), json!({"archives": platforms}));
        for other in [json!([1]), json!({"archives": {}})] {
            assert_eq!(merged(&new, &other), new);
        }
    }
}
