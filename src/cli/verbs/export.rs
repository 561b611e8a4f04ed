//! `landfall export`: what is carried, in forms that other tools use.

use super::export_charts::Charts;
use super::export_files::Files;
use super::export_images::Images;
use super::export_list::List;
use super::export_packages::{Apt, Yum};
use super::export_referrers::Referrers;
use crate::cli::shared::{Context, Failure, Outcome};
use clap::{Args, Subcommand};

/// Write what is carried in a form that other tools use
#[derive(Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Images(Images),
    Files(Files),
    Referrers(Referrers),
    Charts(Charts),
    Apt(Apt),
    Yum(Yum),
    #[command(flatten)]
    List(List),
}

impl Export {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        match self.what {
            What::Images(images) => images.run(context),
            What::Files(files) => files.run(context),
            What::Referrers(referrers) => referrers.run(context),
            What::Charts(charts) => charts.run(context),
            What::Apt(apt) => apt.run(context),
            What::Yum(yum) => yum.run(context),
            What::List(list) => list.run(context),
        }
    }
}
