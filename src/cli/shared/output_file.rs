//! Writes results to the file of `--out` or to stdout, and checks early that a file can be written.

use super::{CliError, Context, OutputMode, VerbOutcome};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use landfall_content::{
    OutputGuard, OutputRecord, create_file, is_written_in_place, parent_folder, write_file,
};
use landfall_model::document::read_input;
use landfall_model::report::{TransferSide, one_line};
use landfall_model::{Digest, Failure};
use landfall_os::{check_writable, stdout_file};
use std::fs::{self, File};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

/// The file of `--out` for a text. `-` is stdout, as without `--out`.
pub(crate) fn text_file(out: Option<&Path>) -> Option<&Path> {
    out.filter(|path| *path != Path::new("-"))
}

/// Parses the path of a file or folder that is written. `-`, which is stdout elsewhere, is refused:
/// nobody wants a file with this name.
pub(crate) fn written_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            Err("it cannot be stdout; name a file or folder")
        } else {
            Ok(path)
        }
    })
}

/// Like [`written_path`], for a folder: a file with this name is refused.
pub(crate) fn written_folder() -> impl TypedValueParser<Value = PathBuf> {
    written_path().try_map(|path| {
        if path.exists() && !path.is_dir() {
            Err("it is a file; name a folder, which need not exist")
        } else {
            Ok(path)
        }
    })
}

/// The flag that allows a command to replace the files of others.
#[derive(Args, Clone, Copy)]
pub(crate) struct ReplaceFlag {
    /// Also replace files that this command did not write
    #[arg(long = "replace", requires = "out")]
    pub(crate) replaces: bool,
}

impl ReplaceFlag {
    /// The file of `--out`, if it is given and is not `-`.
    pub(crate) fn file<'f>(
        self,
        out: Option<&'f Path>,
        mark: OutputMark<'f>,
    ) -> Option<OutputFile<'f>> {
        text_file(out).map(|path| OutputFile {
            path,
            replaces: self.replaces,
            mark,
        })
    }
}

/// A file for the text of a result.
#[derive(Clone, Copy)]
pub(crate) struct OutputFile<'f> {
    pub(crate) path: &'f Path,
    /// Whether a file of others is replaced.
    pub(crate) replaces: bool,
    pub(crate) mark: OutputMark<'f>,
}

/// How the earlier output of a command is recognized.
#[derive(Clone, Copy)]
pub(crate) enum OutputMark<'f> {
    /// By its content.
    Content(&'f dyn Fn(&str) -> bool),
    /// By the record in its folder, in which the command has this name.
    Record(&'f str),
}

impl OutputFile<'_> {
    /// Writes `text`, atomically unless the file is written in place. Fails if the file exists with
    /// other content and was not written by the same command.
    pub(crate) fn write(&self, text: &str) -> Result<(), CliError> {
        // the record of a command creates its folder
        if matches!(self.mark, OutputMark::Content(_)) {
            check_output("the file", self.path)?;
        }
        self.claim(text)?;
        write_file(self.path, text.as_bytes())
            .map_err(|error| Failure::write(self.path, error).into())
    }

    fn claim(&self, text: &str) -> Result<(), CliError> {
        if is_written_in_place(self.path) {
            return Ok(());
        }
        let mut guard = OutputGuard::new(self.replaces);
        let is_same = || present_text(self.path).is_some_and(|present| present == text);
        match self.mark {
            OutputMark::Content(is_own) => {
                guard.check(self.path, |path| {
                    is_same() || present_text(path).is_some_and(|present| is_own(&present))
                });
                Ok(guard.finish()?)
            }
            OutputMark::Record(command) => {
                let record = OutputRecord::read(parent_folder(self.path), command)?;
                let name = Path::new(self.path.file_name().unwrap_or_default());
                guard.check(self.path, |_| record.has(name) || is_same());
                guard.finish()?;
                if !is_same() {
                    record.add([name])?;
                }
                Ok(())
            }
        }
    }
}

/// The maximum size in bytes of a text whose mark is read.
const MAX_TEXT: u64 = 256 << 20;

/// The content of a text file; `None` if it cannot be read or is too large.
pub(crate) fn present_text(path: &Path) -> Option<String> {
    if path.metadata().ok()?.len() > MAX_TEXT {
        return None;
    }
    String::from_utf8(read_input(path).ok()?).ok()
}

/// The start of the last line of a sealed text.
const SEAL: &str = "# landfall may replace this file while the lines above have the SHA-256 ";

/// Adds a last line, a comment, by which [`is_sealed`] notices whether a person has edited a text.
pub(crate) fn sealed(text: &str) -> String {
    let hex = Digest::sha256(text.as_bytes()).hex();
    format!("{text}{SEAL}{hex}\n")
}

/// Whether a text was sealed, and not edited since.
pub(crate) fn is_sealed(text: &str) -> bool {
    text.rfind(SEAL)
        .is_some_and(|at| sealed(&text[..at]) == text)
}

/// Writes the text of `result` to `out`, and returns an outcome that prints `lines`. Without `out`,
/// the text goes to stdout, and `lines` to stderr.
pub(crate) fn write_result(
    result: VerbOutcome,
    out: Option<OutputFile<'_>>,
    lines: &[String],
    context: &Context,
) -> Result<VerbOutcome, CliError> {
    // names of files may have line breaks
    let lines = lines.iter().map(|line| one_line(line));
    let Some(out) = out else {
        lines.for_each(|line| context.progress.note(&line));
        return Ok(result.document());
    };
    out.write(&result.text)?;
    Ok(VerbOutcome {
        text: lines.map(|line| line + "\n").collect(),
        ..result
    })
}

/// Stdout as a file, for `-o -` and a result that is not text. Messages call the result `what`.
pub(crate) fn result_stdout(context: &Context, what: &str) -> Result<File, CliError> {
    let wrong = |why: &str| CliError::usage(format!("-o - writes {what} to stdout: {why}"));
    if context.global.output != OutputMode::Text {
        return Err(wrong(
            "--output would print its document there too; use --report FILE",
        ));
    }
    if stdout().is_terminal() {
        return Err(wrong("use a pipe or a file, not a terminal"));
    }
    stdout_file().map_err(|error| CliError::failed(format!("cannot use stdout: {error}")))
}

/// Checks that `file` can be written. Callers do this before work whose result would otherwise be
/// lost.
pub(crate) fn check_output(what: &str, file: &Path) -> Result<(), CliError> {
    if file.is_dir() {
        return Err(unwritable(what, file, "it is a folder; name a file in it"));
    }
    check_folder(what, file)
}

/// Checks that a file can be written to the folder of `file`.
pub(crate) fn check_folder(what: &str, file: &Path) -> Result<(), CliError> {
    let folder = parent_folder(file);
    // The folder of a file that is written in place, such as /dev/stdout, need not be writable.
    let place = if is_written_in_place(file) {
        file
    } else {
        folder
    };
    let fault = if !folder.exists() {
        format!(
            "the folder {} does not exist; create it first",
            folder.display()
        )
    } else if !folder.is_dir() {
        format!("{} is not a folder", folder.display())
    } else {
        match check_writable(place) {
            Ok(()) => return Ok(()),
            Err(error) => error.to_string(),
        }
    };
    Err(unwritable(what, file, &fault))
}

fn unwritable(what: &str, file: &Path, fault: &str) -> CliError {
    let message = format!("cannot write {what} {}: {fault}", file.display());
    CliError::failed(message).on(TransferSide::Destination)
}

// Writes files that must not exist yet: all of them, or none.

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
    files: &[(impl AsRef<Path>, impl AsRef<str>)],
    check: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    let mut written = Vec::new();
    let attempt = || {
        for (file, text) in files {
            let file = file.as_ref();
            create_file(file, text.as_ref().as_bytes())
                .map_err(|error| Failure::write(file, error))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_text_is_not_sealed() {
        let text = sealed("a: 1\nb: 2\n");
        assert!(is_sealed(&text), "{text}");
        for edited in [
            text.replace("a: 1", "a: 2"),
            text.clone() + "c: 3\n",
            "a: 1\n".into(),
            String::new(),
        ] {
            assert!(!is_sealed(&edited), "{edited}");
        }
    }

    #[test]
    fn an_unwritable_file_is_found_early() {
        let dir = tempfile::tempdir().unwrap();
        let message = |file: &Path| {
            check_output("the report", file)
                .unwrap_err()
                .message
                .clone()
        };
        check_output("the report", &dir.path().join("new.json")).unwrap();
        check_output("the report", Path::new("/dev/null")).unwrap();
        assert!(message(dir.path()).ends_with("it is a folder; name a file in it"));
        let nowhere = message(&dir.path().join("none/new.json"));
        assert!(
            nowhere.contains("does not exist") && nowhere.ends_with("create it first"),
            "{nowhere}"
        );
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(message(&dir.path().join("file/new.json")).ends_with("/file is not a folder"));
    }
}
