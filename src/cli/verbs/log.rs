//! `landfall log`: checks the evidence log.

use crate::cli::shared::verb_report::LogCheck;
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::evidence::{EvidenceSummary, LoggedCommand, verify_log};
use clap::{Args, Subcommand};
use landfall_model::Digest;
use landfall_model::report::count_of;
use std::path::PathBuf;

/// Check an evidence log, the file that --log writes
#[derive(Args)]
pub(crate) struct EvidenceCommand {
    #[command(subcommand)]
    what: EvidenceSubcommand,
}

#[derive(Subcommand)]
enum EvidenceSubcommand {
    Verify(EvidenceVerify),
}

/// Check that no record was changed, moved, removed or inserted
///
/// Exits with 4 if the log is damaged. Records that were removed from its end are detected only
/// with --head: note the hash that this command prints, and store it in another place.
#[derive(Args)]
struct EvidenceVerify {
    /// The log [default: --log, or log of the site]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The hash of a record that the log must contain, as this command printed it before
    #[arg(long, value_name = "sha256:…")]
    head: Option<Digest>,
}

impl EvidenceCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self.what {
            EvidenceSubcommand::Verify(verify) => verify.run(context),
        }
    }
}

impl EvidenceVerify {
    fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let path = self.file.or_else(|| context.log_path()).ok_or_else(|| {
            CliError::usage("no log is named")
                .with_help("name its file, or use --site FILE with the key log")
        })?;
        if !path.exists() {
            let message = format!("there is no log {}", path.display());
            return Err(CliError::usage(message));
        }
        let mut first = None;
        let mut last = None;
        let summary = verify_log(&path, self.head.as_ref(), |record| {
            let command = LoggedCommand::new(&record);
            if first.is_none() {
                first = Some(command.clone());
            }
            last = Some(command);
        })?;
        let EvidenceSummary {
            records,
            head,
            incomplete_line,
            anchor,
        } = &summary;
        let mut text = format!(
            "{}: consistent, {}\n",
            path.display(),
            count_of(*records as usize, "record")
        );
        let mut line = |name: &str, value: String| text += &format!("  {name:<18}{value}\n");
        for (name, command) in [("first", &first), ("last", &last)] {
            if let Some(LoggedCommand { time, command, .. }) = command {
                line(name, format!("{time} {command}"));
            }
        }
        if let Some(head) = head {
            line("head", head.to_string());
        }
        match anchor {
            Some(seq) => line(
                "--head",
                format!("record {seq}, followed by {}", records - seq),
            ),
            None => line("end", "not proven; --head HASH proves it".to_owned()),
        }
        if let Some(number) = incomplete_line {
            line(
                "incomplete",
                format!("line {number}: its command was killed, or the line was cut off"),
            );
        }
        let mut report = VerbReport::default();
        report.add(ReportMember::Log {
            path: path.display().to_string(),
            head: summary.head,
            records: Some(summary.records),
            check: Some(LogCheck {
                incomplete_line: summary.incomplete_line,
                anchor: summary.anchor,
            }),
        });
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }
}
