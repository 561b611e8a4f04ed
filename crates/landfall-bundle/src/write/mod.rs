//! Writing: packs a bundle from a store, in one file or in volumes, rebuilds a single volume, and
//! publishes the files.

mod add_signature;
pub(crate) mod entry_writer;
pub(crate) mod publish;
mod rebuild_volume;
pub(crate) mod volume_writer;

use self::entry_writer::{EntryWriter, IndexBuilder};
use self::publish::{
    claim, clear_work, publish, refuse_foreign_sums, refuse_foreign_volumes, remove_volumes, room,
    write_synced,
};
use self::volume_writer::VolumeWriter;
use crate::error::BundleError;
use crate::format::contents::PackOptions;
use crate::format::names::{
    DOCUMENTS, FRONT_LEN, MAX_VOLUMES, NAMESPACE, VolumeSize, checksums_path, file_name, number_of,
    partial_path, signature_path, suffixed,
};
use crate::pipeline;
use crate::plan::PackPlan;
use crate::read::volume_set::{has, hash_file};
use landfall_content::{BlobRead, refuse_special};
use landfall_model::report::Progress;
use landfall_model::sign::Signer;
use landfall_model::{Digest, Failure, Limits};
use landfall_os::{Blocking, set_file_mode};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{fmt, thread};

pub use self::add_signature::add_signature;
pub use self::publish::check_bundle_path;
pub use self::rebuild_volume::write_volume;

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBundle {
    /// The bundle digest: SHA-256 of the contents index.
    pub digest: Digest,
    /// The size in bytes, of all volumes together.
    pub bytes: u64,
    /// The files of the bundle: one file, or its volumes.
    pub files: Vec<PathBuf>,
    /// The files next to the bundle: programs and documents, then the checksums and the signature
    /// over them.
    pub beside: Vec<PathBuf>,
    /// Volumes of an older bundle with this name that were removed without being replaced.
    pub removed: Vec<PathBuf>,
}

impl PackedBundle {
    /// A bundle in one file, with no other files.
    pub(crate) fn one_file(digest: &Digest, bytes: u64, out: &Path) -> PackedBundle {
        PackedBundle {
            digest: digest.clone(),
            bytes,
            files: vec![out.into()],
            beside: Vec::new(),
            removed: Vec::new(),
        }
    }
}

/// Writes the bundle, with volumes, programs and signatures as `packaging` says.
///
/// # Errors
/// If content is missing or damaged, if the bundle cannot be written or signed, if the volumes are
/// too small, or if a program cannot be copied.
pub fn write_packaged(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    packaging: &Packaging,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let index = IndexBuilder::new(plan, options);
    // before an unfinished `pull --bundle` is discarded
    index.check_size(out, &Limits::default())?;
    if packaging.volume_size.is_some() || !packaging.tools.is_empty() {
        refuse_foreign_sums(out)?;
    }
    let (partial, file) = claim(out)?;
    // the lock on this file is held until the end
    let file = Arc::new(file);
    let failed = BundleError::write(out);
    // the work folder of an unfinished `pull --bundle` describes the old content of the file
    file.set_len(0)
        .and_then(|()| clear_work(&partial))
        .map_err(failed)?;
    let write = |flush| {
        // volumes are written next to the file, which then only serves as a lock
        let mut out = match packaging.volume_size {
            None => VolumeWriter::file(file.clone(), 0, Some(flush)),
            Some(size) => VolumeWriter::volumes(&partial, size.0, flush).map_err(failed)?,
        };
        out.expect(plan.stored_bytes());
        let digest = write_all(
            plan,
            blobs,
            index,
            &partial,
            &mut out,
            packaging.signer.as_deref(),
            progress,
        )?;
        // the flusher ends when its channel is closed
        out.close();
        match (out.smallest(), packaging.volume_size) {
            (Some(smallest), Some(VolumeSize(size))) => Err(Failure::usage(format!(
                "volumes of {size} bytes are too small: a bundle has at most {MAX_VOLUMES} \
                     volumes, and no frame is split; use --volume-size {smallest} or more"
            ))
            .into()),
            _ => Ok((digest, out)),
        }
    };
    // a killed run may have left volumes; nobody writes them, because this run holds the lock
    let result = remove_volumes(&partial).map_err(failed).and_then(|()| {
        // after the removal of old volumes, whose space counts as free
        room(plan.needed_bytes(), out)?;
        let tools = packaging.tools(out)?;
        progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
        let written = flushing(write);
        progress.end();
        written.and_then(|((digest, written), flushed)| {
            let bytes = written.end;
            flushed.and_then(|()| written.sync()).map_err(failed)?;
            let sums = written.sums();
            refuse_foreign_volumes(out, sums.len())?;
            let (files, beside, removed) =
                publish(&partial, out, &sums, &tools, packaging.signer.as_deref())
                    .map_err(failed)?;
            Ok(PackedBundle {
                digest,
                bytes,
                files,
                beside,
                removed,
            })
        })
    });
    if result.is_err() {
        // the first error is reported; files that cannot be removed are overwritten by the next run
        let _ = remove_volumes(&partial);
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Writes the bundle in one pass to `out`, which is a pipe or a file. A file is written from its
/// current position on. `signer` signs the bundle.
///
/// # Errors
/// If content is missing or damaged, or the bundle cannot be written or signed.
pub fn write_to(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: File,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let mut out = Blocking(out);
    let target = StreamTarget {
        name: Path::new("-"),
        out: &mut out,
    };
    write_stream(plan, blobs, target, options, signer, progress)
}

/// A stream that a bundle is written to, such as an upload.
pub struct StreamTarget<'a> {
    /// The name of the bundle, for messages.
    pub name: &'a Path,
    /// Receives the bytes in order.
    pub out: &'a mut (dyn Write + Send),
}

/// Like [`write_to`], to any stream.
///
/// # Errors
/// Like [`write_to`].
pub fn write_stream(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    target: StreamTarget<'_>,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let StreamTarget { name, out } = target;
    let index = IndexBuilder::new(plan, options);
    index.check_size(name, &Limits::default())?;
    let mut out = VolumeWriter::stream(out);
    progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
    let digest = write_all(plan, blobs, index, name, &mut out, signer, progress);
    progress.end();
    Ok(PackedBundle {
        digest: digest?,
        bytes: out.end,
        files: Vec::new(),
        beside: Vec::new(),
        removed: Vec::new(),
    })
}

/// Writes the whole bundle of `plan` to `out`; `path` is for messages. Returns the bundle digest.
fn write_all(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    mut index: IndexBuilder,
    path: &Path,
    out: &mut VolumeWriter,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<Digest, BundleError> {
    let level = index.contents.options.level;
    let entries = EntryWriter {
        plan,
        blobs,
        level,
        depth: pipeline::DEPTH,
        path,
        progress,
    };
    let mut counted = BTreeSet::new();
    entries.append(0..plan.entries.len(), out, |entry_index, offset, frames| {
        index.record(entry_index, offset, &frames);
        let item = &*plan.entries[entry_index].item;
        let next = plan.entries.get(entry_index + 1);
        // all stored blobs precede all compressed ones, and each kind is in the order of the items
        // that first need them. An item is counted after its first run of blobs, even if its
        // compressed blobs follow later
        if entry_index >= FRONT_LEN
            && next.is_none_or(|next| next.item != item)
            && counted.insert(item)
        {
            progress.item(item);
        }
        Ok(())
    })?;
    let digest = index.finish(out, path, signer)?;
    // the items that were not counted, because earlier items need all their blobs as well
    let rest = plan
        .items
        .iter()
        .filter(|item| !counted.contains(&*item.name));
    rest.for_each(|item| progress.item(&item.name));
    Ok(digest)
}

/// Runs `work` while another thread syncs the files that `work` sends through the channel.
/// Therefore the progress is realistic on a slow disk, and little remains to be synced at the end.
fn flushing<T>(
    work: impl FnOnce(SyncSender<Arc<File>>) -> Result<T, BundleError>,
) -> Result<(T, io::Result<()>), BundleError> {
    thread::scope(|scope| {
        // at most one file waits to be synced, so that on a slow disk the writer slows down and
        // does not fill the page cache
        let (flush, files) = sync_channel::<Arc<File>>(1);
        let flusher = scope.spawn(move || files.into_iter().try_for_each(|file| file.sync_data()));
        let result = work(flush);
        let flushed = flusher
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, flushed))
    })
}

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

impl CompanionFile {
    /// The file at `path`. `write` writes it under its temporary name, and returns its SHA-256 in
    /// hex digits.
    fn write(
        path: PathBuf,
        write: impl FnOnce(&Path) -> io::Result<String>,
    ) -> io::Result<CompanionFile> {
        let mut file = CompanionFile {
            partial: partial_path(&path),
            path,
            sum: String::new(),
        };
        file.sum = write(&file.partial)?;
        Ok(file)
    }
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
            let written = CompanionFile::write(path, |partial| copy(from, partial));
            tools.push(written.map_err(|error| tool_error(from, error))?);
        }
        for (ending, content) in &self.documents {
            let path = out.with_file_name(file_name(out) + ending);
            refuse_special(&path).map_err(|error| tool_error(&path, error))?;
            refuse_foreign(&path, out, || Ok(fs::read(&path)? == *content))?;
            let written = CompanionFile::write(path.clone(), |partial| {
                write_synced(partial, content)?;
                hash_file(partial)
            });
            tools.push(written.map_err(|error| tool_error(&path, error))?);
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

/// The failure to put a program or document next to the bundle.
fn tool_error(path: &Path, why: impl fmt::Display) -> BundleError {
    let path = path.display();
    Failure::usage(format!("cannot write {path} next to the bundle: {why}")).into()
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
    set_file_mode(&file, 0o755)?;
    file.sync_all()?;
    hash_file(to)
}

// Signs a bundle: creates signatures over its contents index.

/// Signs the contents index of the bundle at `path`. Returns the armored signature.
pub(crate) fn sign_index(
    signer: &Signer,
    index: &[u8],
    path: &Path,
) -> Result<String, BundleError> {
    let text = signer.sign(NAMESPACE, index);
    text.map_err(BundleError::sign(path))
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
                error
                    .to_string()
                    .contains(&format!(" next to the bundle: {expected}")),
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
