//! `landfall import`: what other tools wrote down, as landfall's own documents.

use crate::cli::shared::new_files::{refuse_present, write_new};
use crate::cli::shared::{Failure, Outcome};
use crate::config::{TkgSite, site_of_tkg};
use crate::report::{Report, escape};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Write a site from what another tool wrote down
#[derive(Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    /// A site from a cluster configuration of TKG, or from the Secret in which TKG keeps one
    ///
    /// It replaces no file, and takes over no account.
    Tkg {
        /// The configuration
        file: PathBuf,
        /// The folder to write site.yaml to, and ca.crt where the configuration has one
        #[arg(short, long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

impl Import {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let Format::Tkg { file, out } = self.format;
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
        let TkgSite { site, ca, notes } = site_of_tkg(&file.display().to_string(), &text)?;
        let mut files = vec![(out.join("site.yaml"), site.as_str())];
        files.extend(ca.as_deref().map(|ca| (out.join("ca.crt"), ca)));
        let paths: Vec<&PathBuf> = files.iter().map(|(path, _)| path).collect();
        refuse_present(&paths)?;
        write_new(&out, &files, || Ok(()))?;
        let mut report = Report::default();
        report.extra.insert("site".into(), json!(site));
        let wrote = files.iter().map(|(path, _)| format!("wrote {}", path.display()));
        let text = wrote.chain(notes).map(|line| escape(&line) + "\n").collect::<String>();
        Ok(Outcome::of(report, text))
    }
}
