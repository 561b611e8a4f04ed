//! The handlers of the distribution API: reading, pushing and deleting.

mod blob_upload;
mod deletion;
mod manifest_upload;
mod read;
mod referrers;

pub(crate) use self::blob_upload::{begin_upload, resume_upload};
pub(crate) use self::deletion::{clean_up, delete_blob, delete_manifest};
pub(crate) use self::manifest_upload::put_manifest;
pub(crate) use self::read::{ReadResult, has_manifest, read};
