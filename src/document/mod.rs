//! Documents that people write: typed reading of YAML, with errors that name the place and the fix; archives.

mod archive;
mod diagnostic;
mod explain;
mod nearest;
mod read;
mod spans;

pub use archive::{ArchiveError, Files, unpack};
pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::line_column;
pub use nearest::nearest;
pub use read::read;
pub use spans::Node;
