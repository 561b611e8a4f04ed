//! `landfall export`: writes the content of a bundle or the store for other tools.

mod folder;
mod images;
mod list;
mod referrers;

use self::folder::{ExportApt, ExportCharts, ExportFiles, ExportGit, ExportProviders, ExportYum};
use self::images::ExportImages;
use self::list::ExportList;
use self::referrers::ExportReferrers;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::{Args, Subcommand};

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
