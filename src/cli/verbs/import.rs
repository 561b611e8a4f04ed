//! `landfall import`: what other tools wrote down, as landfall's own documents.

use crate::cli::shared::{Exit, Failure, Outcome};
use crate::config::{TkgSite, site_of_tkg};
use crate::content::create;
use crate::report::{Report, Side, escape};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};

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
        if let Some((there, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
            let there = there.display();
            return Err(Failure::usage(format!(
                "there is a {there} already, and it stays; name another folder with -o DIR, or move it away"
            )));
        }
        write(&out, &files)?;
        let mut report = Report::default();
        report.extra.insert("site".into(), json!(site));
        let wrote = files.iter().map(|(path, _)| format!("wrote {}", path.display()));
        let text = wrote.chain(notes).map(|line| escape(&line) + "\n").collect::<String>();
        Ok(Outcome::of(report, text))
    }
}

fn write(folder: &Path, files: &[(PathBuf, &str)]) -> Result<(), Failure> {
    let cannot = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display())).on(Side::Destination)
    };
    std::fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    for (path, text) in files {
        create(path, text.as_bytes()).map_err(|error| cannot(path, &error))?;
    }
    Ok(())
}
