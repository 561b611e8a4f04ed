//! The output and the report of `landfall rewrite`.

use super::kustomize;
use crate::cli::shared::listing::text_of;
use crate::cli::shared::verb_report::{FileRow, ReferenceOutcome, ReferenceRow, ReportChange};
use crate::cli::shared::{
    CliError, Context, Exit, OutputMode, ReportMember, VerbOutcome, VerbReport,
};
use landfall_model::report::{command_word, count_of, one_line};
use landfall_model::{ImageRef, has_host};
use landfall_rewrite::audit::{FileFinding, LockCoverage};
use landfall_rewrite::{Occurrence, ReferenceMeaning, RewriteError, RewrittenText};
use std::path::Path;

const NOTHING_KNOWN: &str = "\
no reference here is in the lock, so nothing was changed. This is usual for Helm values: the \
references are defaults in the charts. `landfall render helm-values CHART` writes values that \
override them; or rewrite the output of `helm template`.";

/// What the command does with the result, according to its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewriteMode<'a> {
    Stdout,
    InPlace,
    Check,
    Diff,
    Kustomize,
    Out(&'a Path),
}

impl RewriteMode<'_> {
    /// Whether stdout is the result itself, which other programs read.
    fn has_result(self, context: &Context) -> bool {
        matches!(
            self,
            RewriteMode::Stdout | RewriteMode::Diff | RewriteMode::Kustomize
        ) || context.global.output == OutputMode::Json
    }
}

/// The result for one input.
pub(crate) struct RewrittenInput {
    pub(crate) name: String,
    /// The file, or the files of an archive, without their content.
    pub(crate) result: Result<Vec<RewrittenText>, RewriteError>,
    /// The attributes that could not be kept when the file was replaced, such as its owner.
    pub(crate) lost: Vec<String>,
}

/// The outcome of the verb. `text` is the result for stdout.
pub(crate) fn outcome(
    context: &Context,
    mode: RewriteMode<'_>,
    done: &[RewrittenInput],
    not_locked: Option<&NotLocked>,
    mut text: String,
) -> Result<VerbOutcome, CliError> {
    let members = || {
        done.iter()
            .filter_map(|done| done.result.as_ref().ok())
            .flatten()
    };
    let occurrences = || {
        members().flat_map(|member| {
            member
                .new
                .scan
                .found
                .iter()
                .map(move |found| (member, found))
        })
    };
    let failed = done.iter().filter(|done| done.result.is_err()).count();
    let count = |is: fn(&Occurrence) -> bool| occurrences().filter(|(_, one)| is(one)).count();
    let changes = count(Occurrence::is_change);
    let settled = count(|one| matches!(one.meaning, ReferenceMeaning::Settled(_)));
    let left = count(|one| matches!(one.meaning, ReferenceMeaning::Left(_)));

    let mut notes: Vec<String> = done
        .iter()
        .filter_map(|done| Some(reason(&done.name, done.result.as_ref().err()?)))
        .collect();
    for RewrittenInput { name, lost, .. } in done {
        let name = one_line(name);
        notes.extend(lost.iter().map(|lost| format!("{name}: lost {lost}")));
    }
    if mode == RewriteMode::Kustomize {
        text = kustomize::component(members(), &mut notes);
    }
    let mut report = if context.has_document() {
        report(done)
    } else {
        VerbReport::default()
    };
    if matches!(mode, RewriteMode::Stdout | RewriteMode::Kustomize)
        && context.global.output == OutputMode::Json
    {
        report.add(ReportMember::Text(text.clone()));
    }
    if let Some(not_locked) = not_locked {
        report.add(not_locked.member());
    }
    if failed == done.len() {
        return Err(CliError::of_lines(Exit::Failed, &notes).with_report(report));
    }
    notes.iter().for_each(|line| context.progress.note(line));
    let mut lines = Vec::new();
    if matches!(
        mode,
        RewriteMode::Check | RewriteMode::InPlace | RewriteMode::Out(_)
    ) {
        lines.extend(
            occurrences().filter_map(|(member, occurrence)| change(&member.path, occurrence)),
        );
    }
    lines.extend(
        occurrences().filter_map(|(member, occurrence)| left_line(&member.path, occurrence)),
    );
    lines.push(match (changes, settled, left, failed) {
        (0, 0, 0, 0) => NOTHING_KNOWN.into(),
        _ => {
            let to_do = matches!(
                mode,
                RewriteMode::Check | RewriteMode::Diff | RewriteMode::Kustomize
            );
            let verb = if to_do { "to rewrite" } else { "rewritten" };
            let files = members()
                .filter(|member| member.new.scan.found.iter().any(Occurrence::is_change))
                .count();
            let rest = [
                (settled, "already rewritten"),
                (left, "left unchanged"),
                (failed, "files not rewritten"),
            ];
            let rest = rest.iter().filter(|(count, _)| *count > 0);
            let rest: String = rest
                .map(|(count, what)| format!("; {count} {what}"))
                .collect();
            format!(
                "{verb}: {changes} (in {files} of {}){rest}",
                count_of(members().count() + failed, "file")
            )
        }
    });
    let ambiguous = count(is_ambiguous);
    if ambiguous > 0 {
        let references = count_of(ambiguous, "reference");
        let have = if ambiguous == 1 { "has" } else { "have" };
        lines.push(format!(
            "{references} to a locked repository {have} neither a host nor a tag: a pod would \
             pull from the internet; add the host, or `newName` in a kustomization"
        ));
    }
    lines.extend(not_locked.and_then(NotLocked::line));
    // If stdout has the result, such as a file or a diff, the summary goes to stderr.
    if mode.has_result(context) {
        let lines = lines.iter().map(|line| one_line(line));
        lines.for_each(|line| context.progress.note(&line));
    } else {
        text += &text_of(lines);
    }
    // The lines are escaped already, and the result must keep its bytes.
    Ok(VerbOutcome::new(report, text, exit(mode, changes + ambiguous > 0, failed)).document())
}

/// Whether `occurrence` is left unchanged because it has neither a host nor a tag, although it
/// names an image of a locked repository. A node would pull the image from its default registry.
fn is_ambiguous(occurrence: &Occurrence) -> bool {
    let is_left =
        matches!(occurrence.meaning, ReferenceMeaning::Left(_)) && occurrence.role.is_image();
    is_left
        && !has_host(&occurrence.written)
        && occurrence
            .written
            .parse::<ImageRef>()
            .is_ok_and(|reference| !reference.is_pinned())
}

/// The reason for a failed file. Some errors contain its path already.
fn reason(name: &str, error: &RewriteError) -> String {
    match error {
        RewriteError::Path(failure) => failure.to_string(),
        RewriteError::File(failure) => format!("{}: {failure}", one_line(name)),
    }
}

fn change(name: &str, occurrence: &Occurrence) -> Option<String> {
    let ReferenceMeaning::Known { to, reaches, .. } = &occurrence.meaning else {
        return None;
    };
    let reaches = match reaches.as_slice() {
        [] => String::new(),
        reaches => format!(" (a prefix; it can become {})", reaches.join(", ")),
    };
    Some(format!(
        "{}: {} -> {to}{reaches}",
        occurrence.position_in(name),
        occurrence.written
    ))
}

fn left_line(name: &str, occurrence: &Occurrence) -> Option<String> {
    let ReferenceMeaning::Left(why) = &occurrence.meaning else {
        return None;
    };
    Some(format!(
        "{}: left {}: {why}",
        occurrence.position_in(name),
        occurrence.written
    ))
}

/// The members `files`, `changes` and `left` of the report.
fn report(done: &[RewrittenInput]) -> VerbReport {
    let mut files = Vec::new();
    let mut changes = Vec::new();
    let mut left = Vec::new();
    for RewrittenInput { name, result, lost } in done {
        let members = match result {
            Ok(members) => members,
            Err(error) => {
                files.push(FileRow::Failed {
                    file: name.clone(),
                    status: "failed",
                    reason: error.to_string(),
                });
                continue;
            }
        };
        for RewrittenText { path, new, .. } in members {
            let mut settled = 0;
            let before = changes.len();
            for occurrence in &new.scan.found {
                let row = |outcome| ReferenceRow {
                    file: path.clone(),
                    line: occurrence.line,
                    column: occurrence.column,
                    position: occurrence.role,
                    inside: occurrence.inside.clone(),
                    outcome,
                };
                let written = occurrence.written.clone();
                match occurrence.meaning.clone() {
                    ReferenceMeaning::Known { item, to, reaches } => {
                        changes.push(ReportChange::Reference(row(ReferenceOutcome::Changed {
                            from: written,
                            to,
                            item,
                            reaches,
                        })));
                    }
                    ReferenceMeaning::Left(why) => left.push(row(ReferenceOutcome::Left {
                        reference: written,
                        why,
                    })),
                    ReferenceMeaning::Settled(_) => settled += 1,
                    ReferenceMeaning::Unknown | ReferenceMeaning::Undecided(_) => {}
                }
            }
            let made = changes.len() - before;
            files.push(FileRow::Rewritten {
                file: path.clone(),
                status: if made == 0 { "unchanged" } else { "changed" },
                changes: made,
                settled,
                read_as: new.scan.read_as,
                lost: lost.clone(),
            });
        }
    }
    let mut report = VerbReport::default();
    report.add(ReportMember::Files(files));
    report.add(ReportMember::Changes(changes));
    report.add(ReportMember::Left(left));
    report
}

/// The exit code. `is_open` is true if a reference must still be changed, or if a node would pull
/// the image of an ambiguous reference from the internet.
pub(crate) fn exit(mode: RewriteMode<'_>, is_open: bool, failed: usize) -> Exit {
    if mode == RewriteMode::Check && is_open {
        Exit::Refused
    } else if failed > 0 {
        Exit::Partial
    } else {
        Exit::Done
    }
}

// The references that a rewrite leaves unchanged because the lock lacks them.

/// The number of references that the lock lacks, and the command that lists them.
pub(crate) struct NotLocked {
    count: usize,
    /// The command that lists these references.
    audit: String,
}

impl NotLocked {
    /// Counts the missing references in `found`. `words` are the command that lists them.
    pub(crate) fn new(found: &[FileFinding], words: &[String]) -> NotLocked {
        let missing = found
            .iter()
            .filter(|one| matches!(one.finding.coverage, LockCoverage::Missing { .. }));
        let words: Vec<String> = words.iter().map(|word| command_word(word)).collect();
        NotLocked {
            count: missing.count(),
            audit: words.join(" "),
        }
    }

    /// The line about the missing references, if there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let (are, them) = match self.count {
            0 => return None,
            1 => ("1 reference is".to_owned(), "it"),
            count => (format!("{count} references are"), "them"),
        };
        Some(format!(
            "{are} not in the lock; to list {them}: {}",
            self.audit
        ))
    }

    /// The member `unknown` of the report.
    pub(crate) fn member(&self) -> ReportMember {
        ReportMember::Unknown {
            count: self.count,
            audit: self.audit.clone(),
        }
    }
}
