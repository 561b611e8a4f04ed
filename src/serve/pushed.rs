//! What was pushed, on disk. Below the folder of `--writable`:
//!
//! ```text
//! blobs/<algorithm>/<hex>                          content, manifests too, as in an OCI layout
//! frames/<algorithm>/<hex>                         checksums of what is larger than a frame, see `frames`
//! repositories/<name>/_tags/<tag>                  a digest
//! repositories/<name>/_manifests/<algorithm>/<hex> a media type
//! repositories/<name>/_referrers/<hex of the subject>/<hex>   an entry of the referrers' answer
//! incoming/                                        what is not whole yet; emptied at start
//! ```
//!
//! Everything gets its final name by a rename after it is on disk. Names come from the grammar alone,
//! in which no component begins with `_` or is `..`.

use super::ServeError;
use super::frames::{Checked, FRAME, Sums};
use crate::content::{BlobRead, ContentError};
use crate::model::{Algorithm, Descriptor, Digest, Hasher, Referring};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The folder of `--writable`.
pub(super) struct Pushed {
    dir: PathBuf,
    /// Held as long as this process serves the folder.
    _lock: File,
}

/// Content that is coming in.
pub(super) struct Incoming {
    file: NamedTempFile,
    hasher: Hasher,
    algorithm: Algorithm,
    sums: Sums,
    /// Bytes so far.
    pub(super) size: u64,
}

/// Why content that came in is not kept.
#[derive(Debug)]
pub(super) enum Refused {
    /// It has another digest: this one.
    Digest(Digest),
    /// The disk did not take it.
    Disk(io::Error),
}

/// The file that says that a folder is one of landfall's.
const MARKER: &str = ".landfall-serve";

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Disk(error)
    }
}

impl Pushed {
    /// Opens the folder, makes it where it is not there, and takes it for this process.
    ///
    /// # Errors
    /// When it cannot be written, or another process serves it.
    pub(super) fn open(dir: &Path) -> Result<Pushed, ServeError> {
        let wrong = |source| ServeError::Writable { dir: dir.into(), source };
        // nothing in a folder that is somebody else's is touched
        let marker = dir.join(MARKER);
        let empty = list(dir).map_err(wrong)?.is_empty();
        if !empty && !marker.is_file() {
            let why = "it is not empty, and landfall did not make it; name a new folder or an empty one";
            return Err(wrong(io::Error::other(why)));
        }
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&marker, "content that was pushed to landfall serve\n"))
            .map_err(wrong)?;
        for folder in ["blobs", "frames", "repositories"] {
            fs::create_dir_all(dir.join(folder)).map_err(wrong)?;
        }
        let lock =
            File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(wrong)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(ServeError::Busy { dir: dir.into() }),
            Err(fs::TryLockError::Error(source)) => return Err(wrong(source)),
        }
        let incoming = dir.join("incoming");
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => fs::create_dir(&incoming).map_err(wrong)?,
        }
        Ok(Pushed { dir: dir.into(), _lock: lock })
    }

    fn repository(&self, name: &str) -> PathBuf {
        self.dir.join("repositories").join(name)
    }

    fn manifest_path(&self, name: &str, digest: &Digest) -> PathBuf {
        self.repository(name).join("_manifests").join(digest.algorithm().as_str()).join(digest.hex())
    }

    /// What `tag` means in the repository.
    ///
    /// # Errors
    /// When the disk does not say.
    pub(super) fn tag(&self, name: &str, tag: &str) -> io::Result<Option<Digest>> {
        let text = optional(fs::read_to_string(self.repository(name).join("_tags").join(tag)))?;
        text.map(|text| text.trim().parse().map_err(io::Error::other)).transpose()
    }

    /// The manifest with this digest, if it was pushed to this repository.
    ///
    /// # Errors
    /// When the disk does not say.
    pub(super) fn manifest(&self, name: &str, digest: &Digest) -> io::Result<Option<Descriptor>> {
        let Some(media_type) = optional(fs::read_to_string(self.manifest_path(name, digest)))? else {
            return Ok(None);
        };
        let size = self.stat(digest).map_err(io::Error::other)?;
        Ok(size.map(|size| Descriptor { digest: digest.clone(), size, media_type: media_type.into() }))
    }

    /// The tags of a repository, sorted; `None` where nothing was pushed to it.
    ///
    /// # Errors
    /// When the disk does not say.
    pub(super) fn tags(&self, name: &str) -> io::Result<Option<Vec<String>>> {
        if !self.repository(name).join("_manifests").is_dir() {
            return Ok(None);
        }
        list(&self.repository(name).join("_tags")).map(Some)
    }

    /// The names of all repositories, sorted.
    ///
    /// # Errors
    /// When the disk does not say.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut open = vec![String::new()];
        while let Some(above) = open.pop() {
            for entry in list(&self.repository(&above))? {
                if entry == "_manifests" {
                    names.push(above.trim_end_matches('/').to_owned());
                } else if !entry.starts_with('_') {
                    open.push(format!("{above}{entry}/"));
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// What was pushed to the repository with this subject.
    ///
    /// # Errors
    /// When the disk does not say.
    pub(super) fn referrers(&self, name: &str, subject: &Digest) -> io::Result<Vec<serde_json::Value>> {
        let folder = self.repository(name).join("_referrers").join(subject.hex());
        let read = |entry| Ok(serde_json::from_slice(&fs::read(folder.join(entry))?)?);
        list(&folder)?.into_iter().map(read).collect()
    }

    /// Keeps a manifest in the repository, with its tags last. `bytes` have the descriptor's digest.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn put_manifest(
        &self,
        name: &str,
        tags: &[String],
        descriptor: &Descriptor,
        referrer: Option<&Referring>,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let digest = &descriptor.digest;
        let mut incoming = self.begin(digest.algorithm())?;
        incoming.write(bytes)?;
        self.keep(incoming, digest)?;
        // the names of the blobs must be on disk before the first name that leads to them
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            sync(&self.dir.join("frames").join(algorithm.as_str()))?;
            sync(&self.dir.join("blobs").join(algorithm.as_str()))?;
        }
        let repository = self.repository(name);
        if let Some(referrer) = referrer {
            let folder = repository.join("_referrers").join(referrer.subject.hex());
            self.write(&folder.join(digest.hex()), referrer.entry.to_string().as_bytes())?;
            sync(&folder)?;
        }
        let manifest = self.manifest_path(name, digest);
        self.write(&manifest, descriptor.media_type.as_bytes())?;
        sync(manifest.parent().unwrap_or(&repository))?;
        for tag in tags {
            self.write(&repository.join("_tags").join(tag), digest.to_string().as_bytes())?;
        }
        sync(&repository.join("_tags"))?;
        Ok(())
    }

    /// Content is about to come in; its digest will probably be by `algorithm`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn begin(&self, algorithm: Algorithm) -> io::Result<Incoming> {
        let file =
            tempfile::Builder::new().prefix("").rand_bytes(24).tempfile_in(self.dir.join("incoming"))?;
        Ok(Incoming { file, hasher: Hasher::new(algorithm), algorithm, sums: Sums::new(), size: 0 })
    }

    /// Gives content its final name if it has this digest.
    ///
    /// # Errors
    /// When it has another one, or the disk refuses.
    pub(super) fn keep(&self, incoming: Incoming, digest: &Digest) -> Result<(), Refused> {
        let Incoming { mut file, hasher, algorithm, sums, size } = incoming;
        let found = match algorithm == digest.algorithm() {
            true => hasher.finish(),
            false => hash_again(file.as_file_mut(), digest.algorithm())?,
        };
        if found != *digest {
            return Err(Refused::Digest(found));
        }
        let place = self.dir.join(digest.layout_path());
        if place.is_file() && self.is_whole(digest) {
            return Ok(());
        }
        file.as_file().sync_all()?;
        if size > FRAME as u64 {
            self.write(&self.frames_path(digest), &sums.finish())?;
        }
        persist(file, &place)?;
        Ok(())
    }

    /// Copies content that is served from elsewhere, so that what was pushed stays whole without it.
    ///
    /// # Errors
    /// When it cannot be read or kept.
    pub(super) fn adopt(&self, from: &dyn BlobRead, digest: &Digest) -> Result<(), Refused> {
        let mut incoming = self.begin(digest.algorithm())?;
        let mut reader = from.open(digest, 0).map_err(io::Error::other)?;
        let mut piece = vec![0; 256 << 10];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => incoming.write(&piece[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.keep(incoming, digest)
    }

    /// Whether what is there can still be read; damaged content is replaced by a new push of it.
    fn is_whole(&self, digest: &Digest) -> bool {
        let read = self.open(digest, 0).map(|mut reader| io::copy(&mut reader, &mut io::sink()));
        matches!(read, Ok(Ok(_)))
    }

    fn frames_path(&self, digest: &Digest) -> PathBuf {
        self.dir.join("frames").join(digest.algorithm().as_str()).join(digest.hex())
    }

    /// Writes a small file under its final name at once or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(self.dir.join("incoming"))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        persist(file, path)
    }
}

impl Incoming {
    /// The name of its file: long and random, so that it can name an upload.
    pub(super) fn id(&self) -> String {
        self.file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The digest will be by `algorithm` after all. What has come in already is hashed again at the end.
    pub(super) fn expect(&mut self, algorithm: Algorithm) {
        if self.size == 0 && self.algorithm != algorithm {
            self.hasher = Hasher::new(algorithm);
            self.algorithm = algorithm;
        }
    }

    /// The next bytes.
    ///
    /// # Errors
    /// When the disk refuses; what was written of them does not count.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            self.file.as_file().set_len(self.size)?;
            self.file.seek(SeekFrom::Start(self.size))?;
            return Err(error);
        }
        self.hasher.update(bytes);
        self.sums.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }
}

impl BlobRead for Pushed {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let found = optional(fs::metadata(self.dir.join(digest.layout_path())));
        let found = found.map_err(|source| ContentError::Read { digest: digest.clone(), source })?;
        Ok(found.map(|found| found.len()))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let wrong = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ContentError::Missing { digest: digest.clone() },
            io::ErrorKind::InvalidData => ContentError::Damaged { digest: digest.clone() },
            _ => ContentError::Read { digest: digest.clone(), source },
        };
        let path = self.dir.join(digest.layout_path());
        if fs::metadata(&path).map_err(wrong)?.len() <= FRAME as u64 {
            let bytes = fs::read(&path).map_err(wrong)?;
            if !digest.matches(&bytes) {
                return Err(ContentError::Damaged { digest: digest.clone() });
            }
            let mut reader = io::Cursor::new(bytes);
            reader.set_position(offset);
            return Ok(Box::new(reader));
        }
        let sums = fs::read(self.frames_path(digest)).map_err(wrong)?;
        let checked = Checked::open(&sums, offset, |start| {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(start))?;
            Ok(file)
        });
        Ok(Box::new(checked.map_err(wrong)?))
    }
}

fn hash_again(file: &mut File, algorithm: Algorithm) -> io::Result<Digest> {
    file.rewind()?;
    let mut hasher = Hasher::new(algorithm);
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&piece[..count]),
        }
    }
}

fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Brings the names in a folder to disk, if there is such a folder.
fn sync(folder: &Path) -> io::Result<()> {
    optional(File::open(folder))?.map_or(Ok(()), |folder| folder.sync_all())
}

/// A folder's entries, sorted; a folder that is not there is empty.
fn list(folder: &Path) -> io::Result<Vec<String>> {
    let entries = optional(fs::read_dir(folder))?;
    let names =
        entries.into_iter().flatten().map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

fn optional<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(pushed: &Pushed, bytes: &[u8], digest: &Digest) -> Result<(), Refused> {
        let mut incoming = pushed.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        pushed.keep(incoming, digest)
    }

    fn read(pushed: &Pushed, digest: &Digest) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        pushed.open(digest, 0).map_err(io::Error::other)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn only_content_with_the_digest_is_kept_whatever_the_algorithm() {
        let dir = tempfile::tempdir().unwrap();
        let pushed = Pushed::open(dir.path()).unwrap();
        for digest in [Digest::sha256(b"abc"), Digest::of(Algorithm::Sha512, b"abc")] {
            assert!(matches!(keep(&pushed, b"abd", &digest), Err(Refused::Digest(_))));
            assert_eq!(pushed.stat(&digest).unwrap(), None);
            keep(&pushed, b"abc", &digest).unwrap();
            assert_eq!(read(&pushed, &digest).unwrap(), b"abc");
        }
        assert_eq!(list(&dir.path().join("incoming")).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn damaged_content_is_not_given_away_and_a_new_push_mends_it() {
        let dir = tempfile::tempdir().unwrap();
        let pushed = Pushed::open(dir.path()).unwrap();
        let digest = Digest::sha256(b"abc");
        keep(&pushed, b"abc", &digest).unwrap();
        fs::write(dir.path().join(digest.layout_path()), b"abX").unwrap();
        assert!(read(&pushed, &digest).is_err());
        keep(&pushed, b"abc", &digest).unwrap();
        assert_eq!(read(&pushed, &digest).unwrap(), b"abc");
    }

    #[test]
    fn repositories_tags_and_manifests_are_found_again_by_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let descriptor =
            Descriptor { digest: Digest::sha256(b"{}"), size: 2, media_type: "application/x".into() };
        {
            let pushed = Pushed::open(dir.path()).unwrap();
            let tags = ["v1".to_owned(), "a".to_owned()];
            pushed.put_manifest("x/y/z", &tags, &descriptor, None, b"{}").unwrap();
            pushed.put_manifest("x/y", &[], &descriptor, None, b"{}").unwrap();
            assert!(matches!(Pushed::open(dir.path()), Err(ServeError::Busy { .. })), "one process only");
        }
        let pushed = Pushed::open(dir.path()).unwrap();
        assert_eq!(pushed.names().unwrap(), ["x/y", "x/y/z"]);
        assert_eq!(pushed.tags("x/y/z").unwrap().unwrap(), ["a", "v1"]);
        assert_eq!(pushed.tags("x").unwrap(), None);
        assert_eq!(pushed.tag("x/y/z", "v1").unwrap(), Some(descriptor.digest.clone()));
        assert_eq!(pushed.tag("x/y", "v1").unwrap(), None);
        assert_eq!(pushed.manifest("x/y", &descriptor.digest).unwrap(), Some(descriptor.clone()));
        assert_eq!(pushed.manifest("x", &descriptor.digest).unwrap(), None);
    }
}
