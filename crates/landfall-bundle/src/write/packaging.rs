//! The packaging of a bundle: one file or volumes, the programs next to it, and the signer.

use crate::error::BundleError;
use crate::format::files::{checksums_path, file_name, number_of, partial_path, signature_path};
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

/// A program or document next to the bundle that does not have its final name yet. Dropping it
/// removes the temporary file.
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
    /// If a program cannot be read, its name is that of another program or a part of the bundle, or
    /// a program or document cannot be written. Also if a document would replace a file that
    /// landfall did not write.
    pub fn tools(&self, out: &Path) -> Result<Vec<CompanionFile>, BundleError> {
        let mut tools: Vec<CompanionFile> = Vec::new();
        for from in &self.tools {
            let name = from
                .file_name()
                .ok_or_else(|| tool_error(from, "the path does not name a file"))?;
            let path = out.with_file_name(name);
            let is_bundles = path.file_name() == out.file_name()
                || number_of(out, &path).is_some()
                || [checksums_path(out), signature_path(out), partial_path(out)].contains(&path);
            // a program must not replace a part of the bundle, nor another program
            if is_bundles || tools.iter().any(|tool| tool.path == path) {
                let why = format!(
                    "the name {} is taken; give it another one",
                    file_name(&path)
                );
                return Err(tool_error(from, why));
            }
            refuse_special(&path)
                .map_err(|error| tool_error(from, format!("{}: {error}", path.display())))?;
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
            // a document that an earlier pack wrote is listed in the checksums
            if path.exists()
                && !fs::read(&path).is_ok_and(|old| old == *content)
                && !has(out, &path)
            {
                let why =
                    "a file with this name exists that `landfall pack` did not write; move it away";
                return Err(tool_error(&path, why));
            }
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
