//! Plain scalars in block collections.

use super::reader::{Reader, fold, is_sign};
use crate::yaml::node::Scalar;
use granit_parser::ScalarStyle;
use memchr::memchr3;
use std::borrow::Cow;

/// What ends a plain scalar on a line.
enum Stop {
    /// The `:` of a mapping.
    Colon,
    Comment,
    Line,
}

impl<'a> Reader<'a> {
    /// Reads a plain scalar that begins here, in a collection at the column `parent`. Returns
    /// whether it is a key. After a key, the position is its colon, else the first token of a later
    /// line.
    pub(super) fn plain(&mut self, parent: isize) -> Option<(Scalar<'a>, bool)> {
        let start = self.at;
        let (mut end, stop) = self.plain_line()?;
        let text = self.text;
        let mut folded: Option<String> = None;
        let is_key = matches!(stop, Stop::Colon);
        match stop {
            Stop::Colon => {}
            Stop::Comment => self.end_line()?,
            Stop::Line => loop {
                let line = self.at;
                let (breaks, spaces) = self.breaks();
                let goes_on = spaces > parent && !matches!(self.byte(), None | Some(b'#' | b'\t'));
                if !goes_on {
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
                    Stop::Line => {}
                    Stop::Comment => {
                        self.end_line()?;
                        break;
                    }
                    Stop::Colon => return None,
                }
            },
        }
        let value = folded.map_or(Cow::Borrowed(&text[start..end]), Cow::Owned);
        Some((Scalar::of(value, ScalarStyle::Plain, start..end), is_key))
    }

    /// Reads a plain key that begins here, up to its colon.
    pub(super) fn plain_key(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        match self.plain_line()? {
            (end, Stop::Colon) => Some(Scalar::of(
                Cow::Borrowed(&self.text[start..end]),
                ScalarStyle::Plain,
                start..end,
            )),
            _ => None,
        }
    }

    /// Reads the first line of a plain scalar in a block collection. Returns where its text ends,
    /// and what ends it.
    fn plain_line(&mut self) -> Option<(usize, Stop)> {
        let first = self.byte()?;
        let may_begin = match first {
            b'-' | b'?' | b':' => !self.is_blank_at(self.at + 1),
            _ => !is_sign(first) && !matches!(first, b'\'' | b'"'),
        };
        (may_begin && !self.is_marker()).then_some(())?;
        self.plain_rest()
    }

    /// Reads a further line of a plain scalar.
    fn plain_rest(&mut self) -> Option<(usize, Stop)> {
        let start = self.at;
        loop {
            let found = memchr3(b'\n', b':', b'#', &self.bytes[self.at..]);
            self.at = found.map_or(self.bytes.len(), |len| self.at + len);
            let before = self.at > start && matches!(self.bytes[self.at - 1], b' ' | b'\t');
            let stop = match self.byte() {
                None | Some(b'\n') => Stop::Line,
                // the other reader reads `a : b`
                Some(b':') if self.is_blank_at(self.at + 1) => {
                    return (!before).then_some((self.at, Stop::Colon));
                }
                Some(b'#') if before => Stop::Comment,
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
            if let Stop::Comment = stop {
                self.at = end;
            }
            return (end > start).then_some((end, stop));
        }
    }
}
