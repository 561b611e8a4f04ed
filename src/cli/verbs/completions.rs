//! `landfall completions` and `landfall man`.

use crate::cli::help::man::{all_pages, page};
use crate::cli::help::pages::show;
use crate::cli::shared::output_file::{ReplaceFlag, present_text, written_folder};
use crate::cli::shared::{CliError, VerbOutcome};
use clap::{Args, Command};
use landfall_content::OutputGuard;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Program;

/// Print a completion script for a shell
#[derive(Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsCommand {
    pub(crate) fn run(self, mut command: Command) -> Result<VerbOutcome, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "landfall", &mut script);
        Ok(VerbOutcome::text(String::from_utf8_lossy(&script)).document())
    }
}

/// Show the manual page of landfall or of a verb
///
/// If stdout is not a terminal, the source of the page is printed.
#[derive(Args)]
pub(crate) struct ManCommand {
    /// The verb, with its subcommand if it has one: `lock`, `export images`
    verb: Vec<String>,
    /// Write all pages to this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "verb",
        value_parser = written_folder())]
    out: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceFlag,
}

impl ManCommand {
    pub(crate) fn run(self, mut command: Command) -> Result<VerbOutcome, CliError> {
        command.build();
        if let Some(folder) = &self.out {
            let failed = |error: std::io::Error| {
                let folder = folder.display();
                CliError::failed(format!("cannot write the pages to {folder}: {error}"))
            };
            let pages = all_pages(&command).map_err(failed)?;
            let mut guard = OutputGuard::new(self.replace.replaces);
            for (name, _) in &pages {
                guard.check(&folder.join(name), is_own_page);
            }
            guard.finish()?;
            write_pages(&pages, folder).map_err(failed)?;
            return Ok(VerbOutcome::text(format!(
                "the manual pages are in {}\n",
                folder.display()
            )));
        }
        for verb in &self.verb {
            let found = command.find_subcommand(verb).cloned();
            command = found.ok_or_else(|| {
                CliError::usage(format!("there is no verb '{verb}'; see landfall --help"))
            })?;
        }
        let cannot_show = |error| CliError::failed(format!("cannot show the page: {error}"));
        let page = page(&command).map_err(cannot_show)?;
        if !std::io::stdout().is_terminal() {
            return Ok(VerbOutcome::text(String::from_utf8_lossy(&page)).document());
        }
        let mut file = tempfile::NamedTempFile::new().map_err(cannot_show)?;
        file.write_all(&page).map_err(cannot_show)?;
        let shown = Program::new("man").arg("-l").arg(file.path()).status();
        if shown.is_ok_and(|status| status.success()) {
            return Ok(VerbOutcome::text(""));
        }
        // `man` is not installed, or it failed.
        Ok(show(&command.render_long_help().to_string()))
    }
}

/// Whether the file at `path` is a manual page of landfall.
fn is_own_page(path: &Path) -> bool {
    let text = present_text(path).unwrap_or_default();
    text.lines().any(|line| line.starts_with(".TH landfall"))
}

fn write_pages(pages: &[(String, Vec<u8>)], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, page) in pages {
        std::fs::write(folder.join(name), page)?;
    }
    Ok(())
}
