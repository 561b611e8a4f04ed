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
mod opener;
mod parallel;
mod part;
mod partial_blob;
mod range_plan;
mod read;
mod retry;
mod sink;
mod source;
mod stream;
mod transfer;
mod writer;

pub use cached::{Cached, Keep};
pub use chain::{BlobChain, MissingBlob, missing_blobs};
pub use checked::{checked, read_part};
pub use entry::{AttachedReferrer, Entry};
pub use error::{TransferError, WriteError};
pub use local_first::LocalFirst;
pub use local_sink::{Local, LocalSink};
pub use local_source::LocalSource;
pub use opener::Opener;
pub use parallel::IdleSlots;
pub use part::{Origin, Part};
pub use partial_blob::{ByteRange, PartialBlob, merged};
pub use read::{BlobRead, ContentError};
pub use retry::{Cause, Failed};
pub use sink::{BlobWrite, Sink};
pub use source::{OnWrong, Opened, Source};
pub use stream::read_blocking;
pub use transfer::{Brought, Transfer};
pub use writer::Writer;
