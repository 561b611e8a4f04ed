//! Excerpts of changelogs: the first lines of the newest entry, which `diff` shows below a package
//! that was upgraded.

/// The maximum number of lines per package.
const LINES: usize = 3;
/// The maximum length of a line in characters; longer lines end with `…`.
const LINE_CHARS: usize = 200;
/// The maximum number of bytes that are read from a changelog, which lists all versions, the newest
/// first.
pub(super) const READ_BYTES: u64 = 16 << 10;

/// Returns the first non-empty lines, trimmed and shortened.
pub(super) fn first_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines
        .into_iter()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(LINES)
        .map(shorten)
        .collect()
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_non_empty_lines_are_returned_and_shortened() {
        assert_eq!(
            first_lines(["", "  - a", "\t", "- b ", "c", "d"]),
            ["- a", "- b", "c"]
        );
        assert_eq!(
            first_lines(["é".repeat(500).as_str()]),
            [format!("{}…", "é".repeat(200))]
        );
        assert!(first_lines([" "]).is_empty());
    }
}
