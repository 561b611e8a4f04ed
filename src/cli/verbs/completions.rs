//! `landfall completions` and `landfall man`.

use crate::cli::shared::pager::show;
use crate::cli::shared::{Exit, Failure, Outcome};
use clap::{Args, Command};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::Command as Program;

/// Print a completion script for a shell
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(self, mut command: Command) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "landfall", &mut script);
        Ok(Outcome::text(String::from_utf8_lossy(&script)).document())
    }
}

/// Show the manual page of landfall or of a verb; its source where stdout is no terminal
#[derive(Args)]
pub(crate) struct Man {
    /// The verb, in one word or more: `lock`, `export images`
    verb: Vec<String>,
    /// Write all pages into this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Result<Outcome, Failure> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        if let Some(folder) = &self.out {
            let cannot = |error| {
                Failure::new(
                    Exit::Failed,
                    format!("cannot write the pages to {}: {error}", folder.display()),
                )
            };
            std::fs::create_dir_all(folder).map_err(cannot)?;
            clap_mangen::generate_to(command, folder).map_err(cannot)?;
            return Ok(Outcome::text(format!(
                "the manual pages are in {}\n",
                folder.display()
            )));
        }
        for verb in &self.verb {
            let found = command.find_subcommand(verb).cloned();
            command = found.ok_or_else(|| {
                Failure::usage(format!("there is no verb '{verb}'; see landfall --help"))
            })?;
        }
        let cannot = |error| Failure::new(Exit::Failed, format!("cannot write the page: {error}"));
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone())
            .render(&mut page)
            .map_err(cannot)?;
        if !std::io::stdout().is_terminal() {
            return Ok(Outcome::text(String::from_utf8_lossy(&page)).document());
        }
        let mut file = tempfile::NamedTempFile::new().map_err(cannot)?;
        file.write_all(&page).map_err(cannot)?;
        let shown = Program::new("man").arg("-l").arg(file.path()).status();
        if shown.is_ok_and(|status| status.success()) {
            return Ok(Outcome::text(""));
        }
        // a machine without man, or a man that finds no pager
        let help = command.render_long_help().to_string();
        Ok(show(&help))
    }
}
