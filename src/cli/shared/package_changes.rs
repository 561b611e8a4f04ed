//! Changed packages of package sets: lines, tables and changelogs.

use super::{CliError, Context};
use crate::lock::{self, LockChange, PackageChange};
use clap::Args;
use landfall_content::{BlobRead, VerifiedRead};
use landfall_item::lockfile::Lock;
use landfall_item::{GeneratedFile, LockedPackageSet, OfferedIndex, trimmed_metadata};
use landfall_model::document::read_input;
use landfall_model::human_size;
use landfall_model::report::{Markdown, markdown_code, markdown_text, one_line};
use landfall_model::sign::OpenPgpSigner;
use std::collections::HashSet;
use std::path::PathBuf;

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

// `--packages-key`: the OpenPGP key with which a site signs package metadata.

/// The environment variable with the passphrase of the key.
const PASSPHRASE: &str = "LANDFALL_PACKAGES_PASSPHRASE";

#[derive(Args)]
pub(crate) struct PackagesKey {
    /// Sign the metadata of packages with `index: trimmed` with this OpenPGP private key file. Its
    /// passphrase is read from `LANDFALL_PACKAGES_PASSPHRASE`
    #[arg(long, value_name = "FILE")]
    packages_key: Option<PathBuf>,
}

impl PackagesKey {
    /// The signed metadata of the `sets` that have `index: trimmed`. Returns `None` if there are
    /// such sets and no key is named.
    pub(crate) fn sign_metadata<'s>(
        &self,
        sets: impl Iterator<Item = (&'s LockedPackageSet, &'s dyn BlobRead)>,
        context: &Context,
    ) -> Result<Option<Vec<GeneratedFile>>, CliError> {
        let sets: Vec<_> = sets.collect();
        if !sets
            .iter()
            .any(|(set, _)| set.index == OfferedIndex::Trimmed)
        {
            return Ok(Some(Vec::new()));
        }
        let Some(path) = &self.packages_key else {
            return Ok(None);
        };
        let wrong =
            |why: &dyn std::fmt::Display| CliError::usage(format!("{}: {why}", path.display()));
        let bytes = read_input(path).map_err(|error| wrong(&error))?;
        let passphrase = std::env::var(PASSPHRASE).ok();
        let signer =
            OpenPgpSigner::parse(&bytes, passphrase.as_deref()).map_err(|error| wrong(&error))?;
        Ok(Some(trimmed_metadata(
            sets.into_iter(),
            &signer,
            &context.limits,
        )?))
    }
}
