//! Reading the signature of a bundle: an entry after the contents index.

use super::header::read_header;
use super::volume_reader::VolumeReader;
use crate::bundle::format::damage::Damage;
use crate::bundle::format::form::Form;
use crate::bundle::format::names::SIGNATURE;
use crate::bundle::format::stored::stored_len;
use crate::bundle::format::{frame, header};
use crate::model::Limits;

/// Reads the signature whose entry begins at `at`. `None` where something else stands there.
pub(crate) fn read(volumes: &VolumeReader, at: u64) -> Result<Option<Vec<u8>>, Damage> {
    let head = read_header(volumes, at).ok().filter(|(name, _)| name == SIGNATURE);
    let Some((_, size)) = head else { return Ok(None) };
    let damage = |why: &str| Damage::new(SIGNATURE, at, why);
    if !(1..=Limits::default().signature_bytes).contains(&size) {
        return Err(damage("no signature has this size"));
    }
    let at = at + stored_len(header::BLOCK as u64);
    let bytes = volumes.bytes_at(at, stored_len(size) as usize).ok();
    let text = bytes.and_then(|bytes| frame::decode(Form::Stored, &bytes, size as usize).ok());
    text.map(Some).ok_or_else(|| damage("it is damaged"))
}
