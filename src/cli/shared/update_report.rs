//! The output of the result of an update, for `update` and `refresh`.

use super::bundle_flags::ManifestArgs;
use super::listing::{change_lines, endpoint_line};
use super::output_file::written_path;
use super::stale_lock::load_previous_lock;
use super::{CliError, Context, ReportMember, VerbReport, input_file};
use crate::client::{LockFileState, PreviousLock};
use crate::lock::{LockChange, Locked};
use crate::update::{
    AgeWait, FirstSights, UpdateOutcome, UpdateRequest, UpstreamNotice, UrgentVersion, VersionMove,
};
use clap::Args;
use landfall_item::lockfile::FILE_NAME;
use landfall_model::report::{
    AnnotationLevel, CiAnnotation, Markdown, Notice, NoticeKind, count_of, markdown_code,
    markdown_text,
};
use landfall_model::{Digest, Failure, NamePattern, PlatformRequest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The lines about updated and held back versions, and about changes upstream.
fn lines(updated: &UpdateOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &updated.moves {
        let VersionMove {
            name,
            at,
            from,
            to,
            held,
            waiting,
            items,
            ..
        } = one;
        if let Some(to) = to {
            let items = count_of(items.len(), "new or changed item");
            let place = place(one);
            lines.push(format!(
                "newer    {name} {} -> {} ({place}): {items}",
                short(from),
                short(to)
            ));
        }
        lines.extend(
            held.iter()
                .map(|held| format!("held     {name} {} ({at}): {}", held.version, held.why)),
        );
        lines.extend(waiting.iter().map(|waiting| {
            format!(
                "waits    {name} {} ({at}): {}",
                short(&waiting.version),
                wait_text(&waiting.first_seen, &waiting.until)
            )
        }));
    }
    for one in &updated.noticed {
        let advice = if one.notice.taken {
            String::new()
        } else {
            advice(one)
        };
        lines.push(format!(
            "{:8} {} {}{}{advice}",
            word(one),
            one.item,
            one.name(),
            digests(one)
        ));
    }
    let clock = updated.ages.notices.iter();
    lines.extend(clock.map(|one| format!("clock    {}: {}", one.name, one.message)));
    let urgent = updated.ages.unused_urgent.iter();
    lines.extend(urgent.map(|one| format!("unused   --urgent {one}: {UNUSED_URGENT}")));
    let only = updated.unused_only.iter();
    lines.extend(only.map(|one| format!("unused   --only {one}: {UNUSED_ONLY}")));
    lines
}

const UNUSED_URGENT: &str = "no entry can move to it; --urgent can be left out";
const UNUSED_ONLY: &str = "nothing that can be updated or checked has such a name";

/// The time when a version was first seen, and the time from which it can be used.
fn wait_text(first_seen: &str, until: &str) -> String {
    format!("first seen {first_seen}, can be used from {until}")
}

/// The location of a version in the manifest, and the source of a package.
fn place(moved: &VersionMove) -> String {
    let source = moved
        .source
        .as_ref()
        .map(|source| format!(", from {source}"));
    format!("{}{}", moved.at, source.unwrap_or_default())
}

/// The old and new digest of a changed tag, shortened.
fn digests(noticed: &UpstreamNotice) -> String {
    match (&noticed.notice.from, &noticed.notice.to) {
        (Some(from), Some(to)) => format!(" {} -> {}", from.short(12), to.short(12)),
        _ => String::new(),
    }
}

fn word(noticed: &UpstreamNotice) -> &'static str {
    match noticed.wait {
        _ if noticed.is_gone() => "gone",
        Some(_) => "waits",
        None => "moved",
    }
}

/// The reaction of the update to a change upstream.
fn advice(noticed: &UpstreamNotice) -> String {
    match noticed.wait {
        _ if noticed.is_gone() && noticed.is_locked => ": the old pin is kept".to_owned(),
        _ if noticed.is_gone() => ": it was never locked".to_owned(),
        Some(AgeWait { first_seen, until }) => {
            format!(
                ": {}",
                wait_text(&first_seen.to_string(), &until.to_string())
            )
        }
        None => ": not updated; `update: digest` updates it".to_owned(),
    }
}

/// A version, shortened if it is a digest.
fn short(version: &str) -> String {
    version
        .parse::<Digest>()
        .map_or_else(|_| version.to_owned(), |digest| digest.short(12))
}

/// Adds the changes of the lock to the report, and its fingerprint if `state` is not that the old
/// lock was kept. Returns the lines about the changes.
pub(crate) fn report_lock(
    report: &mut VerbReport,
    locked: &Locked,
    state: LockFileState,
) -> String {
    report.add(ReportMember::changes(&locked.changes));
    report.add(ReportMember::EndpointChanges(locked.endpoints.clone()));
    if state != LockFileState::Kept {
        report.add(ReportMember::Lock(locked.lock.fingerprint()));
    }
    // Items that are gone upstream are left out: `lines` returns a line for each.
    let changes = locked
        .changes
        .iter()
        .filter(|change| change.change != "gone")
        .flat_map(change_lines);
    changes
        .chain(locked.endpoints.iter().map(endpoint_line))
        .map(|line| line + "\n")
        .collect()
}

/// Adds the update to the report, with an annotation at each location in a manifest. Returns the
/// lines about it.
pub(crate) fn report_update(report: &mut VerbReport, updated: &UpdateOutcome) -> String {
    report.add(ReportMember::Updates(updated.moves.clone()));
    for VersionMove {
        name,
        at,
        from,
        to,
        held,
        waiting,
        ..
    } in &updated.moves
    {
        let to = to.iter().map(|to| {
            let message = format!("{} -> {}", short(from), short(to));
            (AnnotationLevel::Notice, message)
        });
        let held = held.iter().map(|held| {
            let message = format!("{} is held back: {}", held.version, held.why);
            (AnnotationLevel::Warning, message)
        });
        let waiting = waiting.iter().map(|waiting| {
            let message = format!("{} waits until {}", short(&waiting.version), waiting.until);
            (AnnotationLevel::Notice, message)
        });
        let all = to.chain(held).chain(waiting);
        let place = Some((at.file.clone(), at.line, at.column));
        report
            .annotations
            .extend(all.map(|(level, message)| CiAnnotation {
                level,
                place: place.clone(),
                title: name.clone(),
                message,
            }));
    }
    report.add_notices(notices(updated));
    for noticed in updated
        .noticed
        .iter()
        .filter(|noticed| !noticed.notice.taken)
    {
        let title = format!("{} {}", noticed.item, noticed.name());
        let message = format!("{}{}{}", word(noticed), digests(noticed), advice(noticed));
        report.annotations.push(CiAnnotation {
            level: AnnotationLevel::Warning,
            place: None,
            title,
            message,
        });
    }
    lines(updated).into_iter().map(|line| line + "\n").collect()
}

/// The notices of the report: tags that changed or are gone upstream, versions that are held back
/// or wait, and notices about the ages of versions.
fn notices(updated: &UpdateOutcome) -> Vec<Notice> {
    let noticed = updated.noticed.iter().map(|one| {
        let mut notice = one.notice.clone();
        if !notice.taken {
            notice.message += &advice(one);
        }
        notice
    });
    let held = updated.moves.iter().flat_map(|one| {
        one.held.iter().map(|held| {
            let message = format!("{} is held back: {}", held.version, held.why);
            Notice::new(NoticeKind::Newer, &one.name, message)
        })
    });
    let waiting = updated.moves.iter().flat_map(|one| {
        one.waiting.iter().map(|waiting| Notice {
            until: Some(waiting.until.clone()),
            ..Notice::new(
                NoticeKind::Newer,
                &one.name,
                format!(
                    "{} waits: {}",
                    short(&waiting.version),
                    wait_text(&waiting.first_seen, &waiting.until)
                ),
            )
        })
    });
    noticed
        .chain(held)
        .chain(waiting)
        .chain(updated.ages.notices.iter().cloned())
        .collect()
}

/// The Markdown for a pull request. `summary` is its first line.
pub(crate) fn markdown(summary: &str, updated: &UpdateOutcome, report: &VerbReport) -> Markdown {
    let mut document = Markdown::new(summary);
    let moved = updated.moves.iter().filter_map(|one| {
        let to = one.to.as_ref()?;
        let new = match &one.items[..] {
            [] => String::new(),
            [one] => markdown_code(one),
            [first, rest @ ..] => format!("{} and {} more", markdown_code(first), rest.len()),
        };
        Some(vec![
            markdown_code(&one.name),
            markdown_code(&short(&one.from)),
            markdown_code(&short(to)),
            markdown_text(&one.policy),
            markdown_text(&place(one)),
            new,
        ])
    });
    document.table(
        "newer versions",
        &["what", "from", "to", "policy", "where", "items"],
        moved,
    );
    let held = updated.moves.iter().flat_map(|one| {
        one.held.iter().map(|held| {
            vec![
                markdown_code(&one.name),
                markdown_code(&one.from),
                markdown_code(&held.version),
                markdown_text(&held.why),
            ]
        })
    });
    document.table("held back", &["what", "stays at", "newer", "why"], held);
    let waiting = updated.moves.iter().flat_map(|one| {
        one.waiting.iter().map(|waiting| {
            vec![
                markdown_code(&one.name),
                markdown_code(&short(&one.from)),
                markdown_code(&short(&waiting.version)),
                markdown_text(&waiting.first_seen),
                markdown_text(&waiting.until),
            ]
        })
    });
    document.table(
        "waiting for the minimum age",
        &["what", "stays at", "newer", "first seen", "until"],
        waiting,
    );
    let noticed = updated.noticed.iter().map(|one| {
        let advice = advice(one);
        let done = if one.notice.taken {
            "updated"
        } else {
            advice.trim_start_matches(": ")
        };
        vec![
            word(one).to_owned(),
            markdown_code(one.name()),
            markdown_text(digests(one).trim()),
            markdown_text(done),
        ]
    });
    document.table(
        "moved or gone upstream",
        &["what", "item", "digest", "done"],
        noticed,
    );
    let lost = report.items.iter().filter(|item| item.status.is_loss());
    let lost = lost.map(|item| {
        vec![
            markdown_code(&item.name),
            markdown_text(item.reason.as_deref().unwrap_or_default()),
        ]
    });
    document.table("failing", &["item", "why"], lost);
    document
}

/// The locked tags that upstream no longer has, as Markdown lines outside of the folded tables,
/// because a reviewer must see them.
pub(crate) fn gone(updated: &UpdateOutcome, changes: &[LockChange]) -> String {
    const MAX_NAMES: usize = 20;
    let noticed = updated
        .noticed
        .iter()
        .filter(|one| one.is_gone() && one.is_locked)
        .map(UpstreamNotice::name);
    let locked = changes
        .iter()
        .filter(|change| change.change == "gone")
        .map(|change| change.name.as_str());
    let names: BTreeSet<&str> = noticed.chain(locked).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut text = "\n\n**Gone upstream**; the old pins are kept:\n".to_owned();
    names
        .iter()
        .take(MAX_NAMES)
        .for_each(|name| text += &format!("\n- {}", markdown_code(name)));
    if names.len() > MAX_NAMES {
        text += &format!("\n- … and {} more", names.len() - MAX_NAMES);
    }
    text + "\n"
}

/// `2 newer versions, 1 held back, 1 waiting, 3 moved or gone`; empty if there is nothing.
pub(crate) fn counted(updated: &UpdateOutcome) -> String {
    let newer = updated.moves.iter().filter(|one| one.to.is_some()).count();
    let noticed = updated
        .noticed
        .iter()
        .filter(|one| one.wait.is_none())
        .count();
    let held = updated
        .moves
        .iter()
        .map(|one| one.held.len())
        .sum::<usize>();
    let waiting = updated.moves.iter().map(|one| one.waiting.len());
    let waiting = waiting.sum::<usize>() + updated.noticed.len() - noticed;
    let parts = [
        (newer, count_of(newer, "newer version")),
        (held, format!("{held} held back")),
        (waiting, format!("{waiting} waiting")),
        (noticed, format!("{noticed} moved or gone")),
    ];
    let nonzero: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, text)| text)
        .collect();
    nonzero.join(", ")
}

/// The paths, separated by commas, for a message.
pub(crate) fn names(paths: &[&PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The flags of `update` and `refresh`.
#[derive(Args)]
pub(crate) struct UpdateFlags {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// A platform for the images of plain lists, as in linux/amd64 [default: all] (may be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<PlatformRequest>,
    /// The lock to update
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, value_parser = written_path())]
    pub(crate) lock: PathBuf,
    /// Update only this variable, item, package, list or trust root; * matches any text (may be
    /// repeated)
    #[arg(long, value_name = "PATTERN")]
    only: Vec<NamePattern>,
    /// Use this version even if it is younger than the minimum age; the policy must still allow it
    /// (may be repeated)
    #[arg(long, value_name = "NAME=VERSION")]
    urgent: Vec<UrgentVersion>,
    /// Also look up signatures and other referrers of images that did not change
    #[arg(long)]
    pub(crate) referrers: bool,
}

impl UpdateFlags {
    /// Reads the previous lock and the file of first sights, which records when each version was
    /// first seen. Checks that the manifests can be read, and records them as inputs.
    pub(crate) fn open(&self, context: &Context) -> Result<UpdateInputs<'_>, CliError> {
        let paths = self.manifests.paths()?;
        context.read_manifests_to_update(&paths, &self.platforms)?;
        let sights_path = FirstSights::path_beside(&self.lock);
        let (sights, rewrite_sights) = load_first_sights(&sights_path)?;
        Ok(UpdateInputs {
            flags: self,
            paths,
            sights,
            rewrite_sights,
            sights_path,
            previous_lock: load_previous_lock(context, &self.lock)?,
        })
    }
}

/// Reads the file of first sights. Without the file, nothing was seen before. Also returns whether
/// its text differs from the text that landfall writes, as after a merge.
fn load_first_sights(path: &Path) -> Result<(FirstSights, bool), CliError> {
    if !path.exists() {
        return Ok((FirstSights::default(), false));
    }
    let text = input_file::text(path)?;
    let sights = FirstSights::parse(&text).map_err(|why| Failure::read(path, why))?;
    let rewrite = text != sights.to_text();
    Ok((sights, rewrite))
}

/// The files that an update reads.
pub(crate) struct UpdateInputs<'a> {
    flags: &'a UpdateFlags,
    paths: Vec<PathBuf>,
    sights: FirstSights,
    rewrite_sights: bool,
    sights_path: PathBuf,
    pub(crate) previous_lock: Option<PreviousLock>,
}

impl UpdateInputs<'_> {
    /// The request to upstream. With `every_digest`, it also asks for the digest of each image, to
    /// detect tags that were pushed again.
    pub(crate) fn request(&self, every_digest: bool) -> UpdateRequest<'_> {
        UpdateRequest {
            paths: &self.paths,
            platforms: &self.flags.platforms,
            old: self.previous_lock.as_ref().map(|old| &old.lock),
            only: &self.flags.only,
            every_digest,
            sights: &self.sights,
            rewrite_sights: self.rewrite_sights,
            sights_path: &self.sights_path,
            urgent: &self.flags.urgent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::EntryKind;

    #[test]
    fn a_tag_that_was_never_locked_has_no_old_pin() {
        let notice = |name: &str, is_locked| UpstreamNotice {
            item: EntryKind::Image,
            is_locked,
            notice: Notice::new(NoticeKind::Gone, name, "gone"),
            wait: None,
        };
        let mut updated = UpdateOutcome {
            noticed: vec![notice("typo:v1", false)],
            ..UpdateOutcome::default()
        };
        assert_eq!(gone(&updated, &[]), "");
        updated.noticed.push(notice("old:v1", true));
        assert_eq!(
            gone(&updated, &[]),
            "\n\n**Gone upstream**; the old pins are kept:\n\n- `old:v1`\n"
        );
    }
}
