//! Code that several verbs share: arguments, the context that every verb starts from, reports and
//! progress. Code for one verb belongs in the file or folder of that verb.

pub(super) mod bundle_flags;
pub(super) mod bundle_report;
pub(super) mod bundle_with_bases;
pub(super) mod command_log;
pub(super) mod comparison;
pub(super) mod context;
pub(super) mod delivery_flags;
pub(super) mod draft;
pub(super) mod failed_items;
pub(super) mod finish;
pub(super) mod image_facts;
pub(super) mod input_file;
pub(super) mod interrupt;
pub(super) mod listing;
pub(super) mod locked_charts;
pub(super) mod logging;
pub(super) mod open_bundle;
pub(super) mod options;
pub(super) mod output_file;
pub(super) mod package_changes;
pub(super) mod page_recorder;
pub(super) mod patch_report;
pub(super) mod progress;
pub(super) mod shard;
pub(super) mod stale_lock;
pub(super) mod store_location;
pub(super) mod unified_diff;
pub(super) mod update_report;
pub(super) mod verb_report;

pub(crate) use self::context::Context;
pub(crate) use self::finish::{ResultPrinter, VerbOutcome};
pub(crate) use self::options::{GlobalFlags, OutputMode, nonzero_count, nonzero_seconds};
pub(crate) use self::verb_report::{ReportMember, VerbReport};
pub(crate) use super::error::{CliError, Exit};
