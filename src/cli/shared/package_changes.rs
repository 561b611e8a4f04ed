//! How the packages of sets differ, for people: lines, tables, and what packages say of their
//! versions.

use crate::cli::shared::Context;
use crate::lock;
use crate::lock::LockChange;
use crate::lock::PackageChange;
use landfall_content::VerifiedRead;
use landfall_item::lockfile::Lock;
use landfall_model::human_size;
use landfall_model::report::{Markdown, markdown_code, markdown_text, one_line};
use std::collections::HashSet;

/// Adds what the packages that `changes` bring say of their versions, as far as they can be read in
/// `content` without asking anybody. What is damaged there is told.
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

/// A line for each package that differs in a set of them, to stand below the line of the set, with
/// what its changelog says.
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

/// Adds a table for each set of which packages differ.
pub(crate) fn package_tables<'a>(
    document: &mut Markdown,
    changes: impl IntoIterator<Item = &'a LockChange>,
) {
    for change in changes
        .into_iter()
        .filter(|change| !change.packages.is_empty())
    {
        let rows = with_changelogs(change).map(|(package, changelog)| {
            let (name, arch) = (markdown_code(&package.name), markdown_code(&package.arch));
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

/// The packages of a set that differ, and what is told of the changelog of each. Packages that were
/// made from one source have one changelog, which the first of them tells.
fn with_changelogs(change: &LockChange) -> impl Iterator<Item = (&PackageChange, &[String])> {
    let mut told = HashSet::new();
    change
        .packages
        .iter()
        .map(move |package| match told.insert(&package.changelog) {
            true => (package, package.changelog.as_slice()),
            false => (package, &[][..]),
        })
}

/// `1.0 -> 1.1`, or the one version that there is.
fn versions(package: &PackageChange) -> String {
    let versions: Vec<&str> = [&package.from, &package.to]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    versions.join(" -> ")
}

/// What it brings; nothing for one that is removed.
fn size(package: &PackageChange) -> String {
    if package.change == "removed" {
        String::new()
    } else {
        human_size(package.bytes)
    }
}
