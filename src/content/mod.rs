//! The narrow waist: content by digest. It is read ([`BlobRead`]), opened at its source ([`Source`]) and
//! brought to a sink ([`Sink`]); one [`Transfer`] moves it between any two of them.

mod blocking;
mod cached;
mod chain;
mod checked;
mod entry;
mod error;
mod local_first;
mod local_sink;
mod local_source;
mod look;
mod opener;
mod parallel;
mod part;
mod partial_blob;
mod range_plan;
mod read;
mod retry;
mod schedule;
mod sink;
mod source;
mod stream;
mod transfer;
mod writer;

pub(crate) use cached::Cached;
pub use cached::Keep;
pub(crate) use chain::{BlobChain, MissingBlob, missing_blobs};
pub(crate) use checked::{checked, read_part};
pub(crate) use entry::{AttachedReferrer, Entry};
pub(crate) use error::{TransferError, WriteError};
pub(crate) use local_first::LocalFirst;
pub(crate) use local_sink::{Local, LocalSink};
pub(crate) use local_source::LocalSource;
pub use look::Look;
pub(crate) use opener::Opener;
pub(crate) use parallel::IdleSlots;
pub(crate) use part::{Origin, Part};
pub(crate) use partial_blob::{ByteRange, PartialBlob, merged};
pub use read::{BlobRead, ContentError};
pub(crate) use retry::{Cause, Failed};
pub(crate) use schedule::{Schedule, Step};
pub(crate) use sink::{BlobWrite, Sink};
pub(crate) use source::{OnWrong, Opened, Source};
pub(crate) use stream::read_blocking;
pub(crate) use transfer::{Brought, Transfer};
pub(crate) use writer::Writer;
