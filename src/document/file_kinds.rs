//! Files that are none of the documents that a folder or a person names.

use std::path::Path;

/// Whether a file is Emacs's lock on another (`.#m.yaml`) or what macOS keeps beside it (`._m.yaml`), by its name.
pub(crate) fn is_leftover(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".#", "._"].iter().any(|start| name.starts_with(start))
}

/// Whether it takes for ever to open what is at `path`, because nobody may ever write to it.
pub(crate) fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    // the shell has opened these already
    !path.starts_with("/dev/fd") && path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}
