//! Writes the pack that a server sends: entries are copied from the stored packs.

use super::database::{ObjectDatabase, ObjectIndex};
use super::entry_header::{EntryForm, EntryHeader};
use super::scan::damaged;
use super::write::PackWriter;
use crate::error::GitError;
use std::collections::HashMap;
use std::io::Write;

/// Writes a pack with `objects`, in this order, to `out`. The data of entries is copied as it is
/// stored; only a delta whose base is not sent before it is replaced by the whole object. With
/// `offset_deltas`, deltas name their base by its offset, otherwise by its id.
///
/// # Errors
/// If an object cannot be read, or `out` fails.
pub fn send_pack(
    database: &ObjectDatabase,
    objects: &[ObjectIndex],
    offset_deltas: bool,
    out: &mut dyn Write,
) -> Result<(), GitError> {
    let mut writer = PackWriter::new(out);
    let mut offsets: HashMap<u32, u64> = HashMap::new();
    writer.head(objects.len() as u32)?;
    for object in objects {
        let offset = writer.at;
        let stored = database.object(*object);
        let base = stored
            .base
            .map(|base| offsets.get(&base).map(|offset| (base, *offset)));
        match base {
            None => writer.write(&database.raw_entry(stored)?)?,
            Some(Some((base, base_offset))) => {
                let entry = database.raw_entry(stored)?;
                let mut payload = &entry[..];
                let size = EntryHeader::read(&mut payload).map_err(damaged)?.size;
                let form = if offset_deltas {
                    EntryForm::DeltaToOffset(offset - base_offset)
                } else {
                    EntryForm::DeltaToId(database.id(ObjectIndex(base)))
                };
                let mut header = Vec::new();
                EntryHeader { form, size }.write(&mut header);
                writer.write(&header)?;
                writer.write(payload)?;
            }
            Some(None) => {
                let form = EntryForm::Whole(stored.kind);
                writer.entry(form, &database.content(*object)?)?;
            }
        }
        offsets.insert(object.0, offset);
    }
    writer.finish().map(drop)
}
