//! What a changelog says first: a few lines of its newest entry, for people who read what an update
//! brings.

/// How many lines are told of one package.
const LINES: usize = 3;
/// How long one of them may be, in characters.
const LINE_CHARS: usize = 200;
/// How much of a changelog is read for that, in bytes.
pub(super) const READ_BYTES: u64 = 16 << 10;

/// The first `lines` that say something.
pub(super) fn first_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let said = lines
        .into_iter()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    said.take(LINES).map(shortened).collect()
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_short_lines_are_told() {
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
