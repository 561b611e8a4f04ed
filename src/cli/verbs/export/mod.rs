//! `landfall export`: writes the content of a bundle or the store for other tools.

mod charts;
mod files;
mod folder;
mod git;
mod images;
mod images_report;
mod licences;
mod list;
mod packages;
mod providers;
mod referrers;

use crate::cli::shared::{CliError, Context, VerbOutcome};
use charts::ExportCharts;
use clap::{Args, Subcommand};
use files::ExportFiles;
use git::ExportGit;
use images::ExportImages;
use list::ExportList;
use packages::{ExportApt, ExportYum};
use providers::ExportProviders;
use referrers::ExportReferrers;

/// Export images, files, charts, packages, git or providers
#[derive(Args)]
pub(crate) struct ExportCommand {
    #[command(subcommand)]
    what: ExportSubcommand,
}

#[derive(Subcommand)]
enum ExportSubcommand {
    Images(ExportImages),
    Files(ExportFiles),
    Referrers(ExportReferrers),
    Charts(ExportCharts),
    Apt(ExportApt),
    Yum(ExportYum),
    Git(ExportGit),
    Providers(ExportProviders),
    #[command(flatten)]
    List(ExportList),
}

impl ExportCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self.what {
            ExportSubcommand::Images(images) => images.run(context),
            ExportSubcommand::Files(files) => files.run(context),
            ExportSubcommand::Referrers(referrers) => referrers.run(context),
            ExportSubcommand::Charts(charts) => charts.run(context),
            ExportSubcommand::Apt(apt) => apt.run(context),
            ExportSubcommand::Yum(yum) => yum.run(context),
            ExportSubcommand::Git(git) => git.run(context),
            ExportSubcommand::Providers(providers) => providers.run(context),
            ExportSubcommand::List(list) => list.run(context),
        }
    }
}
