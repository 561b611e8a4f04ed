//! What several verbs share: arguments, the context that every verb starts from, reports and
//! progress. Code for one verb belongs into the file or folder of that verb.

pub(super) mod age;
pub(super) mod bundle_flags;
pub(super) mod bundle_report;
pub(super) mod bundle_with_bases;
pub(super) mod compared_side;
pub(super) mod comparison;
pub(super) mod content_flags;
pub(super) mod context;
pub(super) mod delivery_flags;
pub(super) mod disk_space;
pub(super) mod draft;
pub(super) mod draft_entries;
pub(super) mod failed_items;
pub(super) mod finish;
pub(super) mod from_archives;
pub(super) mod github;
pub(super) mod image_facts;
pub(super) mod image_signatures;
pub(super) mod input_file;
pub(super) mod interrupt;
pub(super) mod listing;
pub(super) mod lock_args;
pub(super) mod lock_flags;
pub(super) mod locked_charts;
pub(super) mod logging;
pub(super) mod manifest_args;
pub(super) mod new_files;
pub(super) mod open_bundle;
pub(super) mod opened_file;
pub(super) mod options;
pub(super) mod outcome;
pub(super) mod output_file;
pub(super) mod package_changes;
pub(super) mod packages_key;
pub(super) mod page_recorder;
pub(super) mod patch_report;
pub(super) mod previous_lock;
pub(super) mod progress;
pub(super) mod remote_bundle;

pub(super) mod series_history;
pub(super) mod shard;
pub(super) mod stale_lock;
pub(super) mod store_location;
pub(super) mod summary;
pub(super) mod unified_diff;
pub(super) mod update_flags;
pub(super) mod update_report;

pub(crate) use super::error::{CliError, Exit};
pub(crate) use context::Context;
pub(crate) use finish::finish;
pub(crate) use options::{GlobalFlags, OutputMode, nonzero_seconds};
pub(crate) use outcome::VerbOutcome;
