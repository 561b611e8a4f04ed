//! Writes files that must not exist yet: all of them, or none.

use crate::cli::shared::{CliError, Exit};
use landfall_content::create_file;
use landfall_model::report::TransferSide;
use std::fs;
use std::path::{Path, PathBuf};

/// The paths of files, each with its content.
pub(crate) type NewFiles<'f> = [(PathBuf, &'f str)];

/// Checks that none of the files exists.
pub(crate) fn refuse_present(files: &[impl AsRef<Path>]) -> Result<(), CliError> {
    match files
        .iter()
        .map(AsRef::as_ref)
        // A dangling symbolic link exists too.
        .find(|file| file.symlink_metadata().is_ok())
    {
        None => Ok(()),
        Some(file) => {
            let message = format!("{} already exists and was left unchanged", file.display());
            Err(CliError::usage(message)
                .with_help("name another folder with -o DIR, or move the file away"))
        }
    }
}

/// Writes the files to `folder` and runs `check`. If either fails, the files are removed again.
pub(crate) fn write_new(
    folder: &Path,
    files: &NewFiles<'_>,
    check: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
    let mut written = Vec::new();
    let attempt = || {
        for (file, text) in files {
            create_file(file, text.as_bytes()).map_err(|error| write_error(file, &error))?;
            written.push(file);
        }
        check()
    };
    let result = attempt();
    if result.is_err() {
        written.iter().for_each(|file| drop(fs::remove_file(file)));
        if is_new {
            // Fails, as it should, if something else was put into the folder meanwhile.
            let _ = fs::remove_dir(folder);
        }
    }
    result
}

fn write_error(file: &Path, error: &dyn std::fmt::Display) -> CliError {
    let message = format!("cannot write {}: {error}", file.display());
    CliError::new(Exit::Failed, message).on(TransferSide::Destination)
}
