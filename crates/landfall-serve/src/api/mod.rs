//! The handlers of the distribution API: reading, pushing and deleting.

mod blob_upload;
mod deletion;
mod manifest_upload;
mod read;
mod referrers;
mod upload_body;

pub(crate) use blob_upload::{begin_upload, resume_upload};
pub(crate) use deletion::{clean_up, delete_blob, delete_manifest};
pub(crate) use manifest_upload::put_manifest;
pub(crate) use read::{ReadResult, read};
