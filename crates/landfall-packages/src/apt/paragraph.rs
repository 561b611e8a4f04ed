//! Paragraphs of fields (deb822(5)), parsed lazily and without copies: an index has millions of
//! fields, and only a few of them are needed.

/// The text of a paragraph, without the empty line that ends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paragraph<'t>(&'t str);

pub(super) fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['\n', '\r']);
        if rest.is_empty() {
            return None;
        }
        let (one, left) = rest.split_at(paragraph_end(rest));
        rest = left;
        Some(Paragraph(one))
    })
}

/// The length of the paragraph at the start of `text`, without the empty line after it. As in apt,
/// a line that contains only carriage returns is empty.
fn paragraph_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut ends = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let is_before_empty_line = |end: &usize| {
        let next = bytes[*end..].iter().find(|byte| **byte != b'\r');
        next == Some(&b'\n')
    };
    ends.find(is_before_empty_line).unwrap_or(text.len())
}

impl<'t> Paragraph<'t> {
    /// Returns the unchanged text with exactly one newline at its end.
    pub(super) fn to_text(self) -> String {
        format!("{}\n", self.0.trim_end_matches('\n'))
    }

    /// Iterates over the names and values of the fields in their order. Values are trimmed;
    /// continuation lines are left unchanged.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'t str, &'t str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                // a line that begins with a blank continues the field
                let mut end = 0;
                loop {
                    let line = memchr::memchr(b'\n', &rest.as_bytes()[end..]);
                    end = line.map_or(rest.len(), |at| end + at + 1);
                    if !matches!(rest.as_bytes().get(end), Some(b' ' | b'\t')) {
                        break;
                    }
                }
                let (field, left) = rest.split_at(end);
                rest = left;
                // lines that begin with `#` are comments
                let colon =
                    memchr::memchr(b':', field.as_bytes()).filter(|_| field.as_bytes()[0] != b'#');
                if let Some(colon) = colon {
                    return Some((&field[..colon], field[colon + 1..].trim_ascii()));
                }
            }
            None
        })
    }

    /// Returns the value of the first field with this name, ignoring ASCII case.
    pub(super) fn field(self, field_name: &str) -> Option<&'t str> {
        self.fields()
            .find(|(name, _)| name.eq_ignore_ascii_case(field_name))
            .map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_continuation_lines_and_without_comments() {
        let text = "\nA: 1\nB:  two\n three\n\tfour\n# no: field\nC:\n\n\nA: 2";
        let read: Vec<Vec<(&str, &str)>> =
            paragraphs(text).map(|one| one.fields().collect()).collect();
        assert_eq!(
            read,
            [
                vec![("A", "1"), ("B", "two\n three\n\tfour"), ("C", "")],
                vec![("A", "2")]
            ]
        );
        assert_eq!(
            paragraphs(text).next().and_then(|one| one.field("b")),
            Some("two\n three\n\tfour")
        );
        assert_eq!(paragraphs("").count() + paragraphs("\n\n").count(), 0);
        // apt 2.6 reads the same paragraphs from an index with these line endings
        let text = "A: 1\nB: two\n three\n\nA: 2\n\nA: 3\n";
        let expected = [
            vec![("A", "1"), ("B", "two\n three")],
            vec![("A", "2")],
            vec![("A", "3")],
        ];
        for empty_line in ["\n\r\n", "\r\n\n", "\n\r\r\n"] {
            let text = text.replace("\n\n", empty_line);
            let read: Vec<Vec<_>> = paragraphs(&text)
                .map(|one| one.fields().collect())
                .collect();
            assert_eq!(read, expected, "{empty_line:?}");
        }
        let windows = text.replace('\n', "\r\n");
        let read: Vec<&str> = paragraphs(&windows)
            .filter_map(|one| one.field("A"))
            .collect();
        assert_eq!(read, ["1", "2", "3"]);
    }
}
