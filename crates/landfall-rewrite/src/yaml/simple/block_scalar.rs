//! Literal and folded scalars.

use super::reader::SimpleReader;
use landfall_model::document::{ScalarStyle, YamlScalar};
use memchr::memchr;
use std::borrow::Cow;

impl<'a> SimpleReader<'a> {
    /// Reads a block scalar in a collection at the column `parent`. The reader is at its `|` or
    /// `>`.
    pub(super) fn block_scalar(&mut self, parent: isize, literal: bool) -> Option<YamlScalar<'a>> {
        self.at += 1;
        let mut chomp = None;
        let mut explicit = None;
        while let Some(byte @ (b'+' | b'-' | b'1'..=b'9')) = self.byte() {
            let twice = match byte {
                b'+' | b'-' => chomp.replace(byte).is_some(),
                digit => explicit.replace(isize::from(digit - b'0')).is_some(),
            };
            (!twice).then_some(())?;
            self.at += 1;
        }
        let spaces = self.skip_spaces();
        match self.byte()? {
            b'\n' => {}
            b'#' if spaces > 0 => self.at += memchr(b'\n', &self.bytes[self.at..])?,
            _ => return None,
        }
        self.at += 1;
        // the general parser decides about a block scalar as a root, and about tabs as indentation
        (parent >= 0 && self.byte() != Some(b'\t')).then_some(())?;

        let indent = explicit.map(|by| usize::try_from(parent + by).ok());
        let (indent, mut breaks) =
            self.block_indent(indent.flatten(), usize::try_from(parent).ok()?)?;
        let start = self.at;
        let mut value = String::new();
        let mut line = start;
        let mut after_blank = false;
        let mut first = true;
        let mut ended = true;
        // each round begins after the indentation of a line
        while self.at < self.bytes.len() && self.at - line >= usize::from(!first) * indent {
            let blank = matches!(self.byte(), Some(b' ' | b'\t'));
            let folds = !literal && !first && !after_blank && !blank;
            match (folds, breaks) {
                (true, 0) => value.push(' '),
                (true, _) => {}
                (false, _) if !first => value.push('\n'),
                (false, _) => {}
            }
            (0..breaks).for_each(|_| value.push('\n'));
            (breaks, after_blank, first) = (0, blank, false);
            let from = self.at;
            let end = memchr(b'\n', &self.bytes[from..]).map(|len| from + len);
            self.at = end.unwrap_or(self.bytes.len());
            value.push_str(&self.text[from..self.at]);
            ended = end.is_some();
            if !ended {
                break;
            }
            loop {
                self.at = self.bytes.len().min(self.at + 1);
                line = self.at;
                self.skip_at_most(indent);
                if self.byte() != Some(b'\n') {
                    break;
                }
                breaks += 1;
            }
        }
        let end = self.at;
        if chomp != Some(b'-') {
            value.push('\n');
        }
        if chomp == Some(b'+') {
            (0..breaks).for_each(|_| value.push('\n'));
        }
        if ended {
            self.at = line;
        }
        self.next_line()?;
        let style = if literal {
            ScalarStyle::Literal
        } else {
            ScalarStyle::Folded
        };
        Some(YamlScalar::new(Cow::Owned(value), style, start..end))
    }

    /// Moves to the first byte of the content of a block scalar. Returns its indentation and the
    /// number of empty lines before it. `None` if there is no content, or if its first line has
    /// another indentation than expected: the general parser reads such a scalar.
    fn block_indent(&mut self, explicit: Option<usize>, parent: usize) -> Option<(usize, usize)> {
        let mut breaks = 0;
        let mut longest = 0;
        loop {
            let spaces = self.skip_at_most(explicit.unwrap_or(usize::MAX));
            longest = longest.max(spaces);
            match self.byte()? {
                b'\n' => {
                    breaks += 1;
                    self.at += 1;
                }
                _ => {
                    let indent = explicit.unwrap_or(longest.max(parent + 1));
                    return (spaces == indent).then_some((indent, breaks));
                }
            }
        }
    }
}
