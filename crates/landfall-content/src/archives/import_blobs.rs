//! Imports the blobs that a lock needs from an archive into a store. They are verified like blobs
//! from upstream.

use super::members::ArchiveMember;
use super::source_archive::{SourceArchive, digest_of_name, is_unpacked_layer};
use crate::{LocalStore, WriteError};
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest, for_each_chunk};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::PathBuf;

/// The wanted blobs that were found in an archive.
#[derive(Debug, Clone)]
pub struct ImportedBlobs {
    /// The path of the archive.
    pub path: PathBuf,
    /// The digests of the blobs.
    pub digests: BTreeSet<Digest>,
    /// The size of the blobs in bytes.
    pub bytes: u64,
    /// The members that could not be used, and why; one line each.
    pub skipped: Vec<String>,
}

/// Copies the `wanted` blobs from `archive` to `store`, and removes the copied blobs from `wanted`.
/// The remaining blobs are fetched upstream. [`ImportedBlobs::skipped`] lists members that could
/// not be used.
///
/// # Errors
/// If the store cannot be written.
pub fn import_blobs(
    archive: &SourceArchive,
    wanted: &mut BTreeMap<Digest, Descriptor>,
    store: &dyn LocalStore,
    progress: &dyn Progress,
) -> Result<ImportedBlobs, WriteError> {
    let mut imported = ImportedBlobs::none_of(archive);
    let mut uncompressed_layers = 0usize;
    // kept in a variable: an error of the store ends the pull, an error of the archive does not
    let mut refused = None;
    let read = archive.members(&mut |member| {
        let blob = digest_of_name(&member.path).and_then(|digest| wanted.get(&digest));
        let Some(blob) = blob.cloned() else {
            uncompressed_layers += usize::from(is_unpacked_layer(&member.path));
            return Ok(());
        };
        match import_member(member, &blob, store, progress)? {
            Ok(()) => {
                store.mark_present(&blob);
                progress.item(&blob.digest.to_string());
                wanted.remove(&blob.digest);
                imported.bytes += blob.size;
                imported.digests.insert(blob.digest);
            }
            // wrong bytes are skipped: upstream may still have the right ones
            Err(why @ (WriteError::Digest { .. } | WriteError::Size { .. })) => {
                push_skipped(&mut imported.skipped, format!("{}: {why}", member.path));
            }
            Err(error) => {
                refused = Some(error);
                return Err(io::Error::other("the store cannot be written"));
            }
        }
        Ok(())
    });
    if let Some(error) = refused {
        return Err(error);
    }
    // not an error: blobs that a damaged archive lacks are fetched upstream
    if let Err(error) = read {
        imported
            .skipped
            .push(format!("it cannot be read to its end: {error}"));
    }
    if uncompressed_layers > 0 {
        let layers_are = if uncompressed_layers == 1 {
            "1 layer is"
        } else {
            &format!("{uncompressed_layers} layers are")
        };
        imported.skipped.push(format!(
            "{layers_are} unpacked, as docker archives have them: no layer of the lock \
             has these bytes"
        ));
    }
    Ok(imported)
}

/// The largest number of lines about members that could not be used.
const MAX_SKIPPED: usize = 100;

/// Adds a line about a member that could not be used. Beyond the limit, one line says that there
/// are more.
pub(super) fn push_skipped(skipped: &mut Vec<String>, line: String) {
    match skipped.len() {
        0..MAX_SKIPPED => skipped.push(line),
        MAX_SKIPPED => skipped.push("further members that cannot be used are not listed".into()),
        _ => {}
    }
}

/// Returns which of the `wanted` blobs an archive has, by the names and sizes of its members; the
/// bytes are not verified.
///
/// # Errors
/// If the archive cannot be read to its end.
pub fn find_blobs(
    archive: &SourceArchive,
    wanted: &BTreeMap<Digest, Descriptor>,
) -> io::Result<ImportedBlobs> {
    let mut found = ImportedBlobs::none_of(archive);
    archive.members(&mut |member| {
        let blob = digest_of_name(&member.path).and_then(|digest| wanted.get(&digest));
        if let Some(blob) = blob.filter(|blob| blob.size == member.size)
            && found.digests.insert(blob.digest.clone())
        {
            found.bytes += blob.size;
        }
        Ok(())
    })?;
    Ok(found)
}

impl ImportedBlobs {
    fn none_of(archive: &SourceArchive) -> ImportedBlobs {
        ImportedBlobs {
            path: archive.path().into(),
            digests: BTreeSet::new(),
            bytes: 0,
            skipped: Vec::new(),
        }
    }
}

/// Writes one member to the store. Bytes that an earlier run has written are skipped. The inner
/// error is that of the store; of [`WriteError::Digest`] and [`WriteError::Size`] the cause is the
/// archive, whose bytes do not match the name. Fails if the archive cannot be read.
pub(super) fn import_member(
    member: &mut ArchiveMember<'_>,
    blob: &Descriptor,
    store: &dyn LocalStore,
    progress: &dyn Progress,
) -> io::Result<Result<(), WriteError>> {
    // checked before anything is written, so that a wrong member leaves no partial file
    if member.size != blob.size {
        return Ok(Err(WriteError::Size {
            wanted: blob.digest.clone(),
            size: blob.size,
            found: member.size,
        }));
    }
    let mut writer = match store.begin(blob, false) {
        Ok(Some((writer, _))) => writer,
        Ok(None) => return Ok(Ok(())),
        Err(error) => return Ok(Err(error)),
    };
    // a tar cannot be read from the middle, so bytes that the store has are read and dropped
    let written = writer.offset();
    io::copy(&mut (&mut member.reader).take(written), &mut io::sink())?;
    let copied = for_each_chunk(&mut member.reader, |piece| {
        writer.write(piece)?;
        progress.bytes(piece.len() as u64);
        Ok(())
    })?;
    Ok(copied.and_then(|()| writer.commit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobRead;
    use crate::store::DiskStore;
    use landfall_model::report::SilentProgress;

    fn blob(bytes: &[u8]) -> Descriptor {
        Descriptor::of(bytes, "x/y")
    }

    #[test]
    fn wanted_blobs_are_imported_once_and_wrong_bytes_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let good = blob(b"good");
        let bad = blob(b"what it should be");
        let half = blob(b"resumed");
        std::fs::create_dir_all(from.join("blobs/sha256")).unwrap();
        let put = |descriptor: &Descriptor, bytes: &[u8]| {
            std::fs::write(from.join(descriptor.digest.layout_path()), bytes).unwrap();
        };
        put(&good, b"good");
        put(&bad, b"what it should NOT");
        put(&half, b"resumed");
        std::fs::write(from.join(format!("{}.tar", "cd".repeat(32))), "a layer").unwrap();
        let store = DiskStore::open(&dir.path().join("store")).unwrap();
        let mut writer = store.writer(&half).unwrap().unwrap();
        writer.write(b"resu").unwrap();
        drop(writer);
        let wanted = [&good, &bad, &half].map(|blob| (blob.digest.clone(), blob.clone()));
        let mut wanted = BTreeMap::from(wanted);
        let archive = SourceArchive::open(&from).unwrap();
        assert_eq!(
            find_blobs(&archive, &wanted).unwrap().digests.len(),
            2,
            "one blob has another size"
        );
        let imported = import_blobs(&archive, &mut wanted, &store, &SilentProgress).unwrap();
        assert_eq!((imported.digests.len(), imported.bytes), (2, 11));
        assert_eq!(store.read(&half).unwrap(), b"resumed");
        assert_eq!(wanted.keys().collect::<Vec<_>>(), [&bad.digest]);
        let path = bad.digest.layout_path();
        let unpacked = "1 layer is unpacked, as docker archives have them: no layer of the lock \
                        has these bytes";
        assert_eq!(
            imported.skipped,
            [
                format!("{path}: received 18 bytes of {}, expected 17", bad.digest),
                unpacked.to_owned()
            ]
        );
        put(&bad, b"what it shoulD be");
        let imported = import_blobs(&archive, &mut wanted, &store, &SilentProgress).unwrap();
        let found = Digest::sha256(b"what it shoulD be");
        assert_eq!(
            imported.skipped,
            [
                format!(
                    "{path}: received wrong bytes: expected {}, got {found}",
                    bad.digest
                ),
                unpacked.to_owned()
            ]
        );
        assert_eq!(store.stat(&bad.digest).unwrap(), None);
    }
}
