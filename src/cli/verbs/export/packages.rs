//! `landfall export apt` and `landfall export yum`: write package repositories for a web server.

use super::folder::FolderExport;
use crate::cli::shared::packages_key::PackagesKey;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::report::EntryKind;
use landfall_serve::export_packages;

/// Write the apt repositories to a folder as HOST/PATH, for a web server
#[derive(Args)]
pub(crate) struct ExportApt {
    #[command(flatten)]
    packages: ExportPackages,
}

/// Write the yum and dnf repositories to a folder as HOST/PATH, for a web server
#[derive(Args)]
pub(crate) struct ExportYum {
    #[command(flatten)]
    packages: ExportPackages,
}

#[derive(Args)]
struct ExportPackages {
    #[command(flatten)]
    export: FolderExport,
    #[command(flatten)]
    key: PackagesKey,
}

impl ExportApt {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.packages.run(context, "apt:")
    }
}

impl ExportYum {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.packages.run(context, "yum:")
    }
}

fn is_package(kind: EntryKind) -> bool {
    kind == EntryKind::Package
}

impl ExportPackages {
    /// Writes the repositories of `system`, `apt:` or `yum:`.
    fn run(self, context: &Context, system: &'static str) -> Result<VerbOutcome, CliError> {
        let (lock, blobs) = self.export.open(context, is_package)?;
        let sets = lock
            .packages
            .iter()
            .filter(|set| set.name.starts_with(system));
        let made = self
            .key
            .sign_metadata(sets.map(|set| (set, &*blobs)), context)?
            .ok_or_else(|| {
                CliError::usage(
                    "the lock has packages with `index: trimmed`, whose metadata must be signed",
                )
                .with_help("name the OpenPGP key of the site with --packages-key FILE")
            })?;
        self.export.write(
            context,
            is_package,
            lock,
            blobs,
            Box::new(move |lock, blobs, dir, dry_run, progress| {
                export_packages(system, lock, &made, blobs, dir, dry_run, progress)
            }),
        )
    }
}
