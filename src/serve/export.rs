//! `landfall export files`: the files of a lock as a folder `<host>/<path>` for any web server.

use super::files::FilePlace;
use crate::content::{BlobRead, ContentError};
use crate::lockfile::{File, Lock};
use crate::model::{Digest, Hasher};
use crate::report::{Item, Kind, Progress, Report, Status};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Permission bits of what the lock gives none for.
const MODE: u32 = 0o644;

/// Why files are not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A URL whose path would lead out of the folder, or is no path.
    #[error("{url} cannot be a file below the folder: {why}")]
    Path {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two URLs that become one path with other content.
    #[error("{first} and {second} have other content but would be one file, {place}; leave one of them out")]
    Collision {
        /// The path below the folder.
        place: String,
        /// A URL.
        first: String,
        /// Another one.
        second: String,
    },
    /// The content cannot be had.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The content has other bytes than the lock says.
    #[error("its content is {found}, not {expected}")]
    Damaged {
        /// As locked.
        expected: Digest,
        /// As read.
        found: Digest,
    },
    /// The folder does not take it.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A link stands in the way: what is written must stay in the folder.
    #[error("cannot write {path}: {link} is a symbolic link; remove it")]
    Link {
        /// The file.
        path: PathBuf,
        /// The link.
        link: PathBuf,
    },
}

/// A file or sidecar with all paths at which it shall stand.
struct Plan<'a> {
    kind: Kind,
    name: &'a str,
    digest: &'a Digest,
    size: u64,
    mode: u32,
    places: Vec<PathBuf>,
}

/// Writes every file of `lock` from `blobs` to `dir`, at the paths of its URL and of its other URLs, and
/// its sidecars beside it. What is there with the right content is left alone. With `dry` nothing is
/// written.
///
/// # Errors
/// When a URL cannot be a path, or two of them would be one; before anything is written. What fails
/// later is in the report.
pub fn export_files(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry: bool,
    progress: &dyn Progress,
) -> Result<Report, ExportError> {
    let plans = plan(lock)?;
    progress.begin("export", plans.len() as u64, plans.iter().map(|plan| plan.size).sum());
    let mut report = Report::default();
    for plan in plans {
        let (status, reason) = match write(&plan, blobs, dir, dry) {
            Ok((status, bytes)) => {
                report.bytes_transferred += bytes;
                (status, (status == Status::Skipped).then(|| "would be written".to_owned()))
            }
            Err(ExportError::Content(error @ ContentError::Missing { .. })) => {
                (Status::Missing, Some(error.to_string()))
            }
            Err(error) => (Status::Failed, Some(error.to_string())),
        };
        progress.bytes(plan.size);
        progress.item(plan.name);
        report.items.push(Item {
            kind: plan.kind,
            name: plan.name.to_owned(),
            digest: Some(plan.digest.clone()),
            bytes: Some(plan.size),
            status,
            reason,
        });
    }
    progress.end();
    Ok(report)
}

fn plan(lock: &Lock) -> Result<Vec<Plan<'_>>, ExportError> {
    let mut plans = Vec::new();
    let mut taken: BTreeMap<PathBuf, (&str, &Digest)> = BTreeMap::new();
    let mut place = |url: &str, name, digest| {
        let path = path_of(url)?;
        match taken.insert(path.clone(), (name, digest)) {
            Some((first, earlier)) if earlier != digest => Err(ExportError::Collision {
                place: path.display().to_string(),
                first: first.into(),
                second: name.into(),
            }),
            _ => Ok(path),
        }
    };
    for file in &lock.files {
        let urls = std::iter::once(&file.name).chain(&file.also);
        let places = urls.map(|url| place(url, url.as_str(), &file.digest)).collect::<Result<_, _>>()?;
        plans.push(Plan {
            kind: Kind::File,
            name: &file.name,
            digest: &file.digest,
            size: file.size,
            mode: mode(file),
            places,
        });
        for sidecar in &file.sidecars {
            plans.push(Plan {
                kind: Kind::Sidecar,
                name: &sidecar.url,
                digest: &sidecar.digest,
                size: sidecar.size,
                mode: MODE,
                places: vec![place(&sidecar.url, &sidecar.url, &sidecar.digest)?],
            });
        }
    }
    Ok(plans)
}

/// The locked mode without set-user-ID, set-group-ID and sticky bits.
fn mode(file: &File) -> u32 {
    let mode = file.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
    mode.map_or(MODE, |mode| mode & 0o777)
}

/// `<host>/<path>` of a URL; the query does not count, as a web server's files have none. A path that
/// ends with a slash gets `index.html`.
fn path_of(url: &str) -> Result<PathBuf, ExportError> {
    let wrong = |why| ExportError::Path { url: url.into(), why };
    let FilePlace { host, path, .. } = FilePlace::of(url).ok_or_else(|| wrong("it is no URL with a host"))?;
    if matches!(host.as_str(), "" | "." | "..") || host.contains('/') {
        return Err(wrong("its host can be no folder"));
    }
    let mut out = PathBuf::from(host);
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match part {
            "." | ".." => return Err(wrong("a part of its path is . or ..")),
            part if part.chars().any(|c| c.is_control() || c == '\u{fffd}') => {
                return Err(wrong("its path has characters that no file name should have"));
            }
            part => out.push(part),
        }
    }
    if path.ends_with('/') {
        out.push("index.html");
    }
    Ok(out)
}

/// Writes one file to all its places, the content once and links to it. Gives the bytes written.
fn write(plan: &Plan, blobs: &dyn BlobRead, dir: &Path, dry: bool) -> Result<(Status, u64), ExportError> {
    let (mut status, mut written) = (Status::Present, 0);
    let mut first: Option<PathBuf> = None;
    for place in &plan.places {
        let path = dir.join(place);
        let failed = |source| ExportError::Write { path: path.clone(), source };
        let folder = path.parent().unwrap_or(dir);
        refuse_links(dir, place)?;
        if is_there(&path, plan).map_err(failed)? {
            first.get_or_insert(path);
            continue;
        }
        if dry {
            let there = blobs.stat(plan.digest)?;
            there.ok_or_else(|| ContentError::Missing { digest: plan.digest.clone() })?;
            return Ok((Status::Skipped, 0));
        }
        status = Status::Done;
        fs::create_dir_all(folder).map_err(failed)?;
        let linked = first.as_deref().is_some_and(|first| link(first, &path).is_ok());
        if !linked {
            let temporary = NamedTempFile::new_in(folder).map_err(failed)?;
            copy(plan, blobs, temporary.as_file()).map_err(|error| match error {
                Copy::Content(error) => error,
                Copy::Disk(source) => failed(source),
            })?;
            temporary.as_file().set_permissions(fs::Permissions::from_mode(plan.mode)).map_err(failed)?;
            temporary.as_file().sync_all().map_err(failed)?;
            temporary.persist(&path).map_err(|error| failed(error.error))?;
            written += plan.size;
        }
        first.get_or_insert(path);
    }
    Ok((status, written))
}

enum Copy {
    Content(ExportError),
    Disk(io::Error),
}

fn copy(plan: &Plan, blobs: &dyn BlobRead, mut to: &fs::File) -> Result<(), Copy> {
    let digest = plan.digest;
    let read = |source| Copy::Content(ContentError::Read { digest: digest.clone(), source }.into());
    let mut reader = blobs.open(digest, 0).map_err(|error| Copy::Content(error.into()))?;
    let mut hasher = Hasher::new(digest.algorithm());
    let mut piece = vec![0; 256 << 10];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&piece[..count]);
                to.write_all(&piece[..count]).map_err(Copy::Disk)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read(error)),
        }
    }
    let found = hasher.finish();
    if found == *digest {
        return Ok(());
    }
    Err(Copy::Content(ExportError::Damaged { expected: digest.clone(), found }))
}

/// A second name for `first`, in place of whatever stands at `path`.
fn link(first: &Path, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let temporary = tempfile::Builder::new().make_in(folder, |name| fs::hard_link(first, name))?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether `path` is a plain file with the content and mode.
fn is_there(path: &Path, plan: &Plan) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(false),
        found => found?,
    };
    if !found.is_file() || found.size() != plan.size || found.mode() & 0o7777 != plan.mode {
        return Ok(false);
    }
    let mut hasher = Hasher::new(plan.digest.algorithm());
    let mut file = fs::File::open(path)?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish() == *plan.digest),
            count => hasher.update(&piece[..count]),
        }
    }
}

/// Nothing between `dir` and the file may be a symbolic link: it could lead elsewhere. A link in the
/// file's own place is replaced.
fn refuse_links(dir: &Path, place: &Path) -> Result<(), ExportError> {
    let mut at = dir.to_path_buf();
    for part in place.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        if fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
            return Err(ExportError::Link { path: dir.join(place), link: at });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Memory, file};
    use super::*;
    use crate::lockfile::Sidecar;
    use crate::report::Silent;

    fn lock() -> Lock {
        let mut kubelet = file("https://dl.k8s.io:8443/v1/a%20b/kubelet?x=1", b"kubelet");
        kubelet.also = vec!["https://mirror.example/kubelet".into()];
        kubelet.mode = Some("0755".into());
        let sum = "https://dl.k8s.io/v1/kubelet.sha256";
        kubelet.sidecars = vec![Sidecar { url: sum.into(), digest: Digest::sha256(b"sum"), size: 3 }];
        Lock { version: 1, files: vec![kubelet, file("https://h.example/", b"front")], ..Lock::default() }
    }

    fn memory() -> Memory {
        Memory::of(&[b"kubelet", b"sum", b"front"])
    }

    fn statuses(report: &Report) -> Vec<Status> {
        report.items.iter().map(|item| item.status).collect()
    }

    #[test]
    fn files_stand_at_all_their_urls_and_a_second_run_leaves_them() {
        let dir = tempfile::tempdir().unwrap();
        let run = |dry| export_files(&lock(), &memory(), dir.path(), dry, &Silent).unwrap();
        assert_eq!(statuses(&run(true)), [Status::Skipped; 3]);
        let nothing = export_files(&lock(), &Memory::default(), dir.path(), true, &Silent).unwrap();
        assert_eq!(statuses(&nothing), [Status::Missing; 3], "a dry run tells what is not there");
        assert!(!dir.path().join("h.example").exists());
        let report = run(false);
        assert_eq!((statuses(&report), report.bytes_transferred), (vec![Status::Done; 3], 7 + 3 + 5));
        let kubelet = dir.path().join("dl.k8s.io:8443/v1/a b/kubelet");
        assert_eq!(fs::read(&kubelet).unwrap(), b"kubelet");
        assert_eq!(fs::metadata(&kubelet).unwrap().mode() & 0o7777, 0o755);
        let other = fs::metadata(dir.path().join("mirror.example/kubelet")).unwrap();
        assert_eq!(other.ino(), fs::metadata(&kubelet).unwrap().ino(), "written once, linked");
        assert_eq!(fs::read(dir.path().join("dl.k8s.io/v1/kubelet.sha256")).unwrap(), b"sum");
        assert_eq!(fs::read(dir.path().join("h.example/index.html")).unwrap(), b"front");

        for dry in [false, true] {
            let report = run(dry);
            assert_eq!((statuses(&report), report.bytes_transferred), (vec![Status::Present; 3], 0));
        }
        fs::write(&kubelet, "kubeleX").unwrap();
        assert_eq!(statuses(&run(false)), [Status::Done, Status::Present, Status::Present]);
        assert_eq!(fs::read(&kubelet).unwrap(), b"kubelet");
    }

    #[test]
    fn nothing_leaves_the_folder() {
        let one = |url: &str| Lock { version: 1, files: vec![file(url, b"front")], ..Lock::default() };
        let dir = tempfile::tempdir().unwrap();
        for url in ["https://h/a/%2e%2e%2f%2e%2e/x", "https://h/a%2f..%2fx", "https://h/a%00b", "no-url"] {
            let result = export_files(&one(url), &memory(), dir.path(), false, &Silent);
            assert!(matches!(result, Err(ExportError::Path { .. })), "{url}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("h")).unwrap();
        let report = export_files(&one("https://h/x"), &memory(), dir.path(), false, &Silent).unwrap();
        assert_eq!(statuses(&report), [Status::Failed]);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_contents_at_one_path_are_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![file("https://h/x?v=1", b"kubelet"), file("https://h/x?v=2", b"front")];
        let lock = Lock { version: 1, files, ..Lock::default() };
        let error = export_files(&lock, &memory(), dir.path(), false, &Silent).unwrap_err().to_string();
        assert!(error.contains("v=1") && error.contains("v=2"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_missing_or_damaged_is_said_and_the_rest_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut blobs = Memory::of(&[b"front"]);
        blobs.0.insert(Digest::sha256(b"kubelet"), b"kubelex".to_vec());
        let report = export_files(&lock(), &blobs, dir.path(), false, &Silent).unwrap();
        assert_eq!(statuses(&report), [Status::Failed, Status::Missing, Status::Done]);
        assert!(!dir.path().join("mirror.example/kubelet").exists());
    }
}
