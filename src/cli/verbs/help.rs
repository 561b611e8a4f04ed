//! `landfall help`: the overview, the help of a verb, or a page of the manual.

use crate::cli::help::pages::{self, show};
use crate::cli::shared::{CliError, VerbOutcome};
use clap::{Args, Command};
use landfall_model::document::nearest;

/// Print the help of a verb or a page of the manual
#[derive(Args)]
pub(crate) struct HelpCommand {
    /// A verb with its subcommand, or a page: `landfall help push`, `landfall help signing`
    #[arg(value_name = "VERB|PAGE")]
    words: Vec<String>,
    /// Show the page, even if there is a verb with this name
    #[arg(long)]
    page: bool,
}

impl HelpCommand {
    pub(crate) fn run(self, mut command: Command) -> Result<VerbOutcome, CliError> {
        command.build();
        if self.words.is_empty() {
            return Ok(show(&command.render_long_help().to_string()));
        }
        let page = if let [word] = &self.words[..] {
            pages::page(word)
        } else {
            None
        };
        let verb = self.words.iter().try_fold(&mut command, |command, word| {
            command.find_subcommand_mut(word)
        });
        match (verb, page) {
            (Some(verb), None) if !self.page => Ok(show(&verb.render_long_help().to_string())),
            (Some(verb), Some(_)) if !self.page => Ok(show(&format!(
                "{}\nThe manual has a page on this: landfall help --page {}\n",
                verb.render_long_help(),
                self.words.concat()
            ))),
            (_, Some(page)) => Ok(show(&page)),
            _ => {
                let written = self.words.join(" ");
                let verbs = command
                    .get_subcommands()
                    .map(|verb| verb.get_name().to_owned());
                let known: Vec<String> = verbs.chain(pages::words().map(str::to_owned)).collect();
                let near = nearest(&written, known.iter().map(String::as_str))
                    .map(|near| format!("did you mean {near}? "));
                Err(CliError::usage(format!(
                    "there is no verb and no page '{written}'; {}`landfall help` lists both",
                    near.unwrap_or_default()
                )))
            }
        }
    }
}
