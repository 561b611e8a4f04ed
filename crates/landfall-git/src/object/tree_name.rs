//! Names that an entry of a tree must not have, because a checkout would write outside its folder
//! or into `.git`.

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
