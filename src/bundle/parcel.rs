//! How a bundle stands in its folder when it is done: as one file or as volumes, with programs and
//! checksums beside it, signed or not; and how all of it gets its names.

use super::out::hash;
use super::sums::{self, signature_path, sums_path, with};
use super::volumes::{self, VolumeSize, folder, name};
use super::{Error, NAMESPACE};
use crate::sign::Signer;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a bundle is to be written.
#[derive(Debug, Clone, Default)]
pub struct Parcel {
    /// How long its volumes may be; one file where this is left out.
    pub volume_size: Option<VolumeSize>,
    /// Programs that are put beside it.
    pub tools: Vec<PathBuf>,
    /// Who signs it, and the checksums beside it.
    pub signer: Option<Arc<Signer>>,
}

/// A program on its way beside the bundle; its copy is gone when this is dropped before it has its name.
pub(super) struct Tool {
    partial: PathBuf,
    path: PathBuf,
    sum: String,
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

impl Parcel {
    /// Copies the programs beside `out`, under names of their own.
    ///
    /// # Errors
    /// When one cannot be read or written, or its name is taken.
    pub(super) fn tools(&self, out: &Path) -> Result<Vec<Tool>, Error> {
        let mut tools: Vec<Tool> = Vec::new();
        for from in &self.tools {
            let failed = |why: String| Error::Tool { path: from.clone(), why };
            let called = from.file_name().ok_or_else(|| failed("it is no file".into()))?;
            let path = out.with_file_name(called);
            let is_bundles = path.file_name() == out.file_name()
                || volumes::number_of(out, &path).is_some()
                || [sums_path(out), signature_path(out), with(out, ".partial")].contains(&path);
            if is_bundles || tools.iter().any(|tool| tool.path == path) {
                let called = name(&path);
                return Err(failed(format!("the name {called} is taken; give it another one")));
            }
            let partial = with(&path, ".partial");
            let mut tool = Tool { partial, path, sum: String::new() };
            tool.sum = copy(from, &tool.partial).map_err(|error| failed(error.to_string()))?;
            tools.push(tool);
        }
        Ok(tools)
    }
}

/// Copies a program, and tells the SHA-256 of what was written.
fn copy(from: &Path, to: &Path) -> io::Result<String> {
    let mut source = File::open(from)?;
    if !source.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut file = File::create(to)?;
    io::copy(&mut source, &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    hash(to)
}

/// Gives everything its name: what was written as `partial`, in volumes with these checksums or whole, and
/// the programs. Gives the files of the bundle, and those beside it.
///
/// Volumes of an older bundle go first, then the new ones come, and the first volume last. So whenever a
/// first volume stands there, all the others are those of the same bundle.
pub(super) fn publish(
    partial: &Path,
    out: &Path,
    volume_sums: &[String],
    tools: &[Tool],
    signer: Option<&Signer>,
) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let sync = || File::open(folder(out)).and_then(|folder| folder.sync_all());
    let is_split = !volume_sums.is_empty();
    let files: Vec<(PathBuf, String)> = if is_split {
        (1..).map(|number| volumes::path(out, number)).zip(volume_sums.iter().cloned()).collect()
    } else if tools.is_empty() {
        vec![(out.into(), String::new())]
    } else {
        vec![(out.into(), hash(partial)?)]
    };
    let mut beside: Vec<_> = tools.iter().map(|tool| (tool.path.clone(), tool.sum.clone())).collect();
    let has_sums = is_split || !tools.is_empty();
    let sums = has_sums.then(|| sums::text(files.iter().chain(&beside)));
    let signing = sums.as_ref().zip(signer).map(|(text, signer)| signer.sign(NAMESPACE, text));
    // while nothing has its name yet
    let signature = signing.transpose().map_err(io::Error::other)?;
    // those of an older bundle would call this one damaged
    if has_sums || sums::read(out).iter().any(|(path, _)| path.file_name() == out.file_name()) {
        sums::remove(out)?;
    }
    if is_split {
        volumes::remove_all(out)?;
        sync()?;
        for number in (2..=files.len()).rev() {
            fs::rename(volumes::path(partial, number), volumes::path(out, number))?;
        }
    } else {
        fs::rename(partial, out)?;
    }
    for tool in tools {
        fs::rename(&tool.partial, &tool.path)?;
    }
    for (path, text) in [(sums_path(out), sums), (signature_path(out), signature.map(String::into_bytes))] {
        if let Some(text) = text {
            sums::write(&path, &text)?;
            beside.push((path, String::new()));
        }
    }
    if is_split {
        sync()?;
        fs::rename(volumes::path(partial, 1), volumes::path(out, 1))?;
        fs::remove_file(partial)?;
    }
    sync()?;
    let paths = |files: Vec<(PathBuf, String)>| files.into_iter().map(|(path, _)| path).collect();
    Ok((paths(files), paths(beside)))
}
