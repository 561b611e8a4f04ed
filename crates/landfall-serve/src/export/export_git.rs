//! Exports git repositories: as bare repositories, which git reads as they are and any web server
//! can serve, or as git bundles.

use super::bare_leftovers::{SHALLOW, item_of, settle_leftovers, with_present_commits};
use super::export_files::write_all;
use super::{
    ExportFailure, ExportFile, ExportMode, claim_repositories, collision, failed, path_of_url,
};
use landfall_content::{BlobPackBytes, BlobRead, ContentError, MemoryBlobs};
use landfall_git::{
    FetchRequest, GitError, ObjectDatabase, ObjectId, PackSending, SelectedObjects, send_pack,
};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedGitRef, LockedGitRepository};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, RunReport, count_of};
use landfall_model::{Algorithm, Descriptor, Digest, Failure, Limits, digest_of, media_type};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// The file with the options of a repository.
const CONFIG: &str = "config";

/// The form in which repositories are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitExportFormat {
    /// The bare repository `<host>/<path>.git`.
    Bare,
    /// The git bundle `<host>/<path>.bundle`.
    Bundle,
}

impl GitExportFormat {
    fn extension(self) -> &'static str {
        match self {
            GitExportFormat::Bare => "git",
            GitExportFormat::Bundle => "bundle",
        }
    }
}

/// The files of one exported repository.
struct RepositoryFiles {
    /// The path and the content of each file.
    files: Vec<(String, Descriptor)>,
    /// The generated contents, which are not in the bundle.
    made: MemoryBlobs,
}

/// Writes every git repository of `lock` from `blobs` to `dir`. Files with the right content are
/// left unchanged.
///
/// # Errors
/// Before anything is written: when a URL cannot be a path, two repositories with different content
/// have the same path, or a repository or file of others exists. Later failures are in the report.
pub fn export_git(
    lock: &Lock,
    blobs: &Arc<dyn BlobRead>,
    dir: &Path,
    format: GitExportFormat,
    mode: ExportMode,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<RunReport, Failure> {
    let mut targets = Vec::new();
    let mut owners: BTreeMap<PathBuf, &LockedGitRepository> = BTreeMap::new();
    for repository in &lock.git {
        let url = repository.url();
        let url = url.strip_suffix(".git").unwrap_or(url);
        let path = path_of_url(&format!("{url}.{}", format.extension()))?;
        if let Some(first) = owners.insert(path.clone(), repository)
            && first.digest != repository.digest
        {
            let path = path.display().to_string();
            return Err(collision(&path, &first.name, &repository.name));
        }
        targets.push((repository, path));
    }
    // a repository in the folder of another one would change its refs or objects
    for (path, inner) in &owners {
        let outer = path
            .ancestors()
            .skip(1)
            .find_map(|folder| owners.get(folder));
        if let Some(outer) = outer {
            return Err(failed(format!(
                "cannot export {}: its folder would be inside that of {}, as a part of that \
                 repository; omit one of them",
                inner.name, outer.name
            )));
        }
    }
    let record = claim_repositories(dir, owners.keys().map(PathBuf::as_path), mode)?;
    let dry_run = mode.dry_run;
    let mut report = RunReport::default();
    for (repository, path) in targets {
        note_omitted(repository, format, progress);
        let claim = || {
            if dry_run {
                Ok(())
            } else {
                record.add([path.as_path()])
            }
        };
        let written = match format {
            GitExportFormat::Bare => repository_files(repository, blobs, limits, &dir.join(&path))
                .map(|files| {
                    let write = || files.write(repository, &path, &**blobs, dir, dry_run, progress);
                    claim().map(|()| write())
                }),
            GitExportFormat::Bundle => GitBundle::create(repository, blobs, limits)
                .map(|bundle| {
                    let path = path.clone();
                    let write = || write_bundle(&bundle, repository, path, dir, dry_run, progress);
                    claim().map(|()| write())
                })
                .map_err(ExportFailure::from),
        };
        match written {
            Ok(written) => report.append(written?),
            Err(failure) => report.items.push(ReportItem {
                digest: Some(repository.digest.clone()),
                ..ReportItem::new(
                    EntryKind::Git,
                    repository.name.clone(),
                    failure.status,
                    Some(failure.reason),
                )
            }),
        }
    }
    Ok(report)
}

impl From<GitError> for ExportFailure {
    fn from(error: GitError) -> ExportFailure {
        failed(error.to_string()).into()
    }
}

/// Reports large files that an exported git bundle cannot contain, or that clients would request
/// elsewhere.
fn note_omitted(
    repository: &LockedGitRepository,
    format: GitExportFormat,
    progress: &dyn Progress,
) {
    let count = repository.large_files.iter().flatten().count();
    if format == GitExportFormat::Bundle && count > 0 {
        let files = count_of(count, "large file");
        let name = &repository.name;
        progress.note(&format!(
            "{name}: the git bundle omits {files}; --format bare exports large files"
        ));
    } else if let Some(note) = repository.lfs_note("the URL of a Git LFS server with the files") {
        progress.note(&note);
    }
}

fn write_bundle(
    bundle: &GitBundle,
    repository: &LockedGitRepository,
    path: PathBuf,
    dir: &Path,
    dry_run: bool,
    progress: &dyn Progress,
) -> RunReport {
    let content = Descriptor::new(bundle.digest.clone(), bundle.size, media_type::OCTETS);
    let file = ExportFile::new(EntryKind::Git, &repository.name, &content, path);
    write_all(vec![file], bundle, dir, dry_run, progress)
}

/// Lists the files of a repository. Reads the packs and hashes all their objects. `folder` may
/// contain an earlier export.
fn repository_files(
    repository: &LockedGitRepository,
    blobs: &Arc<dyn BlobRead>,
    limits: Limits,
    folder: &Path,
) -> Result<RepositoryFiles, ExportFailure> {
    let mut out = RepositoryFiles {
        files: Vec::new(),
        made: MemoryBlobs::default(),
    };
    let mut names = String::new();
    for pack in &repository.packs {
        if blobs.stat(&pack.digest)?.is_none() {
            return Err(ContentError::missing(&pack.digest).into());
        }
        let bytes = BlobPackBytes::new(blobs.clone(), pack.digest.clone(), pack.size);
        let mut alone = ObjectDatabase::new(limits);
        alone.add_pack(Arc::new(bytes))?;
        let (name, index) = alone.index_file()?;
        let content = Descriptor::new(
            pack.digest.clone(),
            pack.size,
            media_type::LANDFALL_GIT_PACK,
        );
        out.files
            .push((format!("objects/pack/{name}.pack"), content));
        out.make(format!("objects/pack/{name}.idx"), index);
        names += &format!("P {name}.pack\n");
    }
    for file in repository.large_files.iter().flatten() {
        if blobs.stat(&file.digest)?.is_none() {
            return Err(ContentError::missing(&file.digest).into());
        }
        let hex = file.digest.hex();
        let path = format!("lfs/objects/{}/{}/{hex}", &hex[..2], &hex[2..4]);
        out.files.push((path, file.descriptor()));
    }
    let all = repository.objects(blobs, limits)?;
    let mut packed = String::new();
    let mut info = String::new();
    for one in &repository.refs {
        let target = all.id(all.peeled(all.find(one.id)?)?);
        packed += &format!("{} {}\n", one.id, one.name);
        info += &format!("{}\t{}\n", one.id, one.name);
        if target != one.id {
            packed += &format!("^{target}\n");
            info += &format!("{target}\t{}^{{}}\n", one.name);
        }
    }
    let head = match (&repository.head, checked_out(repository, &all)?) {
        (Some(head), _) => format!("ref: {head}\n"),
        (None, Some(commit)) => format!("{commit}\n"),
        (None, None) => "ref: refs/heads/main\n".to_owned(),
    };
    // for clients that fetch from a web server without git's smart protocol
    out.make("objects/info/packs".into(), names.into_bytes());
    out.make("info/refs".into(), info.into_bytes());
    let shallow = repository.shallow.iter().map(|id| format!("{id}\n"));
    let shallow: String = shallow.collect();
    // until the new refs are written, the old ones need the end of their own history
    let both = with_present_commits(&shallow, folder);
    if !shallow.is_empty() {
        out.make(SHALLOW.into(), both.clone().into_bytes());
    }
    out.make(
        "packed-refs".into(),
        format!("# pack-refs with: peeled fully-peeled sorted \n{packed}").into_bytes(),
    );
    // git demands a folder `refs`, and ignores files in it whose names begin with a dot
    out.make("refs/.keep".into(), Vec::new());
    out.make(CONFIG.into(), b"[core]\n\tbare = true\n".to_vec());
    out.make("HEAD".into(), head.into_bytes());
    if !shallow.is_empty() && shallow != both {
        out.make(SHALLOW.into(), shallow.into_bytes());
    }
    Ok(out)
}

impl RepositoryFiles {
    /// Adds a file with generated content.
    fn make(&mut self, path: String, content: Vec<u8>) {
        let content = self.made.put(content, media_type::OCTETS);
        self.files.push((path, content));
    }

    /// Writes the files below `folder` in `dir`, in their order: the refs after the objects. Stops
    /// at the first file that cannot be written.
    fn write(
        &self,
        repository: &LockedGitRepository,
        folder: &Path,
        blobs: &dyn BlobRead,
        dir: &Path,
        dry_run: bool,
        progress: &dyn Progress,
    ) -> RunReport {
        let mut report = RunReport::default();
        for (path, content) in &self.files {
            let is_made = self.made.0.contains_key(&content.digest);
            let kind = if is_made {
                EntryKind::Sidecar
            } else {
                EntryKind::Git
            };
            let name = format!("{}: {path}", repository.name);
            let file = folder.join(path);
            // people set options of the repository in this file
            if path == CONFIG && is_regular_file(&dir.join(&file)) {
                let kept = item_of(repository, CONFIG, ItemStatus::Present, None);
                report.items.push(kept);
                continue;
            }
            let file = ExportFile::new(kind, &name, content, file);
            let from = if is_made { &self.made } else { blobs };
            let written = write_all(vec![file], from, dir, dry_run, progress);
            let mut statuses = written.items.iter().map(|item| item.status);
            let is_written = statuses.all(|status| !status.is_loss());
            report.append(written);
            // refs must not name objects that could not be written: the folder may have the
            // repository of an earlier export, which stays whole
            if !is_written {
                return report;
            }
        }
        if !dry_run {
            let left = settle_leftovers(repository, &dir.join(folder));
            report.items.extend(left);
        }
        report
    }
}

/// Whether `path` is a file, and not a symbolic link to one.
fn is_regular_file(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
}

// Git bundles (gitformat-bundle): a repository in one file, from which git clones and fetches.

/// The first line of a bundle whose objects have SHA-1 ids.
const SIGNATURE: &str = "# v2 git bundle";

/// A git bundle in a temporary file.
pub(super) struct GitBundle {
    file: NamedTempFile,
    pub(super) digest: Digest,
    /// The size of the bundle in bytes.
    pub(super) size: u64,
}

impl GitBundle {
    /// Writes a bundle with all refs of a repository, whose packs are in `blobs`. Reads the packs
    /// and hashes all their objects.
    pub(super) fn create(
        repository: &LockedGitRepository,
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
    ) -> Result<GitBundle, GitError> {
        if !repository.shallow.is_empty() {
            return Err(GitError::Unsupported(
                "a git bundle cannot contain a shallow history; use --format bare",
            ));
        }
        let database = repository.objects(blobs, limits)?;
        let mut file = NamedTempFile::new().map_err(GitError::WritePack)?;
        write(repository, &database, file.as_file())?;
        file.as_file_mut().rewind().map_err(GitError::WritePack)?;
        let digest = digest_of(&mut file, Algorithm::Sha256).map_err(GitError::WritePack)?;
        let size = file.stream_position().map_err(GitError::WritePack)?;
        Ok(GitBundle { file, digest, size })
    }

    fn reader(&self, offset: u64) -> io::Result<File> {
        let mut file = self.file.reopen()?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }
}

/// Writes the list of refs, and a pack with everything that they need.
fn write(
    repository: &LockedGitRepository,
    database: &ObjectDatabase,
    file: &File,
) -> Result<(), GitError> {
    let mut head = format!("{SIGNATURE}\n");
    for one in &repository.refs {
        head += &format!("{} {}\n", one.id, one.name);
    }
    if let Some(id) = checked_out(repository, database)? {
        head += &format!("{id} HEAD\n");
    }
    let request = FetchRequest {
        wants: repository.refs.iter().map(|one| one.id).collect(),
        ..FetchRequest::default()
    };
    let selected = SelectedObjects::new(database, &request, &[])?;
    let mut out = BufWriter::with_capacity(256 << 10, file);
    writeln!(out, "{head}").map_err(GitError::WritePack)?;
    let form = PackSending {
        offset_deltas: true,
        is_compact: true,
    };
    send_pack(database, &selected.objects, form, &mut out)?;
    out.flush().map_err(GitError::WritePack)
}

/// The commit that a clone checks out: that of the default branch or, if the lock names no default
/// branch, that of the last ref that leads to a commit. git does not clone a repository whose
/// `HEAD` is a folder or file.
fn checked_out(
    repository: &LockedGitRepository,
    database: &ObjectDatabase,
) -> Result<Option<ObjectId>, GitError> {
    let is_default = |one: &&LockedGitRef| repository.head.as_ref() == Some(&one.name);
    let default = repository.refs.iter().find(is_default);
    for one in default.into_iter().chain(repository.refs.iter().rev()) {
        if let Some(commit) = database.commit_of(one.id)? {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

impl BlobRead for GitBundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok((*digest == self.digest).then_some(self.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        if *digest != self.digest {
            return Err(ContentError::missing(digest));
        }
        match self.reader(offset) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(ContentError::read(digest, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::LockedLargeFile;
    use landfall_model::report::SilentProgress;

    /// Writes `files`, whose content is not in `blobs` unless it was made, to the folder `a.git`.
    fn write(files: &RepositoryFiles, dir: &Path) -> Vec<ItemStatus> {
        let repository = LockedGitRepository::without_refs("https://h/a");
        let blobs = MemoryBlobs::default();
        let folder = Path::new("a.git");
        let report = files.write(&repository, folder, &blobs, dir, false, &SilentProgress);
        report.items.iter().map(|item| item.status).collect()
    }

    fn no_files() -> RepositoryFiles {
        RepositoryFiles {
            files: Vec::new(),
            made: MemoryBlobs::default(),
        }
    }

    #[test]
    fn refs_are_not_written_after_a_pack_that_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = no_files();
        files.make("packed-refs".into(), b"old".to_vec());
        assert_eq!(write(&files, dir.path()), [ItemStatus::Done]);
        let mut files = no_files();
        let pack = Descriptor::of(b"pack", media_type::LANDFALL_GIT_PACK);
        files.files.push(("objects/pack/pack-1.pack".into(), pack));
        files.make("packed-refs".into(), b"new".to_vec());
        assert_eq!(write(&files, dir.path()), [ItemStatus::Missing]);
        let refs = std::fs::read(dir.path().join("a.git/packed-refs")).unwrap();
        assert_eq!(refs, b"old");
    }

    #[test]
    fn options_that_people_set_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = no_files();
        files.make(CONFIG.into(), b"made".to_vec());
        assert_eq!(write(&files, dir.path()), [ItemStatus::Done]);
        let config = dir.path().join("a.git").join(CONFIG);
        assert_eq!(std::fs::read(&config).unwrap(), b"made");
        std::fs::write(&config, "mine").unwrap();
        assert_eq!(write(&files, dir.path()), [ItemStatus::Present]);
        assert_eq!(std::fs::read(&config).unwrap(), b"mine");
    }

    #[test]
    fn a_link_is_not_kept_as_the_options() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a.git");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(dir.path().join("other"), "mine").unwrap();
        std::os::unix::fs::symlink("../other", folder.join(CONFIG)).unwrap();
        let mut files = no_files();
        files.make(CONFIG.into(), b"made".to_vec());
        assert_eq!(write(&files, dir.path()), [ItemStatus::Done]);
        let other = std::fs::read(dir.path().join("other")).unwrap();
        assert_eq!(other, b"mine");
    }

    #[test]
    fn the_end_of_an_earlier_history_is_kept_until_the_refs_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a.git");
        let shallow = || std::fs::read_to_string(folder.join(SHALLOW)).unwrap();
        let ids = ["a", "b"].map(|digit| digit.repeat(40));
        let large = Digest::sha256(b"large");
        let mut blobs = MemoryBlobs::default();
        blobs.0.insert(large.clone(), b"large".to_vec().into());
        let blobs: Arc<dyn BlobRead> = Arc::new(blobs);
        // the large file can be found, but not read
        let export = |id: &str, large_files: Option<Vec<LockedLargeFile>>| -> Vec<ItemStatus> {
            let repository = LockedGitRepository {
                shallow: vec![id.parse().unwrap()],
                large_files,
                ..LockedGitRepository::without_refs("https://h/a")
            };
            let files = repository_files(&repository, &blobs, Limits::default(), &folder);
            let report = files.unwrap().write(
                &repository,
                Path::new("a.git"),
                &MemoryBlobs::default(),
                dir.path(),
                false,
                &SilentProgress,
            );
            report.items.iter().map(|item| item.status).collect()
        };
        export(&ids[0], None);
        assert_eq!(shallow(), format!("{}\n", ids[0]));
        let missing = LockedLargeFile {
            digest: large,
            size: 5,
            server: None,
        };
        assert_eq!(export(&ids[1], Some(vec![missing])), [ItemStatus::Missing]);
        assert_eq!(shallow(), format!("{}\n", ids[0]));
        let both = with_present_commits(&format!("{}\n", ids[1]), &folder);
        assert_eq!(both, format!("{}\n{}\n", ids[1], ids[0]));
        export(&ids[1], None);
        assert_eq!(shallow(), format!("{}\n", ids[1]));
    }

    #[test]
    fn repositories_with_the_same_path_are_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let blobs: Arc<dyn BlobRead> = Arc::new(MemoryBlobs::default());
        for urls in [
            ["https://h/a", "https://h/a.git"],
            ["http://h/a", "https://h/a"],
        ] {
            let lock = Lock {
                version: 1,
                git: urls.map(LockedGitRepository::without_refs).to_vec(),
                ..Lock::default()
            };
            for format in [GitExportFormat::Bare, GitExportFormat::Bundle] {
                let limits = Limits::default();
                let progress = &SilentProgress;
                let mode = ExportMode::default();
                let refused = export_git(&lock, &blobs, dir.path(), format, mode, limits, progress);
                let message = refused.unwrap_err().to_string();
                let both = format!("cannot export git+{} and git+{}:", urls[0], urls[1]);
                assert!(message.contains(&both), "{message}");
            }
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
