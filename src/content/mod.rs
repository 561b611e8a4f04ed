//! The narrow waist: content by digest. It is read ([`BlobRead`]), opened at its source ([`Source`]) and
//! brought to a sink ([`Sink`]); [`fetch`] moves one part from a source to a sink.

mod cached;
mod chain;
mod entry;
mod error;
mod local_first;
mod parallel;
mod part;
mod range_plan;
mod read;
mod sink;
mod source;
mod stream;
mod transfer;
mod writer;

pub use cached::{Cached, Keep};
pub use chain::{BlobChain, MissingBlob, missing_blobs};
pub use entry::{AttachedReferrer, Entry};
pub use error::StoreError;
pub(crate) use error::io;
pub use local_first::LocalFirst;
pub use parallel::{IdleSlots, fetch_parallel};
pub use part::{Origin, Part};
pub use read::{BlobRead, ContentError};
pub use sink::{ByteRange, PartialBlob, Sink, merged};
pub use source::Source;
pub use stream::read_blocking;
pub use transfer::{LocalSource, TransferError, checked, fetch, read_part, whole};
pub use writer::Writer;
