//! Changed packages of package sets: lines, tables and changelogs.

use crate::cli::shared::Context;
use crate::lock;
use crate::lock::LockChange;
use crate::lock::PackageChange;
use landfall_content::VerifiedRead;
use landfall_item::lockfile::Lock;
use landfall_model::human_size;
use landfall_model::report::{Markdown, markdown_code, markdown_text, one_line};
use std::collections::HashSet;

/// Adds changelogs to changed packages, from the packages in `content`. Remote content is skipped:
/// it would have to be downloaded. Prints a note for each changelog that cannot be read.
pub(crate) fn add_changelogs(
    context: &Context,
    changes: &mut [LockChange],
    new: &Lock,
    content: &dyn VerifiedRead,
) {
    if !content.is_remote() {
        for fault in lock::add_changelogs(changes, new, content) {
            context.progress.note(&fault);
        }
    }
}

/// The lines about changed packages of a set, with changelogs. They follow the line of the set.
pub(crate) fn package_lines(change: &LockChange) -> impl Iterator<Item = String> {
    with_changelogs(change).flat_map(|(package, changelog)| {
        let PackageChange {
            name, arch, change, ..
        } = package;
        let line = format!(
            "  {change:8} {name} {} {arch}  {}",
            versions(package),
            size(package)
        );
        let changelog = changelog.iter().map(|line| format!("             {line}"));
        std::iter::once(line.trim_end().to_owned())
            .chain(changelog)
            .map(|line| one_line(&line))
            .collect::<Vec<_>>()
    })
}

/// Adds a table for each set with changed packages.
pub(crate) fn package_tables<'a>(
    document: &mut Markdown,
    changes: impl IntoIterator<Item = &'a LockChange>,
) {
    for change in changes
        .into_iter()
        .filter(|change| !change.packages.is_empty())
    {
        let rows = with_changelogs(change).map(|(package, changelog)| {
            let name = markdown_code(&package.name);
            let arch = markdown_code(&package.arch);
            let changelog = changelog
                .iter()
                .map(|line| markdown_text(line))
                .collect::<Vec<_>>()
                .join("<br>");
            vec![
                package.change.to_owned(),
                name,
                arch,
                markdown_code(&versions(package)),
                size(package),
                changelog,
            ]
        });
        let title = format!("Packages of {}", change.name);
        let columns = [
            "change",
            "name",
            "architecture",
            "version",
            "size",
            "changelog",
        ];
        document.table(&title, &columns, rows);
    }
}

/// The changed packages of a set, each with its changelog. Binary packages of one source package
/// have the same changelog, so it is returned only with the first of them.
fn with_changelogs(change: &LockChange) -> impl Iterator<Item = (&PackageChange, &[String])> {
    let mut seen = HashSet::new();
    change.packages.iter().map(move |package| {
        let is_new = seen.insert(&package.changelog);
        let changelog = if is_new {
            package.changelog.as_slice()
        } else {
            &[]
        };
        (package, changelog)
    })
}

/// `1.0 -> 1.1`, or one version for an added or removed package.
fn versions(package: &PackageChange) -> String {
    let versions: Vec<&str> = [&package.from, &package.to]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    versions.join(" -> ")
}

/// The size of the new package; empty for a removed package.
fn size(package: &PackageChange) -> String {
    if package.change == "removed" {
        String::new()
    } else {
        human_size(package.bytes)
    }
}
