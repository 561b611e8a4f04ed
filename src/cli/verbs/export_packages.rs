//! `landfall export apt` and `landfall export yum`.

use crate::cli::shared::exported_files::FolderExport;
use crate::cli::shared::{Context, Failure, Outcome};
use crate::report::Kind;
use crate::serve::export_packages;
use clap::Args;

/// Write the repositories of apt as a folder HOST/PATH, which any web server offers to machines
#[derive(Args)]
pub(crate) struct Apt {
    #[command(flatten)]
    export: FolderExport,
}

impl Apt {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.export.run(
            context,
            |kind| kind == Kind::Package,
            |lock, blobs, dir, dry, progress| export_packages("apt:", lock, blobs, dir, dry, progress),
        )
    }
}

/// Write the repositories of yum and dnf as a folder HOST/PATH, which any web server offers to machines
#[derive(Args)]
pub(crate) struct Yum {
    #[command(flatten)]
    export: FolderExport,
}

impl Yum {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.export.run(
            context,
            |kind| kind == Kind::Package,
            |lock, blobs, dir, dry, progress| export_packages("yum:", lock, blobs, dir, dry, progress),
        )
    }
}
