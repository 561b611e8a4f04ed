//! Documents that people write: typed reading of YAML, with errors that name the place and the fix;
//! archives.

mod archive;
mod control_characters;
mod diagnostic;
mod explain;
mod file_kinds;
#[cfg(any(test, feature = "testkit"))]
pub mod growth;
mod line_index;
mod location;
mod merge;
mod moving_var;
mod nearest;
mod read;
mod read_all;
mod source_text;
mod spans;
mod vars;
pub mod yaml;
mod yaml_tree;

pub use archive::{ArchiveBudget, ArchiveError, Files, TarForm, unpack};
pub use control_characters::control_characters;
pub use diagnostic::Diagnostic;
pub use file_kinds::{is_leftover, is_pipe, open_input, read_input, read_text_input};
pub use line_index::LineIndex;
pub use location::Location;
pub use merge::{DecodedText, MergeError, MergeRules, documents, merge};
pub use moving_var::{ChartVersions, MovingVar, VersionsFrom};
pub use nearest::nearest;
pub use read::read;
pub use read_all::{ReadAll, read_all};
pub use source_text::{SourceSpan, SourceText};
pub use spans::Node;
pub use vars::{At, Binding, Field, OWN_URL, Vars};
