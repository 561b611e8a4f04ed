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
        let end = memchr::memmem::find(rest.as_bytes(), b"\n\n").map_or(rest.len(), |at| at + 1);
        let (one, left) = rest.split_at(end);
        rest = left;
        Some(Paragraph(one))
    })
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
    }
}
