//! Exports files to the paths of their URLs, and package repositories.

use super::unpack::{are_members_unpacked, unpack_members};
use super::{ExportFailure, ExportFile, ExportMode, claim_files, export_paths};
use landfall_content::{
    BlobRead, ContentError, CopyError, MemoryBlobs, copy_checked, if_exists, parent_folder,
    private_file_in, publish_file, refuse_special,
};
use landfall_item::lockfile::Lock;
use landfall_item::{GeneratedFile, LockedItem, LockedPackageSet};
use landfall_model::report::{ItemStatus, Progress, ReportItem, RunReport};
use landfall_model::{Failure, has_digest, sum_sizes};
use landfall_os::{hard_links, has_mode, set_file_mode};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes to `dir` every file of `lock` that has a URL, at the paths of all its URLs: plain files
/// with their sidecars, packages, charts and providers. `blobs` has the content. Files with the
/// right content are left unchanged.
///
/// # Errors
/// Before anything is written: when a URL cannot be a path, two URLs with different content have
/// the same path, or a file of others exists. Later failures are in the report.
pub fn export_files(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    mode: ExportMode,
    progress: &dyn Progress,
) -> Result<RunReport, Failure> {
    let files = export_paths(lock.items().flat_map(LockedItem::files))?;
    claim_files(dir, &files, mode, |_| false)?;
    Ok(write_all(files, blobs, dir, mode.dry_run, progress))
}

/// Writes the package repositories of `system` (`apt:` or `yum:`) like [`export_files`]. `made` is
/// generated metadata, which sets with `index: trimmed` have instead of their signed metadata.
///
/// # Errors
/// As [`export_files`].
pub fn export_packages(
    system: &str,
    lock: &Lock,
    made: &[GeneratedFile],
    blobs: &dyn BlobRead,
    dir: &Path,
    mode: ExportMode,
    progress: &dyn Progress,
) -> Result<RunReport, Failure> {
    let carried = lock
        .packages
        .iter()
        .filter(|set| set.name.starts_with(system))
        .flat_map(LockedPackageSet::files);
    // checked together: generated files must not collide with files of the lock either
    let files = export_paths(carried.chain(made.iter().map(GeneratedFile::form)))?;
    claim_files(dir, &files, mode, |_| false)?;
    let made_content = MemoryBlobs(
        made.iter()
            .map(|file| (file.digest.clone(), file.bytes.clone().into()))
            .collect(),
    );
    // generated metadata is in memory, not in the bundle
    let (made, carried): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| made_content.0.contains_key(file.file.digest));
    let mut report = write_all(carried, blobs, dir, mode.dry_run, progress);
    report.append(write_all(made, &made_content, dir, mode.dry_run, progress));
    Ok(report)
}

/// Writes `files`, or only checks them if `dry_run` is set, and reports each.
pub(super) fn write_all(
    files: Vec<ExportFile<'_>>,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry_run: bool,
    progress: &dyn Progress,
) -> RunReport {
    let bytes = sum_sizes(files.iter().map(|item| item.file.size));
    progress.begin("export", files.len() as u64, bytes);
    let mut report = RunReport::default();
    for item in files {
        let exported = if dry_run {
            check_file_and_members(&item, blobs, dir).map(|status| (status, 0))
        } else {
            write_and_unpack(&item, blobs, dir)
        };
        let (status, reason) = match exported {
            // only a dry run skips files
            Ok((ItemStatus::Skipped, _)) => {
                (ItemStatus::Skipped, Some("would be written".to_owned()))
            }
            Ok((status, bytes)) => {
                report.bytes_transferred += bytes;
                (status, None)
            }
            Err(ExportFailure { status, reason }) => (status, Some(reason)),
        };
        progress.bytes(item.file.size);
        progress.item(item.file.name);
        report.items.push(ReportItem {
            digest: Some(item.file.digest.clone()),
            bytes: Some(item.file.size),
            ..ReportItem::new(item.file.kind, item.file.name.to_owned(), status, reason)
        });
    }
    progress.end();
    report
}

/// Writes one file and extracts the members that the lock requests. Returns the status and the
/// number of bytes written.
fn write_and_unpack(
    item: &ExportFile<'_>,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<(ItemStatus, u64), ExportFailure> {
    let (status, written) = write_file(item, blobs, dir)?;
    Ok(match unpack_members(item, dir)? {
        Some(unpacked) => (ItemStatus::Done, written + unpacked),
        None => (status, written),
    })
}

/// Checks what [`write_and_unpack`] would do, like [`check_file`].
fn check_file_and_members(
    item: &ExportFile<'_>,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<ItemStatus, ExportFailure> {
    let status = check_file(item, blobs, dir)?;
    if status == ItemStatus::Present && !are_members_unpacked(item, dir)? {
        return Ok(ItemStatus::Skipped);
    }
    Ok(status)
}

// Writes one exported file: verified, completely or not at all, and never outside of the folder.

/// Writes a file to all its paths: the content once, and hard links to it. Files that exist with
/// the same content are kept, and get its mode. Returns the status and the bytes written.
pub(super) fn write_file(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<(ItemStatus, u64), ExportFailure> {
    let mut status = ItemStatus::Present;
    let mut written = 0;
    // the first path; the others become hard links to it
    let mut first: Option<PathBuf> = None;
    for below in &item.paths {
        refuse_links(dir, below)?;
        let path = dir.join(below);
        let kept = keep_file(&path, item).map_err(|source| Failure::write(&path, source))?;
        if let Some(has_changed) = kept {
            if has_changed {
                status = ItemStatus::Done;
            }
            first.get_or_insert(path);
            continue;
        }
        // a symbolic link is replaced, and nothing is written through it
        if !path.is_symlink() {
            refuse_special(&path).map_err(|source| Failure::write(&path, source))?;
        }
        status = ItemStatus::Done;
        fs::create_dir_all(path.parent().unwrap_or(dir))
            .map_err(|source| Failure::write(&path, source))?;
        let is_linked = match &first {
            Some(first) => link(first, &path).is_ok(),
            None => false,
        };
        // some file systems have no hard links
        if !is_linked {
            write_content(item, blobs, &path)?;
            written += item.file.size;
        }
        first.get_or_insert(path);
    }
    Ok((status, written))
}

/// Checks what [`write_file`] would do: `Present` if all paths are up to date, else `Skipped`.
/// Fails if the content is needed but missing. It is not needed if an earlier path is up to date,
/// because the later paths become links to that path.
pub(super) fn check_file(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    dir: &Path,
) -> Result<ItemStatus, ExportFailure> {
    let mut is_linkable = false;
    for below in &item.paths {
        refuse_links(dir, below)?;
        let path = dir.join(below);
        if is_up_to_date(&path, item).map_err(|source| Failure::write(&path, source))? {
            is_linkable = true;
            continue;
        }
        let digest = item.file.digest;
        if !is_linkable && blobs.stat(digest)?.is_none() {
            return Err(ContentError::missing(digest).into());
        }
        return Ok(ItemStatus::Skipped);
    }
    Ok(ItemStatus::Present)
}

/// Gives the file at `path` its mode, if it is a regular file with this content. Returns whether
/// the mode has changed, or `None` if the file must be written.
fn keep_file(path: &Path, item: &ExportFile) -> io::Result<Option<bool>> {
    let metadata = match if_exists(fs::symlink_metadata(path))? {
        Some(found) if found.is_file() && found.len() == item.file.size => found,
        _ => return Ok(None),
    };
    // a file that this user cannot read is replaced
    let Ok(mut file) = File::open(path) else {
        return Ok(None);
    };
    if !has_digest(&mut file, item.file.digest)? {
        return Ok(None);
    }
    if has_mode(&metadata, item.mode) {
        return Ok(Some(false));
    }
    // its other names, such as those of a snapshot of the folder, must keep their mode
    if hard_links(&file)? > 1 || set_file_mode(&file, item.mode).is_err() {
        return Ok(None);
    }
    // on a USB stick with FAT, all files keep the same mode
    Ok(Some(has_mode(&file.metadata()?, item.mode)))
}

/// Writes the content through a temporary file in the same folder.
fn write_content(
    item: &ExportFile,
    blobs: &dyn BlobRead,
    path: &Path,
) -> Result<(), ExportFailure> {
    let failed = |source| Failure::write(path, source);
    let temporary = private_file_in(parent_folder(path)).map_err(failed)?;
    let copied = copy_checked(blobs, item.file.digest, item.file.size, |piece| {
        temporary.as_file().write_all(piece)
    });
    copied.map_err(|error| match error {
        CopyError::Content(error) => ExportFailure::from(error),
        CopyError::Write(source) => failed(source).into(),
    })?;
    Ok(publish_file(temporary, path, Some(item.mode)).map_err(failed)?)
}

/// Makes `path` a hard link to `first`, replacing an existing file.
fn link(first: &Path, path: &Path) -> io::Result<()> {
    let folder = parent_folder(path);
    // linked under a temporary name first, because `hard_link` does not replace a file
    let temporary = tempfile::Builder::new().make_in(folder, |name| fs::hard_link(first, name))?;
    temporary.persist(path)?;
    Ok(())
}

/// Whether `path` is a regular file with this content and mode.
pub(super) fn is_up_to_date(path: &Path, item: &ExportFile) -> io::Result<bool> {
    match open_if_like(path, item.file.size, item.mode)? {
        Some(mut file) => has_digest(&mut file, item.file.digest),
        None => Ok(false),
    }
}

/// Opens the file at `path`, if it is a regular file with this size and mode.
pub(super) fn open_if_like(path: &Path, size: u64, mode: u32) -> io::Result<Option<File>> {
    let Some(metadata) = if_exists(fs::symlink_metadata(path))? else {
        return Ok(None);
    };
    let is_like = metadata.is_file() && metadata.len() == size && has_mode(&metadata, mode);
    is_like.then(|| File::open(path)).transpose()
}

/// Refuses a symbolic link in place of a folder between `dir` and the file: it could lead out of
/// `dir`. A link at the file's own path is replaced instead.
pub(super) fn refuse_links(dir: &Path, below: &Path) -> Result<(), Failure> {
    let mut folder = dir.to_path_buf();
    for component in below.parent().into_iter().flat_map(Path::components) {
        folder.push(component);
        if fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_symlink()) {
            let path = dir.join(below);
            let why = format!("{} is a symbolic link; remove it", folder.display());
            return Err(Failure::write(path, why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{file, memory as memory_of};
    use landfall_content::OUTPUT_RECORD;
    use landfall_item::LockedSidecar;
    use landfall_model::Digest;
    use landfall_model::report::SilentProgress;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn lock() -> Lock {
        let mut kubelet = file("https://dl.k8s.io:8443/v1/a%20b/kubelet?x=1", b"kubelet");
        kubelet.also = vec!["https://mirror.example/kubelet".into()];
        kubelet.mode = Some("0755".into());
        let sum = "https://dl.k8s.io/v1/kubelet.sha256";
        kubelet.sidecars = vec![LockedSidecar {
            url: sum.into(),
            digest: Digest::sha256(b"sum"),
            size: 3,
        }];
        Lock {
            version: 1,
            files: vec![kubelet, file("https://h.example/", b"front")],
            ..Lock::default()
        }
    }

    fn mode(dry_run: bool) -> ExportMode {
        ExportMode {
            dry_run,
            replaces: false,
        }
    }

    fn memory() -> MemoryBlobs {
        memory_of(&[b"kubelet", b"sum", b"front"])
    }

    fn statuses(report: &RunReport) -> Vec<ItemStatus> {
        report.items.iter().map(|item| item.status).collect()
    }

    #[test]
    fn files_are_written_for_all_their_urls_and_a_second_run_keeps_them() {
        let dir = tempfile::tempdir().unwrap();
        let run =
            |dry| export_files(&lock(), &memory(), dir.path(), mode(dry), &SilentProgress).unwrap();
        assert_eq!(statuses(&run(true)), [ItemStatus::Skipped; 3]);
        let nothing = export_files(
            &lock(),
            &MemoryBlobs::default(),
            dir.path(),
            mode(true),
            &SilentProgress,
        )
        .unwrap();
        assert_eq!(
            statuses(&nothing),
            [ItemStatus::Missing; 3],
            "a dry run reports missing files"
        );
        assert!(!dir.path().join("h.example").exists());
        let report = run(false);
        assert_eq!(
            (statuses(&report), report.bytes_transferred),
            (vec![ItemStatus::Done; 3], 7 + 3 + 5)
        );
        let kubelet = dir.path().join("dl.k8s.io:8443/v1/a b/kubelet");
        assert_eq!(fs::read(&kubelet).unwrap(), b"kubelet");
        assert_eq!(fs::metadata(&kubelet).unwrap().mode() & 0o7777, 0o755);
        let other = fs::metadata(dir.path().join("mirror.example/kubelet")).unwrap();
        assert_eq!(
            other.ino(),
            fs::metadata(&kubelet).unwrap().ino(),
            "written once, linked"
        );
        assert_eq!(
            fs::read(dir.path().join("dl.k8s.io/v1/kubelet.sha256")).unwrap(),
            b"sum"
        );
        assert_eq!(
            fs::read(dir.path().join("h.example/index.html")).unwrap(),
            b"front"
        );

        for dry in [false, true] {
            let report = run(dry);
            assert_eq!(
                (statuses(&report), report.bytes_transferred),
                (vec![ItemStatus::Present; 3], 0)
            );
        }
        // a missing path becomes a link to the first one, so its content is not needed
        fs::remove_file(dir.path().join("mirror.example/kubelet")).unwrap();
        let blobs = memory_of(&[b"sum", b"front"]);
        for (dry, status) in [(true, ItemStatus::Skipped), (false, ItemStatus::Done)] {
            let report =
                export_files(&lock(), &blobs, dir.path(), mode(dry), &SilentProgress).unwrap();
            assert_eq!(statuses(&report)[0], status, "{report:?}");
        }
        fs::write(&kubelet, "kubeleX").unwrap();
        assert_eq!(
            statuses(&run(false)),
            [ItemStatus::Done, ItemStatus::Present, ItemStatus::Present]
        );
        assert_eq!(fs::read(&kubelet).unwrap(), b"kubelet");
        // a file with another mode is not written again, unless it has other names
        fs::remove_file(dir.path().join("mirror.example/kubelet")).unwrap();
        let before = fs::metadata(&kubelet).unwrap().ino();
        fs::set_permissions(&kubelet, fs::Permissions::from_mode(0o600)).unwrap();
        let report = run(false);
        assert_eq!(
            (statuses(&report)[0], report.bytes_transferred),
            (ItemStatus::Done, 0)
        );
        let after = fs::metadata(&kubelet).unwrap();
        assert_eq!((after.mode() & 0o7777, after.ino()), (0o755, before));
        let snapshot = dir.path().join("snapshot");
        fs::hard_link(&kubelet, &snapshot).unwrap();
        fs::set_permissions(&snapshot, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(run(false).bytes_transferred, 7);
        let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode_of(&kubelet), mode_of(&snapshot)), (0o755, 0o600));
    }

    #[test]
    fn files_that_no_export_wrote_are_refused_before_the_first_write() {
        let dir = tempfile::tempdir().unwrap();
        let front = dir.path().join("h.example/index.html");
        fs::create_dir(front.parent().unwrap()).unwrap();
        let run =
            |mode: ExportMode| export_files(&lock(), &memory(), dir.path(), mode, &SilentProgress);
        fs::write(&front, "mine").unwrap();
        for dry_run in [true, false] {
            let error = run(mode(dry_run)).unwrap_err().to_string();
            assert!(
                error.contains("h.example/index.html exists, and this command did not write it"),
                "{error}"
            );
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        let replacing = ExportMode {
            replaces: true,
            ..ExportMode::default()
        };
        assert_eq!(statuses(&run(replacing).unwrap()), [ItemStatus::Done; 3]);
        // the record now lists the file, and another export may replace it
        let mut changed = lock();
        changed.files[1] = file("https://h.example/", b"kubelet");
        let report = export_files(
            &changed,
            &memory(),
            dir.path(),
            mode(false),
            &SilentProgress,
        );
        assert_eq!(statuses(&report.unwrap())[2], ItemStatus::Done);
        assert_eq!(fs::read(&front).unwrap(), b"kubelet");
        // a file with the new content is not replaced
        fs::remove_file(dir.path().join(OUTPUT_RECORD)).unwrap();
        assert_eq!(
            export_files(
                &changed,
                &memory(),
                dir.path(),
                mode(false),
                &SilentProgress
            )
            .map(|report| statuses(&report))
            .unwrap(),
            [ItemStatus::Present; 3]
        );
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let one = |url: &str| Lock {
            version: 1,
            files: vec![file(url, b"front")],
            ..Lock::default()
        };
        let dir = tempfile::tempdir().unwrap();
        for url in [
            "https://h/a/%2e%2e%2f%2e%2e/x",
            "https://h/a%2f..%2fx",
            "https://h/a%00b",
            "no-url",
        ] {
            let result = export_files(
                &one(url),
                &memory(),
                dir.path(),
                mode(false),
                &SilentProgress,
            );
            let error = result.unwrap_err().to_string();
            assert!(error.starts_with("cannot export "), "{url}: {error}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("h")).unwrap();
        let report = export_files(
            &one("https://h/x"),
            &memory(),
            dir.path(),
            mode(false),
            &SilentProgress,
        )
        .unwrap();
        assert_eq!(statuses(&report), [ItemStatus::Failed]);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_long_path_of_a_member_is_read_up_to_a_limit() {
        let long = format!("{}/kubelet", "a".repeat(200));
        let dir = tempfile::tempdir().unwrap();
        let export = |archive: &[u8]| {
            let mut locked = file("https://h/node.tar", archive);
            locked.unpack = vec![long.clone()];
            let lock = Lock {
                version: 1,
                files: vec![locked],
                ..Lock::default()
            };
            let blobs = memory_of(&[archive]);
            export_files(&lock, &blobs, dir.path(), mode(false), &SilentProgress).unwrap()
        };
        let mut gnu = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(7);
        let mut plain = header.clone();
        gnu.append_data(&mut header, &long, &b"content"[..])
            .unwrap();
        let mut pax = tar::Builder::new(Vec::new());
        pax.append_pax_extensions([("path", long.as_bytes())])
            .unwrap();
        pax.append_data(&mut plain, "short", &b"content"[..])
            .unwrap();
        for archive in [gnu, pax] {
            let report = export(&archive.into_inner().unwrap());
            assert_eq!(statuses(&report), [ItemStatus::Done], "{report:?}");
            let member = dir.path().join("h/node.tar.d").join(&long);
            assert_eq!(fs::read(&member).unwrap(), b"content", "{report:?}");
            fs::remove_file(member).unwrap();
        }
        let mut hostile = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(2 << 20);
        let name = vec![b'a'; 2 << 20];
        hostile.append_data(&mut header, "long", &name[..]).unwrap();
        let report = export(&hostile.into_inner().unwrap());
        let reason = report.items[0].reason.as_deref().unwrap();
        assert!(reason.contains("more than 1 MiB"), "{reason}");
    }

    #[test]
    fn members_of_an_archive_are_written_next_to_it_with_their_modes() {
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            Vec::new(),
            flate2::Compression::fast(),
        ));
        for (name, mode) in [("./bin/kubelet", 0o755), ("./README", 0o4644)] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(mode);
            header.set_size(7);
            tar.append_data(&mut header, name, &b"content"[..]).unwrap();
        }
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(0);
        tar.append_data(&mut header, "empty", &b""[..]).unwrap();
        let archive = tar.into_inner().unwrap().finish().unwrap();
        let mut locked = file("https://h/node.tgz", &archive);
        locked.unpack = vec!["bin/kubelet".into()];
        let dir = tempfile::tempdir().unwrap();
        let blobs = memory_of(&[&archive]);
        let export = |locked: &landfall_item::LockedFile, dry_run| {
            let lock = Lock {
                version: 1,
                files: vec![locked.clone()],
                ..Lock::default()
            };
            export_files(&lock, &blobs, dir.path(), mode(dry_run), &SilentProgress).unwrap()
        };
        let run = |locked: &landfall_item::LockedFile| export(locked, false);
        let checked = |locked: &landfall_item::LockedFile| statuses(&export(locked, true));
        assert_eq!(checked(&locked), [ItemStatus::Skipped]);
        assert_eq!(statuses(&run(&locked)), [ItemStatus::Done]);
        let kubelet = dir.path().join("h/node.tgz.d/bin/kubelet");
        assert_eq!(fs::read(&kubelet).unwrap(), b"content");
        assert_eq!(fs::metadata(&kubelet).unwrap().mode() & 0o7777, 0o755);
        assert!(
            !dir.path().join("h/node.tgz.d/README").exists(),
            "the lock does not request it"
        );
        assert_eq!(checked(&locked), [ItemStatus::Present]);
        assert_eq!(statuses(&run(&locked)), [ItemStatus::Present]);
        for damage in [&b"contenX"[..], b"longer content", b""] {
            fs::write(&kubelet, damage).unwrap();
            assert_eq!(checked(&locked), [ItemStatus::Skipped]);
            assert_eq!(fs::read(&kubelet).unwrap(), damage);
            assert_eq!(
                statuses(&run(&locked)),
                [ItemStatus::Done],
                "a changed file is written again"
            );
        }
        fs::remove_dir_all(dir.path().join("h/node.tgz.d")).unwrap();
        assert_eq!(checked(&locked), [ItemStatus::Skipped]);
        assert!(!dir.path().join("h/node.tgz.d").exists());
        assert_eq!(statuses(&run(&locked)), [ItemStatus::Done]);
        locked.unpack = vec!["empty".into()];
        for (dry_run, status) in [
            (true, ItemStatus::Skipped),
            (false, ItemStatus::Done),
            (false, ItemStatus::Present),
            (true, ItemStatus::Present),
        ] {
            let report = export(&locked, dry_run);
            assert_eq!(statuses(&report), [status], "a member without content");
        }
        locked.unpack = vec!["bin/kubectl".into()];
        assert_eq!(checked(&locked), [ItemStatus::Failed]);
        let report = run(&locked);
        assert_eq!(statuses(&report), [ItemStatus::Failed]);
        assert!(
            report.items[0]
                .reason
                .as_ref()
                .unwrap()
                .contains("no bin/kubectl"),
            "{report:?}"
        );
    }

    #[test]
    fn two_contents_at_one_path_are_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![
            file("https://h/x?v=1", b"kubelet"),
            file("https://h/x?v=2", b"front"),
        ];
        let lock = Lock {
            version: 1,
            files,
            ..Lock::default()
        };
        let error = export_files(&lock, &memory(), dir.path(), mode(false), &SilentProgress)
            .unwrap_err()
            .to_string();
        assert!(error.contains("v=1") && error.contains("v=2"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn missing_and_damaged_files_are_reported_and_the_others_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut blobs = memory_of(&[b"front"]);
        blobs
            .0
            .insert(Digest::sha256(b"kubelet"), b"kubelex"[..].into());
        let report =
            export_files(&lock(), &blobs, dir.path(), mode(false), &SilentProgress).unwrap();
        assert_eq!(
            statuses(&report),
            [ItemStatus::Failed, ItemStatus::Missing, ItemStatus::Done]
        );
        assert!(!dir.path().join("mirror.example/kubelet").exists());
    }
}
