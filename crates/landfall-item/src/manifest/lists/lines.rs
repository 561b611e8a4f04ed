//! The lines of a list, with their positions.

/// The lines of `text`, trimmed, each with the offset of its first byte.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let begin = line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        (start + line.len() - begin.len(), begin.trim_end())
    })
}
