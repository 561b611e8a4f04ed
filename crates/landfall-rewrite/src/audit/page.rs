//! The code blocks of pages in Markdown.

use std::ops::Range;
use std::path::Path;

/// Whether the file `name` is a page in Markdown.
pub(super) fn is_page(name: &Path) -> bool {
    let ending = name.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("md" | "markdown"))
}

/// The bytes of the lines between each pair of fences (```` ``` ````).
pub(super) fn code_blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if !line.trim_start().starts_with("```") {
            continue;
        }
        match open.take() {
            Some(from) => blocks.push(from..start),
            None => open = Some(end),
        }
    }
    blocks
}
