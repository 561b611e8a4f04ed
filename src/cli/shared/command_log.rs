//! Writes a record of the running command to the evidence log. The record is made from the report
//! of the command and the files that it read.

use super::output_file::check_folder;
use super::verb_report::BundleMember;
use super::{CliError, Exit, ReportMember, VerbReport};
use crate::evidence::{
    CommandPredicate, EvidenceLog, LoggedItem, NamedDigest, RecordedInput, RemovedContent,
    statement,
};
use jiff::Timestamp;
use landfall_model::report::{ErrorInfo, Progress, RunStatus};
use landfall_model::{Digest, Failure, Limits, locked, redact_userinfo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The verbs that are recorded: they produce, move, delete or approve locked content. Verbs that
/// only derive files from it, such as `export`, and the long-running `serve` are not recorded.
const RECORDED: [&str; 11] = [
    "lock", "update", "refresh", "pull", "pack", "sign", "verify", "push", "mirror", "publish",
    "gc",
];

/// The flag of commands that only show what they would do.
const DRY_RUN: &str = "--dry-run";

/// The maximum length of the message of an error in a record, in characters.
const MAX_MESSAGE: usize = 4000;

/// The maximum length of a name in a record, in characters. A record with the maximum
/// number of such names still fits into one line of the log.
const MAX_NAME: usize = 250;

/// The command line as it is recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocation {
    /// The verb.
    pub command: String,
    /// The flags that were given, without their values.
    pub flags: Vec<String>,
}

/// Records one command in the evidence log.
pub(crate) struct CommandLog {
    /// The file of the log, as the user named it.
    pub(crate) path: PathBuf,
    invocation: Invocation,
    started: Timestamp,
    inputs: Arc<RecordedInputs>,
}

/// The result of a command.
pub(crate) struct CommandResult<'a> {
    pub report: &'a VerbReport,
    pub status: RunStatus,
    pub exit: Exit,
    pub error: Option<&'a ErrorInfo>,
}

impl CommandLog {
    /// Starts to record the command in the log at `path`; `None` if it is not a recorded verb.
    /// Checks that the log can be written, so that no work is done that could not be recorded.
    pub(crate) fn begin(
        path: PathBuf,
        invocation: &Invocation,
        inputs: &Arc<RecordedInputs>,
        progress: &dyn Progress,
    ) -> Result<Option<CommandLog>, CliError> {
        if !RECORDED.contains(&invocation.command.as_str()) {
            return Ok(None);
        }
        // an existing log may be in a folder to which nothing else can be written
        if !path.exists() {
            check_folder("the log", &path)?;
        }
        if EvidenceLog::open(&path)?.check_end()? {
            progress.note(&format!(
                "note: the last line of the log {} is incomplete: a command was killed while it \
                 wrote the line; the next record confirms that",
                path.display()
            ));
        }
        Ok(Some(CommandLog {
            path,
            invocation: invocation.clone(),
            started: Timestamp::now(),
            inputs: Arc::clone(inputs),
        }))
    }

    /// Appends the record of the command, which ended with `result`. Returns the hash of the
    /// record.
    pub(crate) fn append(&self, result: &CommandResult<'_>) -> Result<Digest, Failure> {
        let mut inputs = self.inputs.list();
        let subject = subject(result.report, &inputs);
        inputs.truncate(Limits::DEFAULT.log_record_names);
        for input in &mut inputs {
            input.content.name = shortened(&input.content.name, MAX_NAME);
        }
        let predicate = self.predicate(inputs, result);
        let mut log = EvidenceLog::open(&self.path)?;
        log.append(&statement(&subject, &predicate))
    }

    fn predicate(
        &self,
        inputs: Vec<RecordedInput>,
        result: &CommandResult<'_>,
    ) -> CommandPredicate {
        let CommandResult { report, .. } = result;
        let bundle = report.bundle();
        let signatures = bundle.and_then(|bundle| bundle.signatures.as_ref());
        let signers = bundle.and_then(|bundle| bundle.signers.as_ref());
        let lost = report.items.iter().filter(|item| item.status.is_loss());
        CommandPredicate {
            command: self.invocation.command.clone(),
            version: env!("CARGO_PKG_VERSION"),
            flags: self.invocation.flags.clone(),
            started_on: time(self.started),
            finished_on: time(Timestamp::now()),
            inputs,
            registry: report.destination().map(|to| without_secrets(to)),
            signatures: first_ones(signatures.into_iter().flatten().cloned()),
            signers: first_ones(signers.into_iter().flatten().map(|by| by.key.clone())),
            series: bundle.and_then(|bundle| bundle.serial.series.clone()),
            serial: bundle.and_then(|bundle| bundle.serial.number),
            status: result.status,
            exit: result.exit as u8,
            totals: report.totals(),
            lost: lost
                .take(Limits::DEFAULT.log_record_names)
                .map(|item| LoggedItem {
                    kind: item.kind,
                    name: shortened(&without_secrets(&item.name), MAX_NAME),
                    status: item.status,
                })
                .collect(),
            // a dry run lists content that it did not remove
            removed: removed(report)
                .filter(|_| !self.invocation.flags.iter().any(|flag| flag == DRY_RUN)),
            error: result.error.map(|error| ErrorInfo {
                message: shortened(&message_without_secrets(&error.message), MAX_MESSAGE),
                item: error
                    .item
                    .as_ref()
                    .map(|item| shortened(&without_secrets(item), MAX_NAME)),
                ..error.clone()
            }),
        }
    }
}

/// The subject of the command: the bundle and the lock in its report. If the report names neither,
/// the bundles and locks that the command read.
fn subject(report: &VerbReport, inputs: &[RecordedInput]) -> Vec<NamedDigest> {
    let mut subject = Vec::new();
    let bundle = report.bundle();
    if let Some(BundleMember { path, digest, .. }) = bundle {
        subject.push(NamedDigest::new(without_secrets(path), digest));
    }
    let published = report.find(|member| match member {
        ReportMember::Published { lock, .. } => Some(lock),
        _ => None,
    });
    let lock = report.lock().or(bundle.map(|bundle| &bundle.lock));
    if let Some(found) = lock.or(published) {
        let file = inputs
            .iter()
            .find(|input| input.role == "lock" && input.content.is(found));
        let name = file.map_or("lock", |file| &file.content.name);
        subject.push(NamedDigest::new(name, found));
    }
    if subject.is_empty() {
        let named = inputs
            .iter()
            .filter(|input| matches!(&*input.role, "lock" | "bundle"));
        subject.extend(
            named
                .take(Limits::DEFAULT.log_record_names)
                .map(|input| input.content.clone()),
        );
    }
    subject
}

/// The content that `gc` removed from a store, or `push --prune` from a registry.
fn removed(report: &VerbReport) -> Option<RemovedContent> {
    let mut digests: Vec<String> = report.find(|member| match member {
        ReportMember::Pruned {
            deleted: true,
            manifests,
            ..
        } => {
            let names = manifests.iter();
            let names = names.map(|gone| format!("{}@{}", gone.repository, gone.digest));
            Some(names.collect())
        }
        ReportMember::Removed(files) => {
            Some(files.iter().map(|file| file.digest.to_string()).collect())
        }
        ReportMember::RemovedBlobs(blobs) => {
            Some(blobs.iter().map(|blob| blob.digest.to_string()).collect())
        }
        _ => None,
    })?;
    let count = digests.len();
    digests.sort();
    digests.truncate(Limits::DEFAULT.log_record_names);
    Some(RemovedContent { count, digests })
}

/// As many texts as a record can contain.
fn first_ones(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.take(Limits::DEFAULT.log_record_names).collect()
}

/// The text, cut after `most` characters.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A time in UTC with milliseconds.
fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

// The files that a command read, with their digests, for the evidence log.

/// Collects the files that a command reads.
#[derive(Default)]
pub(crate) struct RecordedInputs(Mutex<BTreeSet<RecordedInput>>);

impl RecordedInputs {
    /// Adds a file: its role, such as `lock`, its path or URL, and its digest.
    pub(crate) fn add(&self, role: &str, path: &Path, digest: &Digest) {
        let input = RecordedInput {
            role: role.to_owned(),
            content: NamedDigest::new(without_secrets(&path.display().to_string()), digest),
        };
        let mut inputs = locked(&self.0);
        inputs.insert(input);
    }

    /// The files so far, sorted.
    pub(crate) fn list(&self) -> Vec<RecordedInput> {
        let inputs = locked(&self.0);
        inputs.iter().cloned().collect()
    }
}

/// The name of a file without the account and the signature that a URL may contain.
pub(crate) fn without_secrets(name: &str) -> String {
    let Some((scheme, rest)) = name.split_once("://") else {
        return name.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", redact_userinfo(host))
}

/// A message with [`without_secrets`] applied to each URL, because it may quote an argument of the
/// user.
pub(crate) fn message_without_secrets(message: &str) -> String {
    let words = message.split_inclusive(char::is_whitespace);
    words
        .map(|word| {
            let text = word.trim_end();
            without_secrets(text) + &word[text.len()..]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_secret() {
        for (name, shown) in [
            ("bundle.tar.zst", "bundle.tar.zst"),
            ("a?b@c", "a?b@c"),
            ("s3://bucket/b.tar.zst?X-Sig=abc", "s3://bucket/b.tar.zst"),
            ("s3://me:hunter2@bucket/b#x", "s3://***@bucket/b"),
        ] {
            assert_eq!(without_secrets(name), shown);
        }
        assert_eq!(
            message_without_secrets(
                "cannot read http://joe:pw@h.test: refused\nhelp: `x s3://b/c?sig=y` a@b"
            ),
            "cannot read http://***@h.test: refused\nhelp: `x s3://b/c a@b"
        );
    }
}
