//! `landfall export apt` and `landfall export yum`.

use crate::cli::shared::exported_files::FolderExport;
use crate::cli::shared::{Context, Failure, Outcome};
use crate::report::Kind;
use crate::serve::{export_apt, export_yum};
use clap::Args;

/// Write the repositories of apt as a folder HOST/PATH, which any web server offers to machines
#[derive(Args)]
pub(crate) struct Apt {
    #[command(flatten)]
    export: FolderExport,
}

impl Apt {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.export.run(context, |kind| kind == Kind::Package, export_apt)
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
        self.export.run(context, |kind| kind == Kind::Package, export_yum)
    }
}
