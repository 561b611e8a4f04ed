//! Looks at the neighbouring lines in a text that is YAML except for its placeholders.

/// The number of lines before and after a line that are searched.
const LINES: usize = 20;
/// The number of bytes that are searched before and after an offset in its line.
const LINE_BYTES: usize = 256;

/// Whether another line of the same mapping, judged by indentation, has the registry of the
/// reference at the byte `at`.
pub(super) fn has_registry_beside(text: &str, at: usize) -> bool {
    // all distances are limited: a whole file may be one line, with a reference in every word
    let from = text.floor_char_boundary(at.saturating_sub(LINE_BYTES));
    let start = match text[from..at].rfind('\n') {
        Some(end) => from + end + 1,
        None if from == 0 => 0,
        None => return false,
    };
    let to = text.floor_char_boundary(at.saturating_add(LINE_BYTES).min(text.len()));
    let end = text[at..to]
        .find('\n')
        .map_or(text.len(), |len| at + len + 1);
    let Some(own) = KeyLine::of(&text[start..to]) else {
        return false;
    };
    let before = text[..start]
        .lines()
        .rev()
        .take(LINES)
        .filter_map(KeyLine::of);
    let after = text[end..].lines().take(LINES).filter_map(KeyLine::of);
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
