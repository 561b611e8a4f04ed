//! The entries of a tree.

use super::ObjectId;

/// The kind of an entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryMode {
    /// A file or a symbolic link, whose content is a blob.
    File,
    /// A folder.
    Folder,
    /// A commit of another repository (a submodule), which is not an object of this repository.
    Submodule,
}

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeEntry<'a> {
    /// The kind of the entry.
    pub mode: EntryMode,
    /// The name of the file or folder.
    pub name: &'a [u8],
    /// The object.
    pub id: ObjectId,
}

/// The entries of a tree, in its order. The iterator ends after the first error.
pub(crate) struct TreeEntries<'a> {
    rest: &'a [u8],
    before: Option<TreeEntry<'a>>,
    /// The names of earlier entries that may be prefixes of later names, the shortest first. They
    /// reveal a folder that repeats an earlier name after other entries: `a`, `a.b`, `a/`.
    prefixes: Vec<&'a [u8]>,
}

impl<'a> TreeEntries<'a> {
    /// The entries in the content of a tree.
    pub(crate) fn new(content: &'a [u8]) -> TreeEntries<'a> {
        TreeEntries {
            rest: content,
            before: None,
            prefixes: Vec::new(),
        }
    }

    fn read(&mut self) -> Result<TreeEntry<'a>, String> {
        let space = self.rest.iter().position(|byte| *byte == b' ');
        let (mode, rest) = space
            .and_then(|space| Some((&self.rest[..space], self.rest.get(space + 1..)?)))
            .ok_or("an entry is cut off")?;
        let end = rest.iter().position(|byte| *byte == 0);
        let (name, id, rest) = end
            .and_then(|end| {
                let id = ObjectId::from_prefix(rest.get(end + 1..)?)?;
                Some((&rest[..end], id, &rest[end + 1 + ObjectId::BYTES..]))
            })
            .ok_or("an entry is cut off")?;
        let entry = TreeEntry {
            mode: mode_of(mode)?,
            name,
            id,
        };
        if let Some(why) = unsafe_name(name) {
            return Err(format!("its entry '{}' {why}", name.escape_ascii()));
        }
        if self
            .before
            .is_some_and(|before| !is_sorted(&before, &entry))
        {
            return Err(format!(
                "its entry '{}' is not in order",
                name.escape_ascii()
            ));
        }
        while self
            .prefixes
            .last()
            .is_some_and(|prefix| !name.starts_with(prefix))
        {
            self.prefixes.pop();
        }
        if self.prefixes.last() == Some(&name) {
            return Err(format!(
                "its entry '{}' is listed twice",
                name.escape_ascii()
            ));
        }
        self.prefixes.push(name);
        self.rest = rest;
        self.before = Some(entry);
        Ok(entry)
    }
}

impl<'a> Iterator for TreeEntries<'a> {
    type Item = Result<TreeEntry<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.read();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// The kind of an entry by the type bits of its mode. The other bits and leading zeros are ignored:
/// old repositories have modes with other permission bits, and some tools wrote leading zeros.
fn mode_of(text: &[u8]) -> Result<EntryMode, String> {
    let invalid = || format!("the mode '{}' is not valid", text.escape_ascii());
    let text = std::str::from_utf8(text).map_err(|_| invalid())?;
    if text.is_empty() || text.len() > 7 || !text.bytes().all(|byte| (b'0'..=b'7').contains(&byte))
    {
        return Err(invalid());
    }
    match u32::from_str_radix(text, 8).map_err(|_| invalid())? & 0o170_000 {
        0o040_000 => Ok(EntryMode::Folder),
        0o100_000 | 0o120_000 => Ok(EntryMode::File),
        0o160_000 => Ok(EntryMode::Submodule),
        _ => Err(invalid()),
    }
}

/// Whether `after` may follow `before`: trees are sorted as if the names of folders ended in `/`.
fn is_sorted(before: &TreeEntry<'_>, after: &TreeEntry<'_>) -> bool {
    let key = |entry: &TreeEntry<'_>| {
        let end = (entry.mode == EntryMode::Folder).then_some(b'/');
        [entry.name, end.as_slice()].concat()
    };
    key(before) < key(after)
}

/// The reason why a checkout must not write an entry of this name, if there is one.
///
/// File systems of macOS ignore some characters and the case, and those of Windows ignore dots and
/// spaces at the end and have a short name for `.git`. git refuses such names too.
pub(super) fn unsafe_name(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("has no name"),
        b"." | b".." => Some("is not a name"),
        _ if name.contains(&b'/') => Some("contains a slash"),
        _ if is_git_folder(name) => Some("is git's own folder"),
        _ => None,
    }
}

fn is_git_folder(name: &[u8]) -> bool {
    // lossy, because file systems map only names in valid UTF-8 to `.git`
    let text = String::from_utf8_lossy(name);
    let visible: String = text
        .chars()
        .filter(|c| !is_ignored_by_hfs(*c))
        .flat_map(char::to_lowercase)
        .collect();
    // on Windows, a backslash separates folders
    visible.split('\\').any(|part| {
        // on NTFS, the text after a colon names a stream of the file
        let main = part.split(':').next().unwrap_or_default();
        matches!(main.trim_end_matches([' ', '.']), ".git" | "git~1")
    })
}

/// The characters that HFS+ ignores in names (Apple's technical note 1150).
fn is_ignored_by_hfs(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (mode, name) in entries {
            bytes.extend(format!("{mode} {name}\0").bytes());
            bytes.extend([7; 20]);
        }
        bytes
    }

    fn check(entries: &[(&str, &str)]) -> Result<usize, String> {
        let bytes = tree(entries);
        let found: Result<Vec<_>, _> = TreeEntries::new(&bytes).collect();
        found.map(|found| found.len())
    }

    #[test]
    fn folders_are_sorted_as_if_their_names_ended_in_a_slash() {
        let sorted = [
            ("100644", "a.b"),
            ("40000", "a"),
            ("160000", "a0"),
            ("120000", "b"),
        ];
        assert_eq!(check(&sorted), Ok(4));
        assert!(check(&[("40000", "a"), ("100644", "a.b")]).is_err());
    }

    #[test]
    fn a_name_that_occurs_twice_is_an_error() {
        for between in [&[][..], &["a-"], &["a-", "a-b", "a.b"]] {
            for first in ["100644", "160000"] {
                let files = between.iter().map(|&name| ("100644", name));
                let entries: Vec<_> = [(first, "a")].into_iter().chain(files).collect();
                assert_eq!(check(&entries), Ok(entries.len()));
                let twice = [&entries[..], &[("40000", "a")]].concat();
                assert!(check(&twice).is_err(), "{twice:?}");
            }
        }
        assert!(check(&[("100644", "a"), ("100644", "a")]).is_err());
        // each name after the first begins with an earlier name
        let nested = [
            ("100644", "a"),
            ("100644", "a-"),
            ("40000", "a-b"),
            ("40000", "aa"),
        ];
        assert_eq!(check(&nested), Ok(4));
    }

    #[test]
    fn invalid_modes_and_names_that_a_checkout_must_not_write_are_errors() {
        for name in [
            "",
            ".",
            "..",
            ".git",
            ".GIT",
            "a/b",
            ".git ",
            ".git.",
            "git~1",
            ".g\u{200c}it",
            ".git:x",
            "GIT~1 .:x",
            ".git\\hooks",
            "a\\.Git ",
            "a\\.git\\b",
        ] {
            assert!(check(&[("100644", name)]).is_err(), "{name}");
        }
        for name in [
            ".gitignore",
            "git",
            "...",
            ".github",
            "a\\b",
            "a:.git",
            "git~10",
        ] {
            assert_eq!(check(&[("100644", name)]), Ok(1), "{name}");
        }
        for mode in ["", "0", "x", "170000", "100000000"] {
            assert!(check(&[(mode, "a")]).is_err(), "{mode}");
        }
    }
}
