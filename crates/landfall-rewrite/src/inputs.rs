//! Finds and reads the files to rewrite or audit, and writes the rewritten ones.

use landfall_content::{FileChanged, is_caused_by, replace_file, write_file_like};
use landfall_model::Failure;
use landfall_model::document::{
    TextEncoding, decode_text, is_leftover, is_pipe, open_input, read_input,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Endings of documents. It is an error if a document is not text.
const DOCUMENTS: [&str; 3] = ["yaml", "yml", "json"];
/// Endings of other texts that are read in folders. Prose, source code and lists of images are not
/// among them.
const TEXTS: [&str; 32] = [
    "sh",
    "bash",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "tpl",
    "gotmpl",
    "tmpl",
    "template",
    "service",
    "container",
    "nomad",
    "properties",
    "mk",
    "dockerfile",
    "jenkinsfile",
    "tf",
    "tfvars",
    "tofu",
    "hcl",
    "jsonnet",
    "libsonnet",
    "star",
    "j2",
    "jinja",
    "jinja2",
    "tftpl",
    "just",
    "ign",
    "bu",
];
/// Beginnings of the names of other files that are read in folders.
const NAMES: [&str; 13] = [
    "dockerfile",
    "containerfile",
    "earthfile",
    "kubefile",
    "jenkinsfile",
    "tiltfile",
    "vagrantfile",
    "makefile",
    "gnumakefile",
    "justfile",
    "kustomization",
    "user-data",
    ".env",
];
/// Endings of further units of Quadlet, which are read in folders if they begin like a unit: other
/// files with these endings are binary.
const UNITS: [&str; 3] = ["image", "build", "volume"];
/// First bytes of units.
const UNIT_START: [&str; 3] = ["[", "#", ";"];
/// First bytes of files without an ending that are read in folders.
const FIRST_BYTES: [&str; 2] = ["#!", "#cloud-config"];
/// Folders of version control systems, which are skipped.
const VCS: [&str; 8] = [
    ".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", "_darcs", "CVS",
];

/// An error from rewriting a file.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A failure whose message names the path.
    #[error(transparent)]
    Path(Failure),
    /// A failure of the file that is rewritten. The message does not name its path.
    #[error(transparent)]
    File(Failure),
}

impl RewriteError {
    /// The error for a text in UTF-16 whose result would be printed.
    pub fn utf16_output() -> RewriteError {
        file_error(
            "it is UTF-16, which is not printed; use --in-place or --out DIR, which keep the \
             encoding",
        )
    }
}

impl From<RewriteError> for Failure {
    fn from(error: RewriteError) -> Failure {
        let (RewriteError::Path(failure) | RewriteError::File(failure)) = error;
        failure
    }
}

/// A file to rewrite or audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// The path of the file, which begins with the path that the user named.
    pub path: PathBuf,
    /// The path of its result below the output folder: the path inside the named folder, or the
    /// name of a file that was named itself.
    pub relative: PathBuf,
    /// Whether the user named the file itself. A named file is read with any ending.
    pub named: bool,
}

impl InputFile {
    /// Whether the file is the archive of a chart, by its name.
    pub fn is_archive(&self) -> bool {
        ending(&self.path) == "tgz"
    }
}

/// The ending of the file name, in lower case.
fn ending(path: &Path) -> String {
    path.extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase()
}

/// Whether a file is a YAML or JSON document by its name.
pub(super) fn is_document(path: &Path) -> bool {
    DOCUMENTS.contains(&&*ending(path))
}

/// Whether to read a file in a folder or archive, by its name and its first bytes.
pub(super) fn is_read_in_folder(path: &Path, content: &[u8]) -> bool {
    let ending = ending(path);
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    DOCUMENTS.contains(&&*ending)
        || TEXTS.contains(&&*ending)
        || NAMES.iter().any(|start| name.starts_with(start))
        || name == "notes.txt"
        || (ending.is_empty() && begins_with_one_of(content, &FIRST_BYTES))
        || (UNITS.contains(&&*ending) && begins_with_one_of(content, &UNIT_START))
}

fn begins_with_one_of(content: &[u8], signs: &[&str]) -> bool {
    signs
        .iter()
        .any(|sign| content.starts_with(sign.as_bytes()))
}

/// Lists every file that `paths` name. Folders are searched recursively, and the files of each are
/// sorted; [`read`] decides which of them are read. Folders of version control systems, the output
/// folder `out`, and files of Emacs and macOS are skipped. A symbolic link in a folder of
/// `paths` is followed if it leads to a file in or below that folder.
///
/// # Errors
/// If a path cannot be read, or if a result in `out` would overwrite another one or an input.
pub fn inputs(paths: &[PathBuf], out: Option<&Path>) -> Result<Vec<InputFile>, RewriteError> {
    let real_out = out.and_then(|path| path.canonicalize().ok());
    let mut found = Vec::new();
    for path in paths {
        if fs::metadata(path).map_err(read_error(path))?.is_dir() {
            fs::read_dir(path).map_err(read_error(path))?;
            let root = path.canonicalize().map_err(read_error(path))?;
            walk(path, &root, real_out.as_deref(), path, &mut found)?;
        } else if is_pipe(path) {
            let path = path.display();
            return Err(file_error(format!(
                "{path} is a pipe, not a regular file; pass its content by stdin: `- < {path}`"
            )));
        } else {
            open_input(path).map_err(read_error(path))?;
            let relative = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
            found.push(InputFile {
                path: path.clone(),
                relative,
                named: true,
            });
        }
    }
    // a file that is named twice, or also through its folder, is read once, as a named file
    let named: BTreeSet<PathBuf> = found
        .iter()
        .filter(|input| input.named)
        .map(|input| input.path.clone())
        .collect();
    let mut seen = BTreeSet::new();
    found.retain(|input| seen.insert(input.path.clone()));
    for input in &mut found {
        input.named = named.contains(&input.path);
    }
    if let Some(out) = out {
        refuse_overwriting(&found, out)?;
    }
    Ok(found)
}

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> RewriteError {
    move |error| RewriteError::Path(Failure::read(path, error))
}

fn write_error(path: &Path, error: &io::Error) -> RewriteError {
    let path = path.display();
    RewriteError::Path(Failure::usage(format!("cannot write {path}: {error}")))
}

fn file_error(message: impl Into<String>) -> RewriteError {
    RewriteError::File(Failure::usage(message))
}

/// The error for two inputs that would both be written to `output`, or one of them into it.
fn clash(first: &Path, second: &Path, output: &Path) -> RewriteError {
    file_error(format!(
        "{} and {} would both be written to {}; rewrite each into a folder of its own",
        first.display(),
        second.display(),
        output.display()
    ))
}

/// Fails if a result would overwrite an input or another result.
fn refuse_overwriting(found: &[InputFile], out: &Path) -> Result<(), RewriteError> {
    let read: BTreeMap<PathBuf, PathBuf> = found
        .iter()
        .filter_map(|input| Some((input.path.canonicalize().ok()?, input.path.clone())))
        .collect();
    let mut results: BTreeMap<&Path, &Path> = BTreeMap::new();
    for input in found {
        let output = out.join(&input.relative);
        // compared by their real paths, because a link in `out` may lead to an input
        if let Some(path) = output.canonicalize().ok().and_then(|path| read.get(&path)) {
            return Err(file_error(format!(
                "the result of {} would overwrite the input {}; name another folder, or use \
                 --in-place",
                input.path.display(),
                path.display()
            )));
        }
        if let Some(first) = results.insert(&input.relative, &input.path) {
            return Err(clash(first, &input.path, &output));
        }
    }
    // a result cannot be a file and the folder of another result
    for input in found {
        let mut folders = input.relative.ancestors().skip(1);
        if let Some((folder, first)) = folders.find_map(|folder| results.get_key_value(folder)) {
            return Err(clash(first, &input.path, &out.join(folder)));
        }
    }
    Ok(())
}

/// Adds the files in `dir`, which is the folder `named` by the user or below it. `root` is the
/// canonical path of `named`, and `out` that of the output folder.
fn walk(
    named: &Path,
    root: &Path,
    out: Option<&Path>,
    dir: &Path,
    found: &mut Vec<InputFile>,
) -> Result<(), RewriteError> {
    let entries: Result<Vec<fs::DirEntry>, io::Error> =
        fs::read_dir(dir).map_err(read_error(dir))?.collect();
    let mut entries = entries.map_err(read_error(dir))?;
    // reports must not depend on the order in which the file system lists files
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(read_error(dir))?;
        if kind.is_dir() {
            let is_skipped = VCS.iter().any(|name| entry.file_name() == *name)
                || out.is_some_and(|out| path.canonicalize().is_ok_and(|path| path == out));
            if !is_skipped {
                walk(named, root, out, &path, found)?;
            }
            continue;
        }
        // a link out of the folder may point to any file, such as a secret
        let is_file = kind.is_file() || (kind.is_symlink() && leads_into(&path, root));
        if is_file && !is_leftover(&path) {
            let relative = path.strip_prefix(named).unwrap_or(&path).to_path_buf();
            found.push(InputFile {
                path,
                relative,
                named: false,
            });
        }
    }
    Ok(())
}

/// Whether the link `path` leads to a file in the folder `root`.
fn leads_into(path: &Path, root: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|path| path.starts_with(root) && path.is_file())
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputContent {
    /// A text without a null character.
    Text(String, TextEncoding),
    /// The archive of a chart, still packed.
    Archive(Vec<u8>),
    /// A file in a named folder that is binary, or whose name and first bytes are not those of a
    /// file to read.
    Other,
}

/// Decodes the content of a text.
///
/// # Errors
/// If `bytes` are neither UTF-8 nor UTF-16 with a byte order mark, or contain a null character.
pub fn decode(bytes: Vec<u8>) -> Result<(String, TextEncoding), RewriteError> {
    // a null byte is valid UTF-8, but no text has one
    decode_text(bytes)
        .filter(|(text, _)| !text.contains('\0'))
        .ok_or_else(|| file_error("not UTF-8 text; left unchanged"))
}

/// Reads a file that [`inputs`] listed.
///
/// # Errors
/// If the file cannot be read. Also if it is not a text ([`decode`]), and the user named it or it
/// has the ending of a document.
pub fn read(input: &InputFile) -> Result<InputContent, RewriteError> {
    let path = &input.path;
    let archive = input.is_archive();
    let document = is_document(path);
    // a folder may contain large binaries, of which only the first bytes are read
    if !(input.named || archive || document) {
        let mut start = [0; 16];
        let len = open_input(path)
            .and_then(|mut file| file.read(&mut start))
            .map_err(read_error(path))?;
        if !is_read_in_folder(path, &start[..len]) {
            return Ok(InputContent::Other);
        }
    }
    let bytes = read_input(path).map_err(read_error(path))?;
    if archive {
        return Ok(InputContent::Archive(bytes));
    }
    match decode(bytes) {
        Ok((text, encoding)) => Ok(InputContent::Text(text, encoding)),
        Err(error) if input.named || document => Err(error),
        Err(_) => Ok(InputContent::Other),
    }
}

/// Replaces the content `old` of the file at `path` by `new`. Returns the attributes of the file
/// that could not be kept.
///
/// # Errors
/// If the file cannot be written, or if it changed after it was read.
pub fn write_in_place(path: &Path, old: &[u8], new: &[u8]) -> Result<Vec<String>, RewriteError> {
    replace_file(path, |now| now == old, new).map_err(|error| {
        if is_caused_by::<FileChanged>(&error) {
            file_error(
                "it changed after it was read, so landfall did not replace it; run the command \
                 again",
            )
        } else {
            write_error(path, &error)
        }
    })
}

/// Writes `bytes`, the result of `input`, below the folder `out`. Missing folders are created.
///
/// # Errors
/// If the file cannot be written, or if a folder below `out` is a symbolic link.
pub fn write_to(out: &Path, input: &InputFile, bytes: &[u8]) -> Result<(), RewriteError> {
    let to = out.join(&input.relative);
    let below = to.ancestors().skip(1).take_while(|folder| *folder != out);
    if let Some(link) = below.into_iter().find(|folder| folder.is_symlink()) {
        return Err(file_error(format!(
            "refusing to write through the symbolic link {}; remove it, or name another folder",
            link.display()
        )));
    }
    let folder = to.parent().unwrap_or(out);
    fs::create_dir_all(folder)
        .and_then(|()| write_file_like(&input.path, &to, bytes))
        .map_err(|error| write_error(&to, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_named_in_addition_to_its_folder_is_read_as_a_named_file() {
        let folder = tempfile::tempdir().unwrap();
        let readme = folder.path().join("docs/README.md");
        fs::create_dir(folder.path().join("docs")).unwrap();
        for path in [&readme, &folder.path().join("a.yaml")] {
            fs::write(path, "image: nginx").unwrap();
        }
        let listed = |paths: &[&Path]| -> Vec<(String, bool)> {
            let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
            inputs(&paths, None)
                .unwrap()
                .into_iter()
                .map(|input| {
                    let is_read = read(&input).unwrap() != InputContent::Other;
                    (input.relative.display().to_string(), is_read)
                })
                .collect()
        };
        let expected = |list: [(&str, bool); 2]| list.map(|(path, is)| (path.to_owned(), is));
        assert_eq!(
            listed(&[folder.path()]),
            expected([("a.yaml", true), ("docs/README.md", false)])
        );
        assert_eq!(
            listed(&[folder.path(), &readme]),
            expected([("a.yaml", true), ("docs/README.md", true)])
        );
        assert_eq!(
            listed(&[&readme, folder.path()]),
            expected([("README.md", true), ("a.yaml", true)])
        );
    }

    #[test]
    fn templates_and_recipes_are_read_in_folders() {
        for name in [
            "user-data.sh.tftpl",
            "a.yml.jinja",
            "a.jinja2",
            "Justfile",
            "a.just",
            "Kubefile",
        ] {
            assert!(is_read_in_folder(Path::new(name), b"x"), "{name}");
        }
    }

    #[test]
    fn a_result_cannot_be_the_folder_of_another_result() {
        let dir = tempfile::tempdir().unwrap();
        let [file, folder] = ["one/x", "two"].map(|name| dir.path().join(name));
        for path in [&file, &folder.join("x/y.yaml")] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "image: nginx").unwrap();
        }
        let out = dir.path().join("out");
        for paths in [[&file, &folder], [&folder, &file]] {
            let paths = paths.map(Clone::clone);
            let error = inputs(&paths, Some(&out)).err().unwrap();
            assert!(
                error.to_string().contains(" would both be written to "),
                "{error}"
            );
        }
    }
}
