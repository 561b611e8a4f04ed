//! Plain scalars in block collections.

use super::reader::{SimpleReader, fold, is_indicator};
use landfall_model::document::{ScalarStyle, YamlScalar};
use memchr::memchr3;
use std::borrow::Cow;

/// The end of a plain scalar on a line.
enum PlainScalarEnd {
    /// The `:` of a mapping.
    Colon,
    Comment,
    Line,
}

impl<'a> SimpleReader<'a> {
    /// Reads a plain scalar that begins here, in a collection at the column `parent`. Returns the
    /// scalar and whether it is a key. Afterwards, the position is the colon of the key, or else
    /// the first token of a later line.
    pub(super) fn plain(&mut self, parent: isize) -> Option<(YamlScalar<'a>, bool)> {
        let start = self.at;
        let (mut end, stop) = self.plain_line()?;
        let text = self.text;
        let mut folded: Option<String> = None;
        let is_key = matches!(stop, PlainScalarEnd::Colon);
        match stop {
            PlainScalarEnd::Colon => {}
            PlainScalarEnd::Comment => self.end_line()?,
            PlainScalarEnd::Line => loop {
                let line = self.at;
                let (breaks, spaces) = self.breaks();
                let continues =
                    spaces > parent && !matches!(self.byte(), None | Some(b'#' | b'\t'));
                if !continues {
                    self.at = line;
                    self.end_line()?;
                    break;
                }
                let from = self.at;
                let (until, stop) = self.plain_rest()?;
                let value = folded.get_or_insert_with(|| text[start..end].to_owned());
                fold(value, breaks);
                value.push_str(&text[from..until]);
                end = until;
                match stop {
                    PlainScalarEnd::Line => {}
                    PlainScalarEnd::Comment => {
                        self.end_line()?;
                        break;
                    }
                    PlainScalarEnd::Colon => return None,
                }
            },
        }
        let value = folded.map_or(Cow::Borrowed(&text[start..end]), Cow::Owned);
        Some((
            YamlScalar::new(value, ScalarStyle::Plain, start..end),
            is_key,
        ))
    }

    /// Reads a plain key that begins here, up to its colon.
    pub(super) fn plain_key(&mut self) -> Option<YamlScalar<'a>> {
        let start = self.at;
        match self.plain_line()? {
            (end, PlainScalarEnd::Colon) => Some(YamlScalar::new(
                Cow::Borrowed(&self.text[start..end]),
                ScalarStyle::Plain,
                start..end,
            )),
            _ => None,
        }
    }

    /// Reads the first line of a plain scalar in a block collection. Returns the offset after its
    /// text, and the kind of its end.
    fn plain_line(&mut self) -> Option<(usize, PlainScalarEnd)> {
        let first = self.byte()?;
        let may_begin = match first {
            b'-' | b'?' | b':' => !self.is_blank_at(self.at + 1),
            _ => !is_indicator(first) && !matches!(first, b'\'' | b'"'),
        };
        (may_begin && !self.is_marker()).then_some(())?;
        self.plain_rest()
    }

    /// Reads the rest of the first line of a plain scalar, or a further line.
    fn plain_rest(&mut self) -> Option<(usize, PlainScalarEnd)> {
        let start = self.at;
        loop {
            let found = memchr3(b'\n', b':', b'#', &self.bytes[self.at..]);
            self.at = found.map_or(self.bytes.len(), |len| self.at + len);
            let before = self.at > start && matches!(self.bytes[self.at - 1], b' ' | b'\t');
            let stop = match self.byte() {
                None | Some(b'\n') => PlainScalarEnd::Line,
                // the general parser reads `a : b`
                Some(b':') if self.is_blank_at(self.at + 1) => {
                    return (!before).then_some((self.at, PlainScalarEnd::Colon));
                }
                Some(b'#') if before => PlainScalarEnd::Comment,
                Some(_) => {
                    self.at += 1;
                    continue;
                }
            };
            let blanks = self.bytes[start..self.at]
                .iter()
                .rev()
                .take_while(|byte| matches!(byte, b' ' | b'\t'));
            let end = self.at - blanks.count();
            if let PlainScalarEnd::Comment = stop {
                self.at = end;
            }
            return (end > start).then_some((end, stop));
        }
    }
}
