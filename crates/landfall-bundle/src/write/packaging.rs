//! The packaging of a bundle: one file or volumes, the programs beside it, and who signs it.

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

/// How a bundle is to be written.
#[derive(Debug, Clone, Default)]
pub struct Packaging {
    /// The size of its volumes; without it, the bundle is one file.
    pub volume_size: Option<VolumeSize>,
    /// Programs to put beside it.
    pub tools: Vec<PathBuf>,
    /// Documents to put beside it, each with what its name adds to that of the bundle, as in
    /// `.README.txt`.
    pub documents: Vec<(String, Vec<u8>)>,
    /// Who signs it, and the checksums beside it.
    pub signer: Option<Arc<Signer>>,
}

/// The unnamed copy of a program beside the bundle. It is removed when this is dropped before it
/// has its name.
pub struct Tool {
    pub partial: PathBuf,
    pub path: PathBuf,
    pub sum: String,
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

impl Packaging {
    /// Copies the programs beside `out`, under unfinished names.
    ///
    /// # Errors
    /// When one cannot be read or written, or its name is taken.
    pub fn tools(&self, out: &Path) -> Result<Vec<Tool>, BundleError> {
        let mut tools: Vec<Tool> = Vec::new();
        for from in &self.tools {
            let failed = |why: String| BundleError::Tool {
                path: from.clone(),
                why,
            };
            let called = from
                .file_name()
                .ok_or_else(|| failed("it is no file".into()))?;
            let path = out.with_file_name(called);
            let is_bundles = path.file_name() == out.file_name()
                || number_of(out, &path).is_some()
                || [checksums_path(out), signature_path(out), partial_path(out)].contains(&path);
            if is_bundles || tools.iter().any(|tool| tool.path == path) {
                let called = file_name(&path);
                return Err(failed(format!(
                    "the name {called} is taken; give it another one"
                )));
            }
            refuse_special(&path)
                .map_err(|error| failed(format!("{}: {error}", path.display())))?;
            let partial = partial_path(&path);
            let mut tool = Tool {
                partial,
                path,
                sum: String::new(),
            };
            tool.sum = copy(from, &tool.partial).map_err(|error| failed(error.to_string()))?;
            tools.push(tool);
        }
        for (ending, content) in &self.documents {
            let path = out.with_file_name(file_name(out) + ending);
            let failed = |why: String| BundleError::Tool {
                path: path.clone(),
                why,
            };
            refuse_special(&path).map_err(|error| failed(error.to_string()))?;
            let is_same = || fs::read(&path).is_ok_and(|old| old == *content);
            if path.exists() && !is_same() && !has(out, &path) {
                return Err(failed(
                    "a file of this name is there that no pack wrote; move it away".into(),
                ));
            }
            let partial = partial_path(&path);
            let mut tool = Tool {
                partial,
                path: path.clone(),
                sum: String::new(),
            };
            let written = fs::write(&tool.partial, content).and_then(|()| hash_file(&tool.partial));
            tool.sum = written.map_err(|error| failed(error.to_string()))?;
            tools.push(tool);
        }
        Ok(tools)
    }
}

/// Copies a program; returns the SHA-256 of what was written.
fn copy(from: &Path, to: &Path) -> io::Result<String> {
    let mut source = File::open(from)?;
    if !source.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut file = File::create(to)?;
    io::copy(&mut source, &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    hash_file(to)
}
