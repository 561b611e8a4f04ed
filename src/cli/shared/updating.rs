//! What `update` and `refresh` share: the plan, the manifests and the lock that are written, and
//! what is told of them.

use super::lock_output::Old;
use super::manifest_files::ManifestFiles;
use super::summary::{change_lines, endpoint_line};
use super::{Context, Exit, Failure, input_file};
use crate::client::Client;
use crate::lock::{Change, Locked};
use crate::update::{Asked, Move, NamePattern, Noticed, Updated};
use clap::Args;
use landfall_content::replace;
use landfall_content::store::Disk;
use landfall_item::lockfile::FILE_NAME;
use landfall_model::report::{
    AnnotationLevel, CiAnnotation, ItemStatus, Markdown, Notice, NoticeKind, RunReport,
    TransferSide, code, count_of, text,
};
use landfall_model::{Digest, Platform};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is updated.
#[derive(Args)]
pub(crate) struct UpdateFlags {
    #[command(flatten)]
    manifests: ManifestFiles,
    /// A platform for the images of plain lists, as in linux/amd64; all of them by default (may be
    /// repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// The lock
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    pub(crate) lock: PathBuf,
    /// Move only this: a variable, an image, a package, a set of packages or a list; * stands for
    /// any text (may be repeated)
    #[arg(long, value_name = "PATTERN")]
    only: Vec<NamePattern>,
    /// Look up signatures and other referrers again too, also of images that did not move
    #[arg(long)]
    referrers: bool,
}

impl UpdateFlags {
    /// Reads manifests and lock, and asks upstream what is newer. Nothing is written.
    ///
    /// # Errors
    /// When a manifest or the lock has a fault (exit 2).
    pub(crate) async fn plan(
        &self,
        client: &Client,
        store: &Disk,
        every_digest: bool,
    ) -> Result<(Updated, Option<Old>), Failure> {
        let paths = self.manifests.paths()?;
        input_file::manifests(&paths, &self.platforms)?;
        let old = Old::load(&self.lock)?;
        let asked = Asked {
            paths: &paths,
            platforms: &self.platforms,
            old: old.as_ref().map(|old| &old.lock),
            only: &self.only,
            every_digest,
        };
        Ok((client.update(&asked, store).await?, old))
    }

    /// Writes the manifests and lists that change, each whole or not at all.
    ///
    /// # Errors
    /// When one cannot be written, or was edited meanwhile.
    pub(crate) fn write_manifests(updated: &Updated, context: &Context) -> Result<(), Failure> {
        for (path, text) in &updated.edited {
            let is_read = |now: &[u8]| updated.before.get(path) == Some(&Digest::sha256(now));
            let lost = replace(path, is_read, text.as_bytes())
                .map_err(|error| cannot_write(path, &error))?;
            lost.iter().for_each(|lost| {
                context
                    .progress
                    .note(&format!("{}: lost {lost}", path.display()))
            });
        }
        Ok(())
    }

    /// Locks what the update wants and writes the lock. Returns whether it differs from the old
    /// one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) async fn write_lock(
        &self,
        (client, context): (&Client, &Context),
        updated: &Updated,
        old: Option<&Old>,
        store: &Disk,
    ) -> Result<(Locked, bool), Failure> {
        let locked = client
            .lock_updated(updated, old.map(|old| &old.lock), self.referrers, store)
            .await;
        let report = RunReport {
            items: locked.items.clone(),
            ..RunReport::default()
        };
        // as `lock`: where nothing at all resolves, the lock stays as it is
        let is_vain = report.has_losses() && !report.has_successes();
        let is_new = !is_vain && Old::replace(old, &self.lock, &locked.lock, context)?;
        Ok((locked, is_new))
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        Exit::Failed,
        format!("cannot write {}: {error}", path.display()),
    )
    .on(TransferSide::Destination)
}

/// A line for each version that moved or is held back, and for what upstream says of the rest.
pub(crate) fn lines(updated: &Updated) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &updated.moves {
        let Move {
            name,
            at,
            from,
            to,
            held,
            items,
            ..
        } = one;
        if let Some(to) = to {
            let items = count_of(items.len(), "new item");
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
    }
    for one in &updated.noticed {
        let advice = if one.notice.taken { "" } else { advice(one) };
        lines.push(format!(
            "{:8} {} {}{}{advice}",
            word(one),
            one.item,
            one.name(),
            digests(one)
        ));
    }
    lines
}

/// Where a version stands, and the source of a package.
fn place(moved: &Move) -> String {
    let source = moved
        .source
        .as_ref()
        .map(|source| format!(", from {source}"));
    format!("{}{}", moved.at, source.unwrap_or_default())
}

/// The digests of what moved, for people.
fn digests(noticed: &Noticed) -> String {
    let short = |digest: &Option<Digest>| digest.as_ref().map(|digest| digest.short(12));
    match (short(&noticed.notice.from), short(&noticed.notice.to)) {
        (Some(from), Some(to)) => format!(" {from} -> {to}"),
        _ => String::new(),
    }
}

fn word(noticed: &Noticed) -> &'static str {
    if noticed.is_gone() { "gone" } else { "moved" }
}

/// What is done about what upstream says.
fn advice(noticed: &Noticed) -> &'static str {
    match noticed.is_gone() {
        true => ": the old pin is kept",
        false => ": not taken; `update: digest` takes it",
    }
}

/// A digest in the place of a version, shortened.
fn short(version: &str) -> String {
    version
        .parse::<Digest>()
        .map_or_else(|_| version.to_owned(), |digest| digest.short(12))
}

/// Lines for what changes in the lock.
pub(crate) fn lock_lines(locked: &Locked) -> Vec<String> {
    let gone = |change: &&crate::lock::Change| change.change != "gone";
    let changes = locked.changes.iter().filter(gone).flat_map(change_lines);
    changes
        .chain(locked.endpoints.iter().map(endpoint_line))
        .collect()
}

/// Puts the plan into a report, with an annotation at each place.
pub(crate) fn tell(report: &mut RunReport, updated: &Updated) {
    report.extra.insert("updates".into(), json!(updated.moves));
    for Move {
        name,
        at,
        from,
        to,
        held,
        ..
    } in &updated.moves
    {
        let place = Some((at.file.clone(), at.line, at.column));
        let annotation = |level, message| CiAnnotation {
            level,
            place: place.clone(),
            title: name.clone(),
            message,
        };
        report.annotations.extend(to.iter().map(|to| {
            annotation(
                AnnotationLevel::Notice,
                format!("{} -> {}", short(from), short(to)),
            )
        }));
        let held = held
            .iter()
            .map(|held| format!("{} is held back: {}", held.version, held.why));
        report
            .annotations
            .extend(held.map(|message| annotation(AnnotationLevel::Warning, message)));
    }
    report.notice(notices(updated));
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
}

/// What the report says of upstream: what moved or is gone, and newer versions that are held back.
fn notices(updated: &Updated) -> Vec<Notice> {
    let noticed = updated.noticed.iter().map(|one| match one.notice.taken {
        true => one.notice.clone(),
        false => {
            let message = format!("{}{}", one.notice.message, advice(one));
            Notice {
                message,
                ..one.notice.clone()
            }
        }
    });
    let held = updated.moves.iter().flat_map(|one| {
        one.held.iter().map(|held| {
            let message = format!("{} is held back: {}", held.version, held.why);
            Notice::new(NoticeKind::Newer, &one.name, message)
        })
    });
    noticed.chain(held).collect()
}

/// The plan for a pull request. `summary` is its first line.
pub(crate) fn markdown(summary: &str, updated: &Updated, report: &RunReport) -> Markdown {
    let mut document = Markdown::new(summary);
    let moved = updated.moves.iter().filter_map(|one| {
        let to = one.to.as_ref()?;
        let new = match &one.items[..] {
            [] => String::new(),
            [one] => code(one),
            [first, rest @ ..] => format!("{} and {} more", code(first), rest.len()),
        };
        Some(vec![
            code(&one.name),
            code(&short(&one.from)),
            code(&short(to)),
            text(&one.policy),
            text(&place(one)),
            new,
        ])
    });
    document.table(
        "newer versions",
        &["what", "from", "to", "policy", "where", "new"],
        moved,
    );
    let held = updated.moves.iter().flat_map(|one| {
        one.held.iter().map(|held| {
            vec![
                code(&one.name),
                code(&one.from),
                code(&held.version),
                text(&held.why),
            ]
        })
    });
    document.table("held back", &["what", "stays at", "newer", "why"], held);
    let noticed = updated.noticed.iter().map(|one| {
        let done = if one.notice.taken {
            "taken"
        } else {
            advice(one).trim_start_matches(": ")
        };
        vec![
            word(one).to_owned(),
            code(one.name()),
            text(digests(one).trim()),
            text(done),
        ]
    });
    document.table(
        "moved or gone upstream",
        &["what", "item", "digest", "done"],
        noticed,
    );
    let lost = report
        .items
        .iter()
        .filter(|item| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing));
    let lost = lost.map(|item| {
        vec![
            code(&item.name),
            text(item.reason.as_deref().unwrap_or_default()),
        ]
    });
    document.table("failing", &["item", "why"], lost);
    document
}

/// The tags that upstream does not have any more, as lines of Markdown: whoever reads a pull
/// request should see them unfolded.
pub(crate) fn gone(updated: &Updated, changes: &[Change]) -> String {
    const MOST: usize = 20;
    let noticed = updated
        .noticed
        .iter()
        .filter(|one| one.is_gone())
        .map(Noticed::name);
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
        .take(MOST)
        .for_each(|name| text += &format!("\n- {}", code(name)));
    if names.len() > MOST {
        text += &format!("\n- … and {} more", names.len() - MOST);
    }
    text + "\n"
}

/// `2 newer versions, 1 held back, 3 moved or gone`; nothing where there is nothing.
pub(crate) fn counted(updated: &Updated) -> String {
    let newer = updated.moves.iter().filter(|one| one.to.is_some()).count();
    let held = updated
        .moves
        .iter()
        .map(|one| one.held.len())
        .sum::<usize>();
    let parts = [
        (newer, count_of(newer, "newer version")),
        (held, format!("{held} held back")),
        (
            updated.noticed.len(),
            format!("{} moved or gone", updated.noticed.len()),
        ),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, text)| text)
        .collect();
    told.join(", ")
}

/// The names of files, for a message.
pub(crate) fn names(paths: &[&PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
