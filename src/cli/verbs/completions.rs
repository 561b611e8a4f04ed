//! `landfall completions` and `landfall man`.

use crate::cli::shared::{Exit, Failure, Outcome};
use clap::{Args, Command};

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
        Ok(Outcome::text(String::from_utf8_lossy(&script)))
    }
}

/// Print the manual page, of landfall or of one verb
#[derive(Args)]
pub(crate) struct Man {
    /// The verb
    verb: Option<String>,
}

impl Man {
    pub(crate) fn run(self, mut command: Command) -> Result<Outcome, Failure> {
        command.build();
        if let Some(verb) = &self.verb {
            let found = command.find_subcommand(verb).cloned();
            command = found
                .ok_or_else(|| Failure::usage(format!("there is no verb '{verb}'; see landfall --help")))?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write the page: {error}")))?;
        Ok(Outcome::text(String::from_utf8_lossy(&page)))
    }
}
