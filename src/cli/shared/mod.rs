//! What several verbs share: flags, the context they start from, how results end and are told.

pub(super) mod bases;
pub(super) mod context;
pub(super) mod delivery;
pub(super) mod drafted;
pub(super) mod exit;
pub(super) mod exported;
pub(super) mod exported_from;
pub(super) mod input_file;
pub(super) mod interrupt;
pub(super) mod kustomize;
pub(super) mod listing;
pub(super) mod lock_flags;
pub(super) mod new_files;
pub(super) mod node_guides;
pub(super) mod not_locked;
pub(super) mod open_bundle;
pub(super) mod options;
pub(super) mod packed;
pub(super) mod progress;
pub(super) mod result_file;
pub(super) mod rewrite_report;
pub(super) mod room;
pub(super) mod stdout;
pub(super) mod summary;
pub(super) mod taken;
pub(super) mod unified_diff;
pub(super) mod wishes;

pub(crate) use context::Context;
pub(crate) use exit::{Exit, Failure, Outcome, finish};
pub(crate) use options::{Global, OutputMode, patience};
