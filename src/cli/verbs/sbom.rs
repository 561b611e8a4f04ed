//! `landfall sbom`: writes a CycloneDX SBOM of a bundle.

use crate::cli::shared::bundle_flags::BundleFlags;
use crate::cli::shared::image_facts::ImageFacts;
use crate::cli::shared::output_file::{OutputMark, ReplaceFlag, write_result};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use clap::Args;
use landfall_bundle::sbom::{SbomSubject, cyclonedx};
use landfall_content::LockEntry;
use landfall_model::report::count_of;
use serde_json::Value;
use std::path::PathBuf;

/// Write a CycloneDX SBOM of a bundle
///
/// It links to the SBOMs of the images in the bundle; `landfall export referrers` writes those. The
/// same bundle gives the same document, so it contains no time unless `SOURCE_DATE_EPOCH` is set.
#[derive(Args)]
pub(crate) struct SbomCommand {
    #[command(flatten)]
    bundle: BundleFlags,
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceFlag,
}

impl SbomCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let (accepted, content) = self.bundle.open(context)?;
        let bundle = &accepted.bundle;
        let lock = bundle.available_lock()?;
        let subject = SbomSubject {
            digest: bundle.digest(),
            lock: bundle.fingerprint(),
            series: bundle.serial().map(|serial| (serial.series, serial.number)),
            is_partial: !bundle.partial().is_empty(),
            time: source_date()?,
        };
        let licences = |entry: &LockEntry| ImageFacts::of(entry, &*content).licences;
        let (document, linked) = cyclonedx(&subject, &lock, &*content, &context.limits, licences)?;
        let mut report = VerbReport::of(lock.each_entry().map(|entry| entry.item()).collect());
        report.add(accepted.report_member());
        let count: usize = linked.values().map(Vec::len).sum();
        let components = document["components"].as_array().map_or(0, Vec::len);
        let documents = match count {
            0 => "no image has an SBOM of its own".to_owned(),
            count => format!("{} linked", count_of(count, "document")),
        };
        let line = format!("{}; {documents}", count_of(components, "component"));
        let made = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
        report.add(ReportMember::Sbom(document));
        write_result(
            VerbOutcome::new(report, made, Exit::Done),
            self.replace
                .file(self.out.as_deref(), OutputMark::Content(&is_own_sbom)),
            &[line],
            context,
        )
    }
}

/// Whether `text` is an SBOM that names landfall as its tool.
fn is_own_sbom(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|document: Value| {
        document["bomFormat"] == "CycloneDX"
            && document["metadata"]["tools"]["components"][0]["name"] == "landfall"
    })
}

/// The time of `SOURCE_DATE_EPOCH` in RFC 3339 format, if it is set. See
/// <https://reproducible-builds.org/specs/source-date-epoch/>.
fn source_date() -> Result<Option<String>, CliError> {
    let Some(text) = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let time = text
        .parse()
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    match time {
        Some(time) => Ok(Some(time.to_string())),
        None => Err(CliError::usage(format!(
            "SOURCE_DATE_EPOCH is '{text}', not a number of seconds since 1970"
        ))),
    }
}
