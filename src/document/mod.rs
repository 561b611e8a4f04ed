//! Documents that people write: typed reading of YAML, with errors that name the place and the fix; archives.

mod archive;
mod diagnostic;
mod explain;
mod location;
mod nearest;
mod read;
mod source_text;
mod spans;
mod vars;

pub use archive::{ArchiveError, Files, unpack};
pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::line_column;
pub use location::Location;
pub use nearest::nearest;
pub use read::read;
pub use source_text::{SourceSpan, SourceText};
pub use spans::Node;
pub use vars::{At, Field, OWN_URL, Vars};
