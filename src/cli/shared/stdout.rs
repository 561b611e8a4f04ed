//! Stdout as the place of a result that is no text.

use crate::cli::shared::{Context, Exit, Failure, OutputMode};
use std::fs::File;
use std::io::{IsTerminal, stdout};
use std::os::fd::AsFd;

/// The pipe or file that stdout is, for `what`, which -o - writes there.
///
/// # Errors
/// When it is a terminal, or the JSON document goes there (exit 2).
pub(crate) fn result_stdout(context: &Context, what: &str) -> Result<File, Failure> {
    let wrong = |why: &str| Failure::usage(format!("-o - writes {what} to stdout: {why}"));
    if context.global.output != OutputMode::Text {
        return Err(wrong(
            "the document of --output would go there too; --report FILE writes one to a file",
        ));
    }
    if stdout().is_terminal() {
        return Err(wrong("send it to a pipe or a file, not to a terminal"));
    }
    let file = stdout().as_fd().try_clone_to_owned().map(File::from);
    file.map_err(|error| Failure::new(Exit::Failed, format!("cannot use stdout: {error}")))
}
