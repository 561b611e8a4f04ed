//! Documents that people write: typed reading of YAML, with errors that name the place and the fix; archives.

mod archive;
mod control_characters;
mod diagnostic;
mod explain;
mod file_kinds;
#[cfg(test)]
pub(crate) mod growth;
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
pub(crate) mod yaml;
mod yaml_tree;

pub(crate) use archive::{ArchiveBudget, ArchiveError, Files, TarForm, unpack};
pub(crate) use control_characters::control_characters;
pub(crate) use diagnostic::Diagnostic;
pub(crate) use file_kinds::{is_leftover, is_pipe, open_input, read_input, read_text_input};
pub(crate) use line_index::LineIndex;
pub(crate) use location::Location;
pub(crate) use merge::{DecodedText, MergeError, MergeRules, documents, merge};
pub(crate) use moving_var::{ChartVersions, MovingVar, VersionsFrom};
pub(crate) use nearest::nearest;
pub(crate) use read::read;
pub(crate) use read_all::{ReadAll, read_all};
pub(crate) use source_text::{SourceSpan, SourceText};
pub(crate) use spans::Node;
pub(crate) use vars::{At, Binding, Field, OWN_URL, Vars};
