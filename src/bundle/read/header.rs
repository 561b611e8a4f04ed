//! Reading the tar header at an offset.

use super::volume_reader::VolumeReader;
use crate::bundle::format::form::Form;
use crate::bundle::format::stored::stored_len;
use crate::bundle::format::{frame, header};

/// Name and size in the tar header whose frame begins at `at`.
///
/// # Errors
/// Why there is none.
pub(crate) fn read_header(volumes: &VolumeReader, at: u64) -> Result<(String, u64), String> {
    let bytes = volumes.bytes_at(at, stored_len(header::BLOCK as u64) as usize);
    let bytes = bytes.map_err(|error| format!("cannot be read: {error}"))?;
    let block = frame::decode(Form::Stored, &bytes, header::BLOCK)?;
    header::decode(&block).ok_or_else(|| "the tar header is damaged".into())
}
