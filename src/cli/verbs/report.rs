//! `landfall report`: writes an HTML page about a bundle.

use crate::cli::shared::bundle_flags::BundleFlags;
use crate::cli::shared::comparison::{ComparedSide, LockComparison};
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::output_file::{OutputMark, ReplaceFlag, write_result};
use crate::cli::shared::page_recorder::{Age, PageRecorder, is_own_page};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::evidence::{LoggedCommand, names_content, verify_log};
use clap::Args;
use landfall_bundle::Bundle;
use landfall_item::lockfile::losses;
use landfall_model::report::{RunStatus, count_of};
use landfall_model::{Limits, today};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Write an HTML page about a bundle
///
/// It shows sizes, shared layers, changes, signatures, SBOMs and licences, and with --log the
/// history of the bundle.
#[derive(Args)]
pub(crate) struct ReportCommand {
    #[command(flatten)]
    bundle: BundleFlags,
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceFlag,
    /// Also show what changed since this lock, bundle or receipt
    #[arg(long, value_name = "LOCK|BUNDLE|RECEIPT")]
    since: Option<PathBuf>,
    /// Report images that were built longer ago than this, as in 90d, 26w or 1y
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
}

impl ReportCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (accepted, content) = self.bundle.open(context)?;
        let bundle = &accepted.bundle;
        let lock = bundle.available_lock()?;
        let items = lock
            .each_entry()
            .map(|entry| entry.item())
            .chain(losses(&lock))
            .collect();
        let mut report = VerbReport::of(items);
        report.add(accepted.report_member());
        ImageSignatures::recorded(&lock).add_to(&mut report);
        let page = PageRecorder::of_bundle();
        page.set_content(&lock, Some(&*content));
        if let Some(age) = &self.older_than {
            report.add_notices(page.older_than(age, today()));
        }
        if let Some(since) = &self.since {
            let new = ComparedSide::bundle(bundle)?;
            let old = ComparedSide::open(context, since)?;
            LockComparison::new(context, &old, &new)?.add_to(&mut report);
        }
        add_log(context, bundle, &mut report)?;
        let status = if bundle.partial().is_empty() {
            RunStatus::Done
        } else {
            RunStatus::Partial
        };
        let html = page.page("report", status, None, &report);
        let signed = match (accepted.signed_by_text(), &bundle.signature_keys()[..]) {
            (Some(signers), _) => signers,
            (None, []) => "not signed".to_owned(),
            (None, keys) => {
                format!(
                    "signature {} (not checked; use verify --allowed-signers FILE)",
                    keys.join(", ")
                )
            }
        };
        let line = format!(
            "{}: {}, {signed}",
            accepted.path.display(),
            count_of(report.items.len(), "item")
        );
        write_result(
            VerbOutcome::new(report, html, Exit::Done),
            self.replace
                .file(self.out.as_deref(), OutputMark::Content(&is_own_page)),
            &[line],
            context,
        )
    }
}

/// Adds the last records that name the bundle or its lock, from the log of `--log` or the site.
/// Checks the whole log.
fn add_log(context: &Context, bundle: &Bundle, report: &mut VerbReport) -> Result<(), CliError> {
    let Some(path) = context.log_path() else {
        return Ok(());
    };
    if !path.exists() {
        context
            .progress
            .note(&format!("note: there is no log {} yet", path.display()));
        return Ok(());
    }
    let digests = [bundle.digest(), bundle.fingerprint()];
    let mut records = VecDeque::new();
    let summary = verify_log(&path, None, |record| {
        if names_content(&record, &digests) {
            records.push_back(LoggedCommand::new(&record));
        }
        if records.len() > Limits::DEFAULT.log_record_names {
            records.pop_front();
        }
    })?;
    report.add(ReportMember::Log {
        path: path.display().to_string(),
        head: summary.head,
        records: Some(summary.records),
        check: None,
    });
    report.add(ReportMember::Records(records));
    Ok(())
}
