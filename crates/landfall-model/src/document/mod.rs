//! Documents that people write: typed reading of YAML, with errors that name the position and the
//! fix; trees of YAML with positions (`yaml_tree`); merges into YAML text; archives.

mod archive;
mod control_characters;
mod diagnostic;
mod explain;
mod file_kinds;
#[cfg(any(test, feature = "testkit"))]
pub mod growth;
mod merge;
mod read;
mod source_text;
mod update_rule;
mod vars;
pub mod yaml;
mod yaml_tree;
mod yaml_words;

pub use self::archive::{
    ArchiveBudget, BundledChart, GzipReader, TarForm, UnpackedFiles, bundled_charts, unpack,
    unpack_chart, unreadable_archive,
};
pub use self::control_characters::control_characters;
pub use self::diagnostic::Diagnostic;
pub use self::file_kinds::{
    TextEncoding, decode_text, is_leftover, is_pipe, open_input, output_descriptor, read_input,
    read_text_input, utf16_units,
};
pub use self::merge::{
    DecodedText, MergeError, MergeRules, ObjectPosition, SiteFacts, documents, merge, objects,
};
pub use self::read::{ReadAll, read, read_all};
pub use self::source_text::{LineIndex, SourceLocation, SourceSpan, SourceText};
pub use self::update_rule::{
    KeylessSigner, KeylessSigners, ProvenanceRule, SignatureRule, TrustedRootRule, UpdateRule,
    UpdatedTrustedRoot,
};
pub use self::vars::{
    ChartVersions, ManifestVars, MovingVar, TemplateField, VarPart, VersionsFrom, fill_own_url,
};
pub use self::yaml_tree::{
    NotYaml, ScalarStyle, YamlAlias, YamlDocument, YamlDocuments, YamlEntry, YamlMapping, YamlNode,
    YamlScalar, YamlSequence, anchored_scalar, comment_spans,
};
pub use self::yaml_words::{in_yaml_1_2, key_text, with_quoted_words};
pub use crate::std_tools::nearest;
