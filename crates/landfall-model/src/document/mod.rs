//! Documents that people write: typed reading of YAML, with errors that name the position and the
//! fix; trees of YAML with positions (`yaml_tree`); merges into YAML text; archives.

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
mod signature_rule;
mod source_text;
mod update_rule;
mod vars;
pub mod yaml;
mod yaml_tree;

pub use archive::{ArchiveBudget, TarForm, UnpackError, UnpackedFiles, unpack};
pub use control_characters::control_characters;
pub use diagnostic::Diagnostic;
pub use file_kinds::{
    is_leftover, is_pipe, open_input, output_descriptor, read_input, read_text_input,
};
pub use line_index::LineIndex;
pub use location::SourceLocation;
pub use merge::{
    DecodedText, MergeError, MergeRules, ObjectPosition, SiteFacts, documents, merge, objects,
};
pub use moving_var::{ChartVersions, MovingVar, VersionsFrom};
pub use nearest::nearest;
pub use read::read;
pub use read_all::{ReadAll, read_all};
pub use signature_rule::{
    KeylessSigner, KeylessSigners, ProvenanceRule, SignatureRule, TrustedRootRule,
    UpdatedTrustedRoot,
};
pub use source_text::{SourceSpan, SourceText};
pub use update_rule::UpdateRule;
pub use vars::{ManifestVars, OWN_URL, TemplateField, VarBinding, VarPart};
pub use yaml_tree::{
    NotYaml, ScalarStyle, YamlAlias, YamlDocument, YamlDocuments, YamlEntry, YamlMapping, YamlNode,
    YamlScalar, YamlSequence, anchored_scalar, comment_spans,
};
