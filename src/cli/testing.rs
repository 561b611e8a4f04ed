//! What the unit tests of the command line share: a verb, run in this process.

use super::Cli;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Parser;
use std::path::Path;

/// What the verb returns of this line, in which `DIR` stands for the folder.
pub(super) fn run(dir: &Path, line: &str) -> Result<VerbOutcome, CliError> {
    let store = dir.join("store").display().to_string();
    let words = ["landfall", "--store", &store, "--progress", "none"]
        .map(str::to_owned)
        .into_iter();
    let path = |word: &str| word.replace("DIR", &dir.display().to_string());
    let cli = Cli::try_parse_from(words.chain(line.split(' ').map(path))).unwrap();
    let context = Context::new(cli.global).unwrap();
    cli.verb.run(&context)
}
