//! The packaging of a bundle: one file or volumes, the programs next to it, and the signer.

use crate::error::BundleError;
use crate::format::files::{
    DOCUMENTS, checksums_path, file_name, number_of, partial_path, signature_path, suffixed,
};
use crate::format::volume_size::VolumeSize;
use crate::read::checksums::{has, hash_file};
use landfall_content::refuse_special;
use landfall_model::sign::Signer;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a bundle is packaged.
#[derive(Debug, Clone, Default)]
pub struct Packaging {
    /// The size of volumes; `None` writes one file.
    pub volume_size: Option<VolumeSize>,
    /// Programs to copy next to the bundle.
    pub tools: Vec<PathBuf>,
    /// Documents to write next to the bundle, each with the suffix of its name, as in
    /// `.README.txt`.
    pub documents: Vec<(String, Vec<u8>)>,
    /// Signs the bundle and the checksums next to it.
    pub signer: Option<Arc<Signer>>,
}

/// A program or document next to the bundle, under a temporary name. Dropping it removes the
/// temporary file.
pub struct CompanionFile {
    pub partial: PathBuf,
    pub path: PathBuf,
    pub sum: String,
}

impl Drop for CompanionFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

impl Packaging {
    /// Writes programs and documents next to `out`, under temporary names.
    ///
    /// # Errors
    /// If a program cannot be read, if it has the name of another program or of a file of the
    /// bundle, if a program or document cannot be written, or if it would replace a file that
    /// does not belong to the bundle.
    pub fn tools(&self, out: &Path) -> Result<Vec<CompanionFile>, BundleError> {
        let mut tools: Vec<CompanionFile> = Vec::new();
        for from in &self.tools {
            let name = from
                .file_name()
                .ok_or_else(|| tool_error(from, "the path does not name a file"))?;
            let path = out.with_file_name(name);
            if is_taken(&path, out, &tools) {
                let why = format!(
                    "the name {} is taken; give the program another name",
                    file_name(&path)
                );
                return Err(tool_error(from, why));
            }
            refuse_special(&path)
                .map_err(|error| tool_error(from, format!("{}: {error}", path.display())))?;
            refuse_foreign(&path, out, || Ok(hash_file(&path)? == hash_file(from)?))?;
            let partial = partial_path(&path);
            let mut tool = CompanionFile {
                partial,
                path,
                sum: String::new(),
            };
            tool.sum =
                copy(from, &tool.partial).map_err(|error| tool_error(from, error.to_string()))?;
            tools.push(tool);
        }
        for (ending, content) in &self.documents {
            let path = out.with_file_name(file_name(out) + ending);
            refuse_special(&path).map_err(|error| tool_error(&path, error.to_string()))?;
            refuse_foreign(&path, out, || Ok(fs::read(&path)? == *content))?;
            let partial = partial_path(&path);
            let mut tool = CompanionFile {
                partial,
                path: path.clone(),
                sum: String::new(),
            };
            let written = fs::write(&tool.partial, content).and_then(|()| hash_file(&tool.partial));
            tool.sum = written.map_err(|error| tool_error(&path, error.to_string()))?;
            tools.push(tool);
        }
        Ok(tools)
    }
}

/// Whether a program at `path` would replace a part of the bundle `out`, a document, one of the
/// earlier programs in `tools`, or a temporary file of these.
fn is_taken(path: &Path, out: &Path, tools: &[CompanionFile]) -> bool {
    let mut names = vec![out.to_path_buf(), checksums_path(out), signature_path(out)];
    names.extend(DOCUMENTS.map(|ending| suffixed(out, ending)));
    names.extend(tools.iter().map(|tool| tool.path.clone()));
    let partial = partial_path(path);
    let is_volume = |base: &Path| number_of(base, path).is_some();
    is_volume(out)
        || is_volume(&partial_path(out))
        || names
            .iter()
            .any(|name| name == path || *name == partial || partial_path(name) == path)
}

/// Refuses to replace a file next to the bundle that does not belong to it, unless `is_same`
/// returns that the file has the new content already. The checksums of a bundle list its files.
fn refuse_foreign(
    path: &Path,
    out: &Path,
    is_same: impl FnOnce() -> io::Result<bool>,
) -> Result<(), BundleError> {
    if !path.exists() || has(out, path) || is_same().unwrap_or(false) {
        return Ok(());
    }
    let why = "a file with this name and other content exists that does not belong to this bundle; \
               move it away, or pack into another folder";
    Err(tool_error(path, why))
}

fn tool_error(path: &Path, why: impl Into<String>) -> BundleError {
    BundleError::Tool {
        path: path.into(),
        why: why.into(),
    }
}

/// Copies a program and returns its SHA-256 in hex digits.
fn copy(from: &Path, to: &Path) -> io::Result<String> {
    let mut source = File::open(from)?;
    if !source.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::create(to)?;
    io::copy(&mut source, &mut file)?;
    // a copied program must be executable on the other side, whatever the umask is
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    hash_file(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_have_the_name_of_another_file_of_the_bundle() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out/B");
        fs::create_dir_all(dir.path().join("out")).unwrap();
        let packaging = |names: &[&str]| Packaging {
            tools: names
                .iter()
                .map(|name| {
                    let path = dir.path().join(name);
                    fs::write(&path, name).unwrap();
                    path
                })
                .collect(),
            documents: vec![(".README.txt".into(), b"text".to_vec())],
            ..Packaging::default()
        };
        let taken: [&[&str]; 13] = [
            &["B"],
            &["B.partial"],
            &["B.0001"],
            &["B.partial.0001"],
            &["B.sha256sums"],
            &["B.sha256sums.partial"],
            &["B.sha256sums.sig"],
            &["B.README.txt"],
            &["B.README.txt.partial"],
            &["B.man.tar"],
            &["tool", "tool"],
            &["tool", "tool.partial"],
            &["tool.partial", "tool"],
        ];
        for names in taken {
            let Err(error) = packaging(names).tools(&out) else {
                panic!("{names:?} was accepted")
            };
            let last = names.last().unwrap();
            let expected = format!("the name {last} is taken; give the program another name");
            assert!(
                matches!(&error, BundleError::Tool { why, .. } if why.starts_with(&expected)),
                "{names:?}: {error:?}"
            );
            assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 0);
        }
        let free = ["tool", "other", "B.README", "B.1", "README.txt"];
        assert_eq!(packaging(&free).tools(&out).unwrap().len(), free.len() + 1);
        // a file of the user is neither replaced nor in the way if it is the program itself
        let beside = out.with_file_name("tool");
        for (content, is_refused) in [("mine", true), ("tool", false)] {
            fs::write(&beside, content).unwrap();
            let refused = packaging(&["tool"]).tools(&out).is_err();
            assert_eq!(refused, is_refused, "{content}");
            assert_eq!(fs::read_to_string(&beside).unwrap(), content);
        }
    }
}
