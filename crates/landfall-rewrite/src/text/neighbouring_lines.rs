//! Looks at the neighbouring lines in a text that is YAML except for its placeholders.

use std::ops::Range;

/// The number of lines before and after a line that are searched.
const LINES: usize = 20;

/// The last line whose neighbours were searched for a registry, and the result. One line may
/// contain all references of a text, so the neighbours of a line are searched only once.
#[derive(Default)]
pub(super) struct NeighbouringRegistry {
    line: Range<usize>,
    is_found: bool,
}

impl NeighbouringRegistry {
    /// Whether another line of the same mapping, judged by indentation, has the registry of the
    /// reference at the byte `at` of `text`, which must be the same text in every call.
    pub(super) fn is_beside(&mut self, text: &str, at: usize) -> bool {
        if !self.line.contains(&at) {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n');
            self.line = start..end.map_or(text.len(), |len| at + len + 1);
            self.is_found = has_registry_beside(text, &self.line);
        }
        self.is_found
    }
}

/// Whether another line of the mapping of `line` has a registry.
fn has_registry_beside(text: &str, line: &Range<usize>) -> bool {
    let Some(own) = KeyLine::of(&text[line.clone()]) else {
        return false;
    };
    let before = text[..line.start]
        .lines()
        .rev()
        .take(LINES)
        .filter_map(KeyLine::of);
    let after = text[line.end..].lines().take(LINES).filter_map(KeyLine::of);
    // the line that begins a list item is the first line of the item's mapping
    let mut begun = own.is_item;
    let before = before.take_while(|line| {
        line.column >= own.column && !begun && {
            begun = line.is_item && line.column == own.column;
            true
        }
    });
    let after = after.take_while(|line| {
        line.column > own.column || (line.column == own.column && !line.is_item)
    });
    before
        .chain(after)
        .any(|line| line.column == own.column && line.is_registry())
}

/// A line with a key, or the first line of a list item.
struct KeyLine<'t> {
    /// The column of the key, after the dashes of lists.
    column: usize,
    /// Whether the line begins a list item.
    is_item: bool,
    content: &'t str,
}

impl KeyLine<'_> {
    /// Reads a line. `None` for a blank line, a comment and a template call, unless the line begins
    /// a list item.
    fn of(line: &str) -> Option<KeyLine<'_>> {
        let line = line.lines().next()?;
        let content = line.trim_start_matches([' ', '-']);
        let column = line.len() - content.len();
        let is_item = line[..column].contains('-');
        let is_key =
            !content.is_empty() && !content.starts_with(['#', '\t']) && !content.starts_with("{{");
        (is_key || is_item).then_some(KeyLine {
            column,
            is_item,
            content,
        })
    }

    fn is_registry(&self) -> bool {
        let Some((key, value)) = self.content.split_once(':') else {
            return false;
        };
        let key = key.trim_matches(['"', '\'', ' ']).to_ascii_lowercase();
        let value = value.trim().trim_matches(['"', '\'']);
        (key.ends_with("registry") || key == "hub") && !value.is_empty() && !value.starts_with('#')
    }
}
