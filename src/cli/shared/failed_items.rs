//! The lines about failed and missing items, grouped by cause: a host that refuses everything is
//! one cause of many failures.

use super::verb_report::ChangedNameRow;
use super::{ReportMember, VerbReport};
use crate::cli::shared::draft::is_name_part;
use crate::cli::shared::listing::count_kinds;
use landfall_model::report::{ItemStatus, ReportItem, count_of, one_line};
use landfall_model::{ChangedName, ImageRef};
use std::borrow::Cow;
use std::collections::HashMap;

/// The maximum number of names that are printed for a group.
const MAX_NAMES: usize = 10;
/// The maximum number of groups that are printed.
const MAX_GROUPS: usize = 20;
/// The hint for a list that was shortened.
const FULL_LIST: &str = "`--report FILE` writes all of them";

/// Items with the same status and cause.
pub(crate) struct FailureGroup<'a> {
    /// The reason. If the reasons of the items differ, names, digests and URL paths are left out.
    pub(crate) cause: Option<Cow<'a, str>>,
    pub(crate) items: Vec<&'a ReportItem>,
}

impl<'a> FailureGroup<'a> {
    /// Groups `items`, in the order of the first item of each group.
    pub(crate) fn group(items: impl IntoIterator<Item = &'a ReportItem>) -> Vec<FailureGroup<'a>> {
        let mut groups: Vec<FailureGroup<'a>> = Vec::new();
        let mut by_cause: HashMap<(ItemStatus, String), usize> = HashMap::new();
        for item in items {
            let Some(reason) = item.reason.as_deref() else {
                groups.push(FailureGroup {
                    cause: None,
                    items: vec![item],
                });
                continue;
            };
            let common = general_reason(item, reason);
            let at = *by_cause
                .entry((item.status, common.clone()))
                .or_insert_with(|| {
                    groups.push(FailureGroup {
                        cause: Some(reason.into()),
                        items: Vec::new(),
                    });
                    groups.len() - 1
                });
            let group = &mut groups[at];
            if group.cause.as_deref() != Some(reason) {
                group.cause = Some(common.into());
            }
            group.items.push(item);
        }
        groups
    }

    /// The number of items of each kind, as in `3 images, 1 file`.
    pub(crate) fn counted(&self) -> String {
        count_kinds(self.items.iter().copied())
    }

    /// The first names, and a line with the number of further names.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        shortened(self.items.iter().map(|item| item.name.clone()), MAX_NAMES)
    }

    fn lines(&self) -> String {
        let word = word(self.items[0]);
        match self.items[..] {
            [item] => format!("{}\n", item_line(item)),
            _ => {
                let cause = one_line(self.cause.as_deref().unwrap_or_default());
                let names: String = self
                    .names()
                    .map(|name| format!("           {}\n", one_line(&name)))
                    .collect();
                format!("{word:8} {}: {cause}\n{names}", self.counted())
            }
        }
    }
}

/// The first `limit` of `lines`, and a line with the number of further lines. If only one line
/// would be left out, it is returned too, since the number would take the same space.
pub(crate) fn shortened(
    lines: impl Iterator<Item = String>,
    limit: usize,
) -> impl Iterator<Item = String> {
    let mut shown: Vec<String> = lines.collect();
    let more = shown.len().saturating_sub(limit);
    if more > 1 {
        shown.truncate(limit);
        shown.push(format!("… and {more} more; {FULL_LIST}"));
    }
    shown.into_iter()
}

/// The lines about failed items, grouped by cause.
pub(crate) fn item_lines<'a>(items: impl IntoIterator<Item = &'a ReportItem>) -> String {
    let groups = FailureGroup::group(items);
    let (shown, rest) = groups.split_at(groups.len().min(MAX_GROUPS));
    let mut lines: String = shown.iter().map(FailureGroup::lines).collect();
    if !rest.is_empty() {
        let counted = count_kinds(rest.iter().flat_map(|group| group.items.iter().copied()));
        lines += &format!(
            "… and {counted} more, for {}; {FULL_LIST}\n",
            count_of(rest.len(), "other reason")
        );
    }
    lines
}

/// The lines about those of `items` that failed, are missing or were skipped.
pub(crate) fn loss_lines(items: &[ReportItem]) -> String {
    item_lines(items.iter().filter(|item| !item.status.is_success()))
}

/// Adds the names that changed since manuals were written to the report, for items that upstream
/// did not deliver. Returns a line for each.
pub(crate) fn add_changed_names(report: &mut VerbReport) -> String {
    let failing = report.items.iter().filter(|item| item.status.is_loss());
    let changed = ChangedName::among(failing.map(|item| &item.name));
    let rows = changed.iter().map(|row| ChangedNameRow {
        name: row.name,
        replacement: row.replacement,
        says: row.summary(),
        source: row.source,
    });
    report.add(ReportMember::ChangedNames(rows.collect()));
    let lines = changed.iter().map(|row| format!("note: {}\n", row.note()));
    lines.collect()
}

/// The line about a failed item.
pub(crate) fn item_line(item: &ReportItem) -> String {
    let word = word(item);
    let reason = item.reason.as_deref().map(one_line).unwrap_or_default();
    format!("{word:8} {} {}: {reason}", item.kind, one_line(&item.name))
}

fn word(item: &ReportItem) -> &'static str {
    let is_accepted_loss = |reason: &String| reason.contains("(accepted until ");
    match item.status {
        ItemStatus::Missing => "missing",
        ItemStatus::Failed => "failed",
        ItemStatus::Skipped if item.reason.as_ref().is_some_and(is_accepted_loss) => "accepted",
        ItemStatus::Skipped => "skipped",
        ItemStatus::Done | ItemStatus::Present => "good",
    }
}

/// The reason of an item without the parts that are specific to it: its repository, digests and URL
/// paths. The host is kept, since it usually is the cause.
fn general_reason(item: &ReportItem, reason: &str) -> String {
    let mut text = reason.to_owned();
    // the name of a referrer is that of its image, a blank, and its digest
    let name = item.name.split(' ').next().unwrap_or_default();
    if let Ok(image) = name.parse::<ImageRef>() {
        let version = image
            .tag
            .as_ref()
            .map(|tag| format!("{}:{tag}", image.repository));
        for own in version.iter().chain([&image.repository]) {
            text = without(&text, own);
        }
    }
    without_targets(&without_paths(&without_digests(&text)))
}

/// Replaces the repositories of `HOST/REPOSITORY` by `…`, and the tags after `manifest
/// HOST/REPOSITORY`: the destination of an item may differ from its name.
fn without_targets(text: &str) -> String {
    let mut is_tag = false;
    let mut before = "";
    let words = text.split(' ').map(|word| {
        let bare = word.trim_end_matches([':', ',', ';', '.']);
        let end = &word[bare.len()..];
        let is_target = bare.split_once('/').is_some_and(|(host, path)| {
            let host = host.trim_start_matches('(');
            let is_host = host.contains(['.', ':']) || host == "localhost";
            is_host && !path.starts_with('/') && !path.is_empty() && path != "…"
        });
        let shown = if is_target {
            let host = bare.split('/').next().unwrap_or_default();
            format!("{host}/…{end}")
        } else if is_tag {
            format!("…{end}")
        } else {
            word.to_owned()
        };
        is_tag = is_target && before == "manifest" && end.is_empty();
        before = word;
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Replaces `own` by `…` where it is a whole word.
fn without(text: &str, own: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(own) {
        let before = &rest[..at];
        let after = &rest[at + own.len()..];
        let is_word = !before.ends_with(is_name_part) && !after.starts_with(is_name_part);
        out += before;
        out += if is_word { "…" } else { own };
        rest = after;
    }
    out + rest
}

/// Replaces the hex digits of digests by `…`.
fn without_digests(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':').map(|at| at + 1) {
        let hex = rest[at..].bytes().take_while(u8::is_ascii_hexdigit).count();
        out += &rest[..at];
        if hex >= 64 {
            out += "…";
            rest = &rest[at + hex..];
        } else {
            rest = &rest[at..];
        }
    }
    out + rest
}

/// Replaces the paths of URLs by `…`.
fn without_paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://").map(|at| at + 3) {
        out += &rest[..at];
        let url = &rest[at..];
        let end = url
            .find(|c: char| c.is_whitespace() || ",;)'\"`".contains(c))
            .unwrap_or(url.len());
        // Messages put a colon or a full stop after a URL.
        let url = url[..end].trim_end_matches([':', '.']);
        match url.split_once('/') {
            Some((host, path)) if !path.is_empty() => out.extend([host, "/…"]),
            _ => out += url,
        }
        rest = &rest[at + url.len()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::EntryKind;

    fn item(kind: EntryKind, name: &str, status: ItemStatus, reason: Option<&str>) -> ReportItem {
        let digest = None;
        let bytes = None;
        let packages = 0;
        ReportItem {
            digest,
            bytes,
            packages,
            ..ReportItem::new(kind, name.into(), status, reason.map(str::to_owned))
        }
    }

    #[test]
    fn items_with_the_same_cause_are_one_group() {
        let full = Some("the disk is full");
        let items = [
            item(EntryKind::Image, "a", ItemStatus::Done, None),
            item(EntryKind::Image, "b", ItemStatus::Failed, full),
            item(EntryKind::Image, "c", ItemStatus::Failed, Some("404")),
            item(EntryKind::File, "d", ItemStatus::Present, None),
            item(EntryKind::Package, "e", ItemStatus::Failed, full),
        ];
        let lines = concat!(
            "failed   1 image, 1 set of packages: the disk is full\n",
            "           b\n           e\n",
            "failed   image c: 404\n",
        );
        assert_eq!(loss_lines(&items), lines);
    }

    #[test]
    fn many_failures_of_a_host_are_one_cause() {
        let digest = |at: usize| format!("sha256:{at:064x}");
        let image = |at: usize| {
            let reason = format!(
                "source: blob {0} of quay.io/team/a{at}: quay.io answered 404 Not Found: \
                 BLOB_UNKNOWN {0}; see https://quay.io/x/{at}: it says so",
                digest(at)
            );
            item(
                EntryKind::Image,
                &format!("quay.io/team/a{at}:v1"),
                ItemStatus::Failed,
                Some(&reason),
            )
        };
        let mut items: Vec<ReportItem> = (0..540).map(image).collect();
        items.push(item(
            EntryKind::Image,
            "ghcr.io/team/b:v1",
            ItemStatus::Failed,
            Some(&format!(
                "source: blob {} of ghcr.io/team/b: ghcr.io answered 404 Not Found",
                digest(1)
            )),
        ));
        let lines = loss_lines(&items);
        let cause = "failed   540 images: source: blob sha256:… of quay.io/…: quay.io answered \
                     404 Not Found: BLOB_UNKNOWN sha256:…; see https://quay.io/…: it says \
                     so\n           quay.io/team/a0:v1\n";
        assert!(lines.starts_with(cause), "{lines}");
        assert!(
            lines.contains("           … and 530 more; `--report FILE` writes all of them\n"),
            "{lines}"
        );
        assert!(
            lines.contains("failed   image ghcr.io/team/b:v1: source: blob sha256:0"),
            "{lines}"
        );
        assert_eq!(lines.lines().count(), 13, "{lines}");
    }

    #[test]
    fn destinations_that_differ_from_the_names_are_one_cause() {
        let item = |at: usize| {
            let reason = format!(
                "destination: manifest 10.0.0.1:5000/mapped/a{at}/b v{at}: 10.0.0.1:5000 answered \
                 415 Unsupported Media Type: no (a/b)"
            );
            let name = format!("quay.io/team/x{at}:v{at}");
            item(EntryKind::Chart, &name, ItemStatus::Failed, Some(&reason))
        };
        let items: Vec<ReportItem> = (0..3).map(item).collect();
        let cause = "failed   3 charts: destination: manifest 10.0.0.1:5000/… …: 10.0.0.1:5000 \
                     answered 415 Unsupported Media Type: no (a/b)\n";
        assert!(
            loss_lines(&items).starts_with(cause),
            "{}",
            loss_lines(&items)
        );
    }

    #[test]
    fn a_list_of_many_reasons_is_shortened() {
        let one = |at: usize| {
            item(
                EntryKind::Image,
                &format!("a:{at}"),
                ItemStatus::Missing,
                Some(&format!("reason {at}")),
            )
        };
        let items: Vec<ReportItem> = (0..300).map(one).collect();
        let lines = loss_lines(&items);
        assert_eq!(lines.lines().count(), MAX_GROUPS + 1);
        assert!(lines.ends_with(
            "… and 280 images more, for 280 other reasons; `--report FILE` writes all of them\n"
        ));
        let lines = loss_lines(&items[..=MAX_GROUPS]);
        assert!(
            lines.contains("… and 1 image more, for 1 other reason; "),
            "{lines}"
        );
    }
}
