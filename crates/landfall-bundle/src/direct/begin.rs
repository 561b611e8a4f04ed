//! Begins a direct bundle, or resumes one that an earlier run left.

use super::direct_bundle::{CompressedEntries, DirectBundle, DirectState};
use super::journal::{self, DirectJournal};
use super::reused_bundle::ReusedBundle;
use super::stored_offsets::stored_offsets;
use crate::error::BundleError;
use crate::format::content_form::ContentForm;
use crate::format::contents::{ContentsIndex, PackOptions};
use crate::format::names::FRONT_LEN;
use crate::plan::pack_plan::PackPlan;
use crate::plan::planned_entry::ContentSource;
use crate::read::bundle::Bundle;
use crate::read::verify::verify;
use crate::write::PackedBundle;
use crate::write::index_builder::IndexBuilder;
use crate::write::partial_file::{claim, clear_work, room, work_folder};
use landfall_content::store::DiskStore;
use landfall_model::report::Progress;
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{Digest, Limits};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The state of a direct bundle when it is opened.
#[derive(Debug)]
pub enum DirectStart {
    /// The bundle exists already, and its content was verified. Its signatures name these keys; the
    /// signatures were not verified.
    Complete(PackedBundle, Vec<PublicKey>),
    /// The bundle must be written, from the beginning or from where an earlier run stopped.
    Incomplete(DirectBundle),
}

impl DirectBundle {
    /// Begins the bundle of `plan` at `out`, or resumes the one that an earlier run left in
    /// `OUT.partial`. Content of `store`, of an earlier bundle at `out`, or of an unfinished bundle
    /// for another lock is not downloaded again. `signer` signs the bundle at the end.
    ///
    /// # Errors
    /// If another process is writing the bundle, if the bundle would exceed a limit of its readers,
    /// if the disk has too little space, or if the files cannot be created.
    pub fn begin(
        plan: Arc<PackPlan>,
        store: Option<DiskStore>,
        out: &Path,
        options: PackOptions,
        signer: Option<Arc<Signer>>,
        progress: &dyn Progress,
    ) -> Result<DirectStart, BundleError> {
        let index = IndexBuilder::new(&plan, options);
        index.check_size(out, &Limits::default())?;
        let mut contents = index.contents;
        let (path, mut file) = claim(out)?;
        let work = work_folder(&path);
        let failed = BundleError::write(&path);
        let old = Bundle::open(out).ok();
        // the bundle may be complete already, from a run that was killed after publishing it
        if let Some(old) = &old
            && out.is_file()
            && has_same_plan(old.contents(), &contents)
            && let keys = old.signing_keys()
            && signer
                .as_ref()
                .is_none_or(|signer| keys.contains(signer.key()))
            && verify(old, progress).is_ok()
        {
            fs::remove_file(&path)
                .and_then(|()| clear_work(&path))
                .map_err(failed)?;
            return Ok(DirectStart::Complete(
                PackedBundle::one_file(old.digest(), old.bytes(), out),
                keys,
            ));
        }
        fs::create_dir_all(&work).map_err(failed)?;
        let journal_path = work.join("journal");
        // another release, level or lock gives other bytes, so writing cannot be resumed
        let of = format!(
            "landfall {} level {} lock {}",
            contents.landfall, options.level, plan.fingerprint
        );
        match journal::read(&journal_path).map_err(failed)? {
            Some((first, _)) if first == of => {}
            Some(_) => {
                ReusedBundle::set_aside(&path, &journal_path, &work).map_err(failed)?;
                file = claim(out)?.1;
            }
            // without a journal, the content of the file is unknown
            None => file.set_len(0).map_err(failed)?,
        }
        let compressed = plan
            .entries
            .iter()
            .position(|entry| entry.form == ContentForm::Compressed);
        let compressed = compressed.unwrap_or(plan.entries.len());
        let (starts, end) = stored_offsets(&plan, compressed);
        contents
            .entries
            .iter_mut()
            .zip(starts)
            .for_each(|(entry, start)| entry.offset = start);
        let blobs = plan.entries.iter().enumerate().skip(FRONT_LEN);
        let mut untrimmed: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (entry_index, entry) in blobs.clone() {
            if let ContentSource::Trimmed { of, .. } = &entry.content {
                untrimmed
                    .entry(of.digest.clone())
                    .or_default()
                    .push(entry_index);
            }
        }
        let state = DirectState {
            options,
            out: out.into(),
            journal: DirectJournal::open(&journal_path, &of).map_err(failed)?,
            spool: DiskStore::open(&work.join("spool"))
                .map_err(|error| failed(io::Error::other(error)))?,
            store,
            old,
            reuse: ReusedBundle::open(&work),
            compressed,
            entry_indexes: blobs
                .map(|(entry_index, entry)| (entry.descriptor.digest.clone(), entry_index))
                .collect(),
            untrimmed,
            stored: Mutex::default(),
            compressed_entries: Mutex::new(CompressedEntries {
                frames: Vec::new(),
                end,
            }),
            arrivals: Default::default(),
            contents,
            plan,
            path,
            file: file.into(),
            signer,
        };
        // before the first byte is fetched
        state.check_room()?;
        state.recover();
        Ok(DirectStart::Incomplete(DirectBundle(Arc::new(state))))
    }
}

/// Whether two indexes are of bundles with the same release, options, features, lock, missing
/// items, series and serial. Entries are not compared: these fields determine them.
fn has_same_plan(one: &ContentsIndex, other: &ContentsIndex) -> bool {
    one.landfall == other.landfall
        && one.options == other.options
        && one.requires == other.requires
        && one.locks == other.locks
        && one.partial == other.partial
        && (&one.series, one.serial) == (&other.series, other.serial)
}

impl DirectState {
    /// Fails if the disk has less free space than the rest of the bundle may need. The largest
    /// compressed entry counts twice, because it can be in the spool and in the file at once.
    fn check_room(&self) -> Result<(), BundleError> {
        let compressed = &self.plan.entries[self.compressed..];
        let largest = compressed
            .iter()
            .map(|entry| entry.descriptor.size)
            .max()
            .unwrap_or(0);
        // the space in use rather than the length: the file has holes for content that has not
        // arrived
        let taken = self.file.metadata().map_or(0, |data| data.blocks() * 512)
            + self.reuse.as_ref().map_or(0, ReusedBundle::taken);
        room(
            self.plan
                .needed_bytes()
                .saturating_add(largest)
                .saturating_sub(taken),
            &self.out,
        )
    }
}
