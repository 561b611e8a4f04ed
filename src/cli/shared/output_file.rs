//! Writes a result to the file of `--out`, or to stdout.

use crate::cli::shared::{CliError, Context, Exit, OutputMode, VerbOutcome};
use landfall_content::{parent_folder, write_file};
use landfall_model::report::{TransferSide, one_line};
use std::fs::File;
use std::io::{IsTerminal, stdout};
use std::os::fd::AsFd;
use std::path::Path;

/// Writes `made` to the file `out`: whole, or not at all.
pub(crate) fn write_to(out: &Path, made: &str) -> Result<(), CliError> {
    write_file(out, made.as_bytes()).map_err(|error| {
        let message = format!("cannot write {}: {error}", out.display());
        CliError::new(Exit::Failed, message).on(TransferSide::Destination)
    })
}

/// Writes the text of `made` to `out`, and returns the outcome with `lines` in its place; without
/// `out` the outcome itself, whose text is a document.
pub(crate) fn write_result(
    made: VerbOutcome,
    out: Option<&Path>,
    lines: &[String],
    context: &Context,
) -> Result<VerbOutcome, CliError> {
    let Some(path) = out else {
        lines.iter().for_each(|line| context.progress.note(line));
        return Ok(made.document());
    };
    write_to(path, &made.text)?;
    Ok(VerbOutcome {
        text: lines.iter().map(|line| one_line(line) + "\n").collect(),
        ..made
    })
}

/// The pipe or file that stdout is, for `what`, which -o - writes there.
pub(crate) fn result_stdout(context: &Context, what: &str) -> Result<File, CliError> {
    let wrong = |why: &str| CliError::usage(format!("-o - writes {what} to stdout: {why}"));
    if context.global.output != OutputMode::Text {
        return Err(wrong(
            "the document of --output would go there too; --report FILE writes one to a file",
        ));
    }
    if stdout().is_terminal() {
        return Err(wrong("send it to a pipe or a file, not to a terminal"));
    }
    let file = stdout().as_fd().try_clone_to_owned().map(File::from);
    file.map_err(|error| CliError::new(Exit::Failed, format!("cannot use stdout: {error}")))
}

/// Refuses a file that could not be written when everything else is done.
pub(crate) fn check_output(what: &str, file: &Path) -> Result<(), CliError> {
    let folder = parent_folder(file);
    // a link or a device is written to as it stands
    let is_there = file.exists();
    let place = if is_there && !file.is_file() {
        file
    } else {
        folder
    };
    let fault = if file.is_dir() {
        Some("it is a folder; name a file in it".to_owned())
    } else if !folder.exists() {
        Some(format!(
            "there is no folder {}; make it first",
            folder.display()
        ))
    } else if !folder.is_dir() {
        Some(format!("{} is no folder", folder.display()))
    } else {
        rustix::fs::access(place, rustix::fs::Access::WRITE_OK)
            .err()
            .map(|error| error.to_string())
    };
    let Some(fault) = fault else { return Ok(()) };
    let message = format!("cannot write {what} {}: {fault}", file.display());
    Err(CliError::new(Exit::Failed, message).on(TransferSide::Destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_found_first() {
        let dir = tempfile::tempdir().unwrap();
        let message = |file: &Path| check_output("the report", file).unwrap_err().message;
        check_output("the report", &dir.path().join("new.json")).unwrap();
        check_output("the report", Path::new("/dev/null")).unwrap();
        assert!(message(dir.path()).ends_with("it is a folder; name a file in it"));
        let nowhere = message(&dir.path().join("none/new.json"));
        assert!(
            nowhere.contains("there is no folder") && nowhere.ends_with("make it first"),
            "{nowhere}"
        );
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(message(&dir.path().join("file/new.json")).contains("file"));
    }
}
