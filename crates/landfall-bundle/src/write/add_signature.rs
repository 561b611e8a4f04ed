//! Adds a signature to an existing bundle. Only the end of the file changes, and the checksums next
//! to it.

use super::publish::remove_file;
use super::{publish, sign_index};
use crate::error::BundleError;
use crate::format::footer::{self, Footer};
use crate::format::frame::FrameHash;
use crate::format::names::{
    NAMESPACE, SUMS_NAMESPACE, base_of, checksums_path, signature_path, suffixed,
};
use crate::format::stored::ReadAt;
use crate::read::Bundle;
use crate::read::volume_reader::VolumeReader;
use crate::read::volume_set::hash_file;
use landfall_content::{if_exists, parent_folder, sync_folder};
use landfall_model::Limits;
use landfall_model::sign::{Signature, Signer};
use landfall_os::{FileExt, is_at, open_locked};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Adds a signature with this key to the bundle at `path`, unless the key has already signed it.
/// Returns the bundle with the signature.
///
/// The new end is first written to `FILE.signing` next to the file. If the process is killed while
/// it changes the file, another run completes the change from `FILE.signing`. If the disk is full,
/// the file gets its old end again.
///
/// # Errors
/// If the file is not a bundle, cannot be signed or written, or is being written by another
/// process.
pub fn add_signature(path: &Path, signer: &Signer) -> Result<Bundle, BundleError> {
    let failed = BundleError::write(path);
    let volumes = VolumeReader::open(&[path.into()])?;
    // the end of the bundle is in the last volume
    let (last, start) = volumes.last();
    // the writers of a bundle lock it too, so that two of them cannot change its end at once
    let file = open_locked(File::options().write(true), &last).map_err(failed)?;
    let file = file.ok_or_else(|| BundleError::busy(path))?;
    let redo = suffixed(&last, ".signing");
    let bundle = match (Bundle::open(path), fs::read(&redo)) {
        // only if the bundle cannot be opened: the saved end may belong to an earlier bundle with
        // this name
        (Err(_), Ok(unfinished)) => {
            put_end(&file, &unfinished).map_err(failed)?;
            Bundle::open(path)?
        }
        (opened, _) => opened?,
    };
    remove_file(&redo).map_err(failed)?;
    let footer = &bundle.0.index.footer;
    let texts = bundle.signatures();
    let index = bundle.0.index_bytes()?;
    // an invalid signature with this key does not count, and a valid one is added
    let has_signed = texts.iter().any(|text| {
        Signature::parse(text.as_bytes())
            .is_ok_and(|text| text.key() == signer.key() && text.check(NAMESPACE, &index).is_ok())
    });
    if !has_signed {
        let texts = [texts, &[sign_index(signer, &index, path)?]].concat();
        let frame = footer::to_frame(&texts);
        let bytes = frame.len() as u64;
        let limit = Limits::default().signatures_bytes;
        if bytes > limit {
            let what = "list of signatures";
            return Err(BundleError::too_large(path, what, bytes, limit));
        }
        // the index does not change, so the bundle digest does not change either
        let signed = Footer {
            signed: bytes,
            signatures: FrameHash::of(&frame),
            ..footer.clone()
        };
        let tar_end = footer.tar_end().filter(|end| *end >= start);
        let tar_end = tar_end.ok_or_else(|| {
            failed(io::Error::other(
                "its end is split between two volumes; join them first",
            ))
        })?;
        let reader = &bundle.0.volumes;
        let length = reader.length().saturating_sub(tar_end) as usize;
        let old = reader.bytes_at(tar_end, length).map_err(failed)?;
        let at = (tar_end - start).to_le_bytes();
        let old = [&at[..], &old[..]].concat();
        let end = [&at[..], &frame[..], &signed.to_bytes()[..]].concat();
        publish::write(&redo, &end)
            .and_then(|()| sync_folder(parent_folder(&redo)))
            .and_then(|()| {
                put_end(&file, &end).inspect_err(|_| {
                    // overwrites bytes that are on the disk, so it needs no space
                    let _ = put_end(&file, &old).and_then(|()| fs::remove_file(&redo));
                })
            })
            .and_then(|()| fs::remove_file(&redo))
            .map_err(failed)?;
    }
    check_is_current(&file, &last)?;
    // `path` may be a folder, and the name of a bundle in one file may end like that of a volume
    let base = if bundle.is_split() {
        base_of(&last)
    } else {
        last.clone()
    };
    sum_again(&base, &last, signer)?;
    Bundle::open(path)
}

/// Fails if the open `file` is not the file at `path`: a process that packed the bundle at the same
/// time has replaced it, and the new file was not signed.
fn check_is_current(file: &File, path: &Path) -> Result<(), BundleError> {
    if is_at(file, path).unwrap_or(false) {
        return Ok(());
    }
    Err(BundleError::busy(path))
}

/// Writes the new end into the file. The first eight bytes of `end` are its offset.
fn put_end(file: &File, end: &[u8]) -> io::Result<()> {
    let (at, bytes) = end.split_first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let at = u64::from_le_bytes(*at);
    file.write_all_at(bytes, at)?;
    file.set_len(at + bytes.len() as u64)?;
    file.sync_all()
}

/// Updates the checksum of `file` next to the bundle `base`, if there is one, and signs the
/// checksums again.
fn sum_again(base: &Path, file: &Path, signer: &Signer) -> Result<(), BundleError> {
    let path = checksums_path(base);
    let failed = BundleError::write(&path);
    let Some(text) = if_exists(fs::read(&path)).map_err(failed)? else {
        return Ok(());
    };
    let sum = hash_file(file).map_err(failed)?;
    let new = publish::replaced(&text, file, &sum);
    let signature_file = signature_path(base);
    let is_signed = fs::read(&signature_file).is_ok_and(|bytes| {
        Signature::parse(&bytes).is_ok_and(|old| old.check(SUMS_NAMESPACE, &new).is_ok())
    });
    // if the checksums do not change, they may still have an old signature: a process may have been
    // killed before it wrote the new one
    if new == text && is_signed {
        return Ok(());
    }
    let signature = signer.sign(SUMS_NAMESPACE, &new);
    let signature = signature.map_err(BundleError::sign(&path))?;
    publish::write(&path, &new).map_err(failed)?;
    publish::write(&signature_file, signature.as_bytes())
        .and_then(|()| sync_folder(parent_folder(&path)))
        .map_err(BundleError::write(&signature_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: &str = " is being written by another process";

    #[test]
    fn a_bundle_that_was_replaced_while_it_was_signed_is_not_signed() {
        let dir = tempfile::tempdir().unwrap();
        let [path, new] = ["b", "new"].map(|name| dir.path().join(name));
        fs::write(&path, "old").unwrap();
        let file = File::open(&path).unwrap();
        check_is_current(&file, &path).unwrap();
        fs::write(&new, "new").unwrap();
        fs::rename(&new, &path).unwrap();
        let replaced = check_is_current(&file, &path);
        assert!(replaced.unwrap_err().to_string().contains(BUSY));
        fs::remove_file(&path).unwrap();
        let removed = check_is_current(&file, &path);
        assert!(removed.unwrap_err().to_string().contains(BUSY));
    }
}
