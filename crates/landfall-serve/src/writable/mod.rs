//! The folder of `--writable`: pushed content on disk.
//!
//! ```text
//! blobs/<algorithm>/<hex>                          content and manifests, as in an OCI layout
//! .landfall/                                       uploads in progress, as in every store
//! frames/<algorithm>/<hex>                         checksums of blobs larger than a frame
//! repositories/<name>/_tags/<tag>                  a digest
//! repositories/<name>/_manifests/<algorithm>/<hex> a media type
//! repositories/<name>/_referrers/<subject hex>/<hex>   an entry of a referrers response
//! ```
//!
//! It is a store on disk whose content no lock names, so the commands that clean up stores refuse
//! it. Repository names and tags are
//! safe paths: by their grammar, no component begins with a dot, and no component of a repository
//! name begins with `_`.

mod blobs;
mod frame_checksums;
mod quota;
mod remove;

use self::blobs::WritableBlobs;
use self::quota::FolderQuota;
use landfall_content::store::{DiskStore, PUSHED_MARKER};
use landfall_content::{BlobRead, if_exists};
use landfall_model::{
    Algorithm, Descriptor, Digest, Failure, JsonText, ReferrerManifest, locked, unpoisoned,
};
use landfall_os::exact_path;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use self::blobs::IncomingBlob;
pub(crate) use self::quota::WritableStoreError;
pub(crate) use self::remove::SweepResult;

/// The folder of `--writable`, opened by this process.
pub(crate) struct WritableStore {
    disk: DiskStore,
    /// Whether the file system of the folder takes `V1` and `v1` for one name.
    folds_case: bool,
    /// The content by digest, including that of manifests.
    pub(crate) blobs: Arc<WritableBlobs>,
    /// Read-locked while a manifest and its tags are written; write-locked while manifests or blobs
    /// are removed.
    blobs_lock: RwLock<()>,
    /// Locked during a removal, also while it reads links and does not have `blobs_lock` yet.
    removal_lock: Mutex<()>,
    /// Locked as long as this process serves the folder.
    _process_lock: File,
}

impl WritableStore {
    /// Opens the folder for at most `max_bytes`, and locks it for this process. Creates it if it
    /// does not exist.
    pub(crate) fn open(dir: &Path, max_bytes: Option<u64>) -> Result<WritableStore, Failure> {
        match WritableStore::try_open(dir, max_bytes) {
            Ok(Some(store)) => Ok(store),
            Ok(None) => Err(Failure::failed(format!(
                "cannot store pushes in {}: another landfall process is using it; stop that \
                 process or choose another folder with --writable",
                dir.display()
            ))),
            Err(error) => Err(unusable_folder(dir, &error)),
        }
    }

    /// Returns `None` if another process serves the folder.
    fn try_open(dir: &Path, max_bytes: Option<u64>) -> io::Result<Option<WritableStore>> {
        let process_lock = prepare_folder(dir)?;
        match process_lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(source)) => return Err(source),
        }
        let dir = &exact_path(dir)?;
        // earlier releases kept uploads here. They cannot be resumed: their hash state is lost
        if_exists(fs::remove_dir_all(dir.join("incoming")))?;
        let disk = DiskStore::open_pushed(dir)?;
        Ok(Some(WritableStore {
            folds_case: dir.join(PUSHED_MARKER.to_uppercase()).exists(),
            blobs: Arc::new(WritableBlobs::open(disk.clone(), max_bytes)?),
            disk,
            blobs_lock: RwLock::default(),
            removal_lock: Mutex::default(),
            _process_lock: process_lock,
        }))
    }

    pub(crate) fn dir(&self) -> &Path {
        self.disk.dir()
    }

    pub(crate) fn quota(&self) -> &FolderQuota {
        &self.blobs.quota
    }

    /// Prevents the removal of blobs until the guard is dropped, so that the blobs of a manifest
    /// exist until the manifest names them.
    pub(crate) fn hold_blobs(&self) -> RwLockReadGuard<'_, ()> {
        unpoisoned(self.blobs_lock.read())
    }

    /// Waits until no push holds the blobs, and prevents new holds until the guard is dropped.
    fn lock_blobs(&self) -> RwLockWriteGuard<'_, ()> {
        unpoisoned(self.blobs_lock.write())
    }

    /// Allows one removal at a time. Pushes are not affected.
    fn begin_removal(&self) -> MutexGuard<'_, ()> {
        locked(&self.removal_lock)
    }

    fn repository_folder(&self, name: &str) -> PathBuf {
        self.dir().join("repositories").join(name)
    }

    fn tags_folder(&self, name: &str) -> PathBuf {
        self.repository_folder(name).join("_tags")
    }

    /// The file that has the digest of a tag.
    pub(super) fn tag_path(&self, name: &str, tag: &str) -> PathBuf {
        let folder = self.tags_folder(name);
        if self.folds_case {
            folder.join(tag_file(tag))
        } else {
            folder.join(tag)
        }
    }

    fn manifests_folder(&self, name: &str) -> PathBuf {
        self.repository_folder(name).join("_manifests")
    }

    fn manifest_path(&self, name: &str, digest: &Digest) -> PathBuf {
        self.manifests_folder(name)
            .join(digest.algorithm().as_str())
            .join(digest.hex())
    }

    /// The folder with a file for each referrer of `subject`.
    fn referrers_folder(&self, name: &str, subject: &Digest) -> PathBuf {
        self.repository_folder(name)
            .join("_referrers")
            .join(subject.hex())
    }

    /// The digest that `tag` points to.
    pub(crate) fn tag(&self, name: &str, tag: &str) -> io::Result<Option<Digest>> {
        let path = self.tag_path(name, tag);
        match if_exists(fs::read_to_string(path))? {
            Some(text) => text.trim().parse().map(Some).map_err(io::Error::other),
            None => Ok(None),
        }
    }

    /// The manifest with this digest, if it was pushed to this repository.
    pub(crate) fn manifest(&self, name: &str, digest: &Digest) -> io::Result<Option<Descriptor>> {
        let path = self.manifest_path(name, digest);
        // an existing blob is not enough: it may have been pushed to another repository
        let Some(media_type) = if_exists(fs::read_to_string(path))? else {
            return Ok(None);
        };
        let size = self.blobs.stat(digest).map_err(io::Error::other)?;
        Ok(size.map(|size| Descriptor::new(digest.clone(), size, media_type)))
    }

    /// The tags of a repository, sorted; `None` if nothing was pushed to it.
    pub(crate) fn tags(&self, name: &str) -> io::Result<Option<Vec<String>>> {
        if !self.manifests_folder(name).is_dir() {
            return Ok(None);
        }
        let names = list_folder(&self.tags_folder(name))?;
        let mut tags: Vec<String> = names.iter().map(|name| tag_of_file(name)).collect();
        tags.sort();
        Ok(Some(tags))
    }

    /// The names of all repositories, sorted.
    pub(crate) fn repositories(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut open = vec![String::new()];
        while let Some(prefix) = open.pop() {
            for entry in list_folder(&self.repository_folder(&prefix))? {
                if entry == "_manifests" {
                    names.push(prefix.trim_end_matches('/').to_owned());
                // a repository may contain other repositories, as in `a` and `a/b`
                } else if !entry.starts_with('_') {
                    open.push(format!("{prefix}{entry}/"));
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// The digests of the manifests that were pushed to the repository.
    fn manifests(&self, name: &str) -> io::Result<Vec<Digest>> {
        let mut digests = Vec::new();
        for algorithm in Algorithm::ALL {
            let folder = self.manifests_folder(name).join(algorithm.as_str());
            for hex in list_folder(&folder)? {
                digests.extend(
                    format!("{}:{hex}", algorithm.as_str())
                        .parse::<Digest>()
                        .ok(),
                );
            }
        }
        Ok(digests)
    }

    /// The manifests with this subject that were pushed to the repository, as the hex digits of
    /// their digests, sorted.
    pub(crate) fn referrers(&self, name: &str, subject: &Digest) -> io::Result<Vec<String>> {
        list_folder(&self.referrers_folder(name, subject))
    }

    /// The descriptor of a referrer for a referrers response. `hex` comes from
    /// [`WritableStore::referrers`]. `None` if the referrer was removed meanwhile, or a crash left
    /// only its entry.
    pub(crate) fn referrer(
        &self,
        name: &str,
        subject: &Digest,
        hex: &str,
    ) -> io::Result<Option<Box<RawValue>>> {
        let digest: Option<Digest> = Algorithm::ALL
            .into_iter()
            .find_map(|algorithm| format!("{}:{hex}", algorithm.as_str()).parse().ok());
        let is_complete = match digest {
            Some(digest) => self.manifest(name, &digest)?.is_some(),
            None => false,
        };
        let path = self.referrers_folder(name, subject).join(hex);
        match if_exists(fs::read_to_string(path))? {
            Some(text) if is_complete => Ok(Some(RawValue::from_string(text)?)),
            _ => Ok(None),
        }
    }

    /// Adds a received manifest to the repository. Content is written before the names that refer
    /// to it: blobs, then the manifest, then its tags.
    pub(crate) fn put_manifest(
        &self,
        name: &str,
        tags: &[String],
        descriptor: &Descriptor,
        referrer: Option<&ReferrerManifest>,
        incoming: IncomingBlob,
    ) -> Result<(), WritableStoreError> {
        let digest = &descriptor.digest;
        self.blobs.keep(incoming, digest)?;
        // blobs on disk before the manifest, the manifest before its tags: after a crash, no
        // manifest or tag may refer to missing content
        self.blobs.sync_names()?;
        if let Some(referrer) = referrer {
            let path = self.referrers_folder(name, &referrer.subject);
            let path = path.join(digest.hex());
            let entry = referrer.entry.to_string();
            // The entry is stored in the form in which it is listed, so that a page of referrers
            // reads no manifests. It is written before the manifest: after a crash, clients do not
            // push again a manifest that is here, so its entry would never be added. An entry
            // without its manifest is not listed.
            self.disk.replace(&path, entry.as_bytes())?;
        }
        let manifest = self.manifest_path(name, digest);
        let media_type = descriptor.media_type.as_bytes();
        self.disk.replace(&manifest, media_type)?;
        let target = digest.to_string();
        for tag in tags {
            let path = self.tag_path(name, tag);
            self.disk.put_file(&path, target.as_bytes())?;
        }
        Ok(self.disk.sync_folder(&self.tags_folder(name))?)
    }
}

/// The name of the file of a tag where names that differ in case only are equal: a capital letter
/// is written as `!` and its small letter. No tag contains `!`.
fn tag_file(tag: &str) -> String {
    let mut name = String::new();
    for c in tag.chars() {
        if c.is_ascii_uppercase() {
            name.push('!');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// The tag whose file has this name; the inverse of [`tag_file`].
fn tag_of_file(name: &str) -> String {
    let mut parts = name.split('!');
    let mut tag = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        tag.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        tag.push_str(letters.as_str());
    }
    tag
}

/// Creates the folder with its marker. Refuses a folder with content that landfall
/// did not create. Returns the file for the process lock.
fn prepare_folder(dir: &Path) -> io::Result<File> {
    let marker = dir.join(PUSHED_MARKER);
    // the server deletes files in this folder, so it must not contain other files
    if !list_folder(dir)?.is_empty() && !marker.is_file() {
        return Err(io::Error::other(
            "it is not empty and was not created by landfall; name a new or an empty folder",
        ));
    }
    fs::create_dir_all(dir)?;
    fs::write(&marker, "content that was pushed to landfall serve\n")?;
    File::options()
        .create(true)
        // used only as a lock; its content does not matter
        .truncate(false)
        .write(true)
        .open(dir.join("lock"))
}

/// The names in a folder, sorted; empty if the folder does not exist.
fn list_folder(folder: &Path) -> io::Result<Vec<String>> {
    let Some(entries) = if_exists(fs::read_dir(folder))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

// The references of pushed manifests: blobs or child manifests, and subjects.

/// The references of one manifest. They never change, because a manifest never changes.
#[derive(Debug, Default)]
struct ManifestLinks {
    /// Config and layers, or children; sorted, without duplicates.
    needs: Vec<Digest>,
    subject: Option<Digest>,
}

/// The references of each manifest in a repository.
type RepositoryLinks = BTreeMap<Digest, ManifestLinks>;

impl ManifestLinks {
    /// Reads the links of a manifest of any type. Members that are not links may have any value.
    fn parse(bytes: &[u8]) -> serde_json::Result<ManifestLinks> {
        let text = String::from_utf8_lossy(bytes);
        let [manifests, config, layers, blobs, subject] =
            JsonText::new(&text).members(["manifests", "config", "layers", "blobs", "subject"])?;
        let lists = [manifests, layers, blobs].into_iter().flatten();
        let listed = lists.filter_map(JsonText::elements).flatten();
        let mut needs: Vec<Digest> = listed.chain(config).filter_map(digest_in).collect();
        needs.sort();
        needs.dedup();
        // the links of all manifests are in memory at once
        needs.shrink_to_fit();
        Ok(ManifestLinks {
            needs,
            subject: subject.and_then(digest_in),
        })
    }
}

fn digest_in(descriptor: JsonText<'_>) -> Option<Digest> {
    let [digest] = descriptor.members_if_object(["digest"]);
    digest?.string()?.parse().ok()
}

impl WritableStore {
    /// The links of the manifests that are in the repository now. Those in `known` are not read
    /// again.
    fn links(&self, name: &str, mut known: RepositoryLinks) -> io::Result<RepositoryLinks> {
        let mut links = RepositoryLinks::new();
        for digest in self.manifests(name)? {
            let of_manifest = match known.remove(&digest) {
                // a manifest never changes, so links that were read without the lock are still
                // valid
                Some(of_manifest) => of_manifest,
                None => self.read_links(name, &digest)?,
            };
            links.insert(digest, of_manifest);
        }
        Ok(links)
    }

    /// Like [`WritableStore::links`], for all repositories by their names.
    fn all_links(
        &self,
        mut known: BTreeMap<String, RepositoryLinks>,
    ) -> io::Result<BTreeMap<String, RepositoryLinks>> {
        let mut all = BTreeMap::new();
        for name in self.repositories()? {
            let links = self.links(&name, known.remove(&name).unwrap_or_default())?;
            all.insert(name, links);
        }
        Ok(all)
    }

    fn read_links(&self, name: &str, digest: &Digest) -> io::Result<ManifestLinks> {
        let Some(descriptor) = self.manifest(name, digest)? else {
            return Ok(ManifestLinks::default());
        };
        let bytes = self.blobs.read(&descriptor).map_err(io::Error::other)?;
        ManifestLinks::parse(&bytes)
            .map_err(|error| io::Error::other(format!("{name}@{digest}: {error}")))
    }
}

/// The failure of a server whose folder for pushes cannot be read or written.
pub(crate) fn unusable_folder(dir: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot store pushes in {}: {error}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The content of a folder that an earlier release wrote, in which an image with two blobs was
    /// pushed to `team/app:V1`. The layer has more than one frame.
    #[test]
    fn a_folder_of_an_earlier_release_is_served_and_extended() {
        let layer = [&vec![0; 1 << 20][..], b"end"].concat();
        let config = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        let layer_hex = "0727a9771df217a3314039e1e1da620502d237b37aa2ddddf14850c87d245875";
        let manifest_hex = "c1e8c635d65d66c20c75de4f42d824d94f20e3f5a44db70d7affc9f83f5f8bfd";
        let manifest = format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\
             \"config\":{{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\
             \"digest\":\"sha256:{config}\",\"size\":2}},\"layers\":[{{\"mediaType\":\
             \"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"sha256:{layer_hex}\",\
             \"size\":1048579}}]}}"
        );
        let tag = format!("sha256:{manifest_hex}");
        let frames = b"\xf1\x3e\x16\xe1\xb6\xa1\xd2\x87\x62\x09\xe7\x5e\xde\x8c\x99\x76";
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write(
            ".landfall-serve",
            b"content that was pushed to landfall serve\n",
        );
        write("lock", b"");
        write("incoming/Iha6zZ9y8eKpXbVvS1qLw3Td", b"half an upload");
        write(&format!("blobs/sha256/{config}"), b"{}");
        write(&format!("blobs/sha256/{layer_hex}"), &layer);
        write(&format!("blobs/sha256/{manifest_hex}"), manifest.as_bytes());
        write(&format!("frames/sha256/{layer_hex}"), frames);
        let repository = "repositories/team/app";
        write(&format!("{repository}/_tags/V1"), tag.as_bytes());
        write(
            &format!("{repository}/_manifests/sha256/{manifest_hex}"),
            b"application/vnd.oci.image.manifest.v1+json",
        );

        let store = WritableStore::open(dir.path(), None).unwrap();
        assert!(!dir.path().join("incoming").exists());
        let used = 2 + layer.len() + manifest.len();
        assert_eq!(store.quota().used(), used as u64);
        assert_eq!(store.repositories().unwrap(), ["team/app"]);
        assert_eq!(store.tags("team/app").unwrap().unwrap(), ["V1"]);
        let digest = store.tag("team/app", "V1").unwrap().unwrap();
        let pushed = store.manifest("team/app", &digest).unwrap().unwrap();
        assert_eq!(store.blobs.read(&pushed).unwrap(), manifest.as_bytes());
        let mut served = Vec::new();
        let layer_digest = Digest::sha256(&layer);
        let mut reader = store.blobs.open(&layer_digest, 1 << 20).unwrap();
        reader.read_to_end(&mut served).unwrap();
        assert_eq!(served, b"end");
        // nothing is removed, and the same image can be pushed again
        assert_eq!(
            store.sweep(std::time::Duration::ZERO).unwrap(),
            SweepResult::default()
        );
        let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(manifest.as_bytes()).unwrap();
        let tags = ["V1".to_owned(), "v2".to_owned()];
        store
            .put_manifest("team/app", &tags, &pushed, None, incoming)
            .unwrap();
        assert_eq!(store.tags("team/app").unwrap().unwrap(), ["V1", "v2"]);
        assert_eq!(store.quota().used(), used as u64);
    }

    #[test]
    fn tags_that_differ_in_case_have_different_files() {
        for (tag, name) in [("v1", "v1"), ("V1-RC", "!v1-!r!c"), ("_x.Y", "_x.!y")] {
            assert_eq!(tag_file(tag), name);
            assert_eq!(tag_of_file(name), tag);
        }
    }

    #[test]
    fn repositories_tags_and_manifests_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let descriptor = Descriptor::new(Digest::sha256(b"{}"), 2, "application/x");
        {
            let store = WritableStore::open(dir.path(), None).unwrap();
            let tags = ["v1".to_owned(), "a".to_owned()];
            let incoming = || {
                let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
                incoming.write(b"{}").unwrap();
                incoming
            };
            store
                .put_manifest("x/y/z", &tags, &descriptor, None, incoming())
                .unwrap();
            store
                .put_manifest("x/y", &[], &descriptor, None, incoming())
                .unwrap();
            assert!(
                WritableStore::open(dir.path(), None)
                    .is_err_and(|error| error.message.contains(": another landfall process ")),
                "one process only"
            );
        }
        let store = WritableStore::open(dir.path(), None).unwrap();
        assert_eq!(store.repositories().unwrap(), ["x/y", "x/y/z"]);
        assert_eq!(store.tags("x/y/z").unwrap().unwrap(), ["a", "v1"]);
        assert_eq!(store.tags("x").unwrap(), None);
        assert_eq!(
            store.tag("x/y/z", "v1").unwrap(),
            Some(descriptor.digest.clone())
        );
        assert_eq!(store.tag("x/y", "v1").unwrap(), None);
        assert_eq!(
            store.manifest("x/y", &descriptor.digest).unwrap(),
            Some(descriptor.clone())
        );
        assert_eq!(store.manifest("x", &descriptor.digest).unwrap(), None);
    }
}
