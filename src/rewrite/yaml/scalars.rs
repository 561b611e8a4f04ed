//! The scalars of the simple reader.

use super::Scalar;
use super::simple::Reader;
use granit_parser::ScalarStyle;
use memchr::{memchr, memchr2, memchr3};
use std::borrow::Cow;
use std::ops::Range;

impl<'a> Scalar<'a> {
    /// One without tag and anchor.
    pub(super) fn of(value: Cow<'a, str>, style: ScalarStyle, span: Range<usize>) -> Scalar<'a> {
        Scalar { value, style, span, anchor: 0, tag: None }
    }

    /// What stands for the value of an entry that has none, at its colon.
    pub(super) fn nothing(colon: usize) -> Scalar<'a> {
        Scalar::of(Cow::Borrowed("~"), ScalarStyle::Plain, colon..colon)
    }
}

/// Where the text of a plain scalar ends on a line.
enum Stop {
    /// At the `:` of a mapping.
    Colon,
    Comment,
    Line,
}

impl<'a> Reader<'a> {
    /// A plain scalar that begins here, below the column `parent`, and whether it is a key: then the place after it is
    /// its colon, else the first token of a later line.
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

    /// A plain key that begins here, up to its colon.
    pub(super) fn plain_key(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        match self.plain_line()? {
            (end, Stop::Colon) => {
                Some(Scalar::of(Cow::Borrowed(&self.text[start..end]), ScalarStyle::Plain, start..end))
            }
            _ => None,
        }
    }

    /// The first line of a plain scalar in a block collection: the end of its text, and why it ends there.
    fn plain_line(&mut self) -> Option<(usize, Stop)> {
        let first = self.byte()?;
        let may_begin = match first {
            b'-' | b'?' | b':' => !self.is_blank_at(self.at + 1),
            _ => !is_sign(first) && !matches!(first, b'\'' | b'"'),
        };
        (may_begin && !self.is_marker()).then_some(())?;
        self.plain_rest()
    }

    /// Whether what stands here would begin or end a document at the beginning of a line.
    fn is_marker(&self) -> bool {
        let rest = &self.bytes[self.at..];
        (rest.starts_with(b"---") || rest.starts_with(b"...")) && self.is_blank_at(self.at + 3)
    }

    /// A line of a plain scalar.
    fn plain_rest(&mut self) -> Option<(usize, Stop)> {
        let start = self.at;
        loop {
            let found = memchr3(b'\n', b':', b'#', &self.bytes[self.at..]);
            self.at = found.map_or(self.bytes.len(), |len| self.at + len);
            let before = self.at > start && matches!(self.bytes[self.at - 1], b' ' | b'\t');
            let stop = match self.byte() {
                None | Some(b'\n') => Stop::Line,
                // `a : b` is left to the other reader
                Some(b':') if self.is_blank_at(self.at + 1) => {
                    return (!before).then_some((self.at, Stop::Colon));
                }
                Some(b'#') if before => Stop::Comment,
                Some(_) => {
                    self.at += 1;
                    continue;
                }
            };
            let blanks =
                self.bytes[start..self.at].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t'));
            let end = self.at - blanks.count();
            if let Stop::Comment = stop {
                self.at = end;
            }
            return (end > start).then_some((end, stop));
        }
    }

    /// From the end of a line to the first token of the next that is not empty: how many lines end before it, and how
    /// far it is indented.
    fn breaks(&mut self) -> (usize, isize) {
        let mut breaks = 0;
        loop {
            self.at = self.bytes.len().min(self.at + 1);
            breaks += 1;
            let spaces = self.skip_spaces();
            if self.byte() != Some(b'\n') {
                // no text is that long
                return (breaks, isize::try_from(spaces).unwrap_or(isize::MAX));
            }
        }
    }

    /// A quoted scalar that begins here; on one line, unless it stands below a column.
    pub(super) fn quoted(&mut self, below: Option<isize>) -> Option<Scalar<'a>> {
        let start = self.at;
        let single = self.byte() == Some(b'\'');
        let mut from = start + 1;
        self.at = from;
        let mut value = Cow::Borrowed("");
        let mut lines = false;
        loop {
            let rest = &self.bytes[self.at..];
            let found = if single { memchr2(b'\'', b'\n', rest) } else { memchr3(b'"', b'\\', b'\n', rest) };
            self.at += found?;
            let text = &self.text[from..self.at];
            let next = self.byte_at(self.at + 1);
            match self.bytes[self.at] {
                b'\n' => {
                    value.to_mut().push_str(text.trim_end_matches([' ', '\t']));
                    fold(value.to_mut(), self.go_on(below?)?);
                    lines = true;
                }
                b'\\' if next == Some(b'\n') => {
                    value.to_mut().push_str(text);
                    self.at += 1;
                    // empty lines after it are left to the other reader
                    (self.go_on(below?)? == 1).then_some(())?;
                    lines = true;
                }
                b'\'' if next == Some(b'\'') && single => {
                    value.to_mut().push_str(text);
                    value.to_mut().push('\'');
                    self.at += 2;
                }
                b'\\' => {
                    let value = value.to_mut();
                    value.push_str(text);
                    value.push(self.escaped()?);
                }
                _ => {
                    match &mut value {
                        Cow::Owned(value) => value.push_str(text),
                        value => *value = Cow::Borrowed(text),
                    }
                    self.at += 1;
                    let style = if single { ScalarStyle::SingleQuoted } else { ScalarStyle::DoubleQuoted };
                    // a key stands on one line
                    let is_key = self.byte() == Some(b':');
                    return (!(lines && is_key)).then(|| Scalar::of(value, style, start..self.at));
                }
            }
            from = self.at;
        }
    }

    /// From the end of a line of a quoted scalar to where it goes on: how many lines end before that.
    fn go_on(&mut self, below: isize) -> Option<usize> {
        let (breaks, spaces) = self.breaks();
        (spaces > below && self.byte() != Some(b'\t')).then_some(breaks)
    }

    /// What the escape that begins here means.
    fn escaped(&mut self) -> Option<char> {
        let plain = match self.byte_at(self.at + 1)? {
            byte @ (b'"' | b'/' | b'\\' | b' ') => Ok(char::from(byte)),
            b'0' => Ok('\0'),
            b'a' => Ok('\x07'),
            b'b' => Ok('\x08'),
            b't' => Ok('\t'),
            b'n' => Ok('\n'),
            b'v' => Ok('\x0b'),
            b'f' => Ok('\x0c'),
            b'r' => Ok('\r'),
            b'e' => Ok('\x1b'),
            b'x' => Err(2),
            b'u' => Err(4),
            // the others are left to the other reader
            _ => return None,
        };
        self.at += 2;
        match plain {
            Ok(plain) => Some(plain),
            Err(len) => {
                let digits = self.text.get(self.at..self.at + len)?;
                self.at += len;
                let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                // halves of a pair are no character, and are left to the other reader
                hex.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32))?
            }
        }
    }

    /// A scalar in a flow collection, on one line.
    pub(super) fn flow_scalar(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        match self.byte()? {
            b'"' | b'\'' => return self.quoted(None),
            b'-' => {
                let next = self.byte_at(start + 1)?;
                (!self.is_blank_at(start + 1) && !is_flow(next)).then_some(())?;
            }
            first => (!is_sign(first) && !matches!(first, b'?' | b':')).then_some(())?,
        }
        (!self.is_marker()).then_some(())?;
        loop {
            let byte = self.byte()?;
            let ends = match byte {
                b':' => self.is_blank_at(self.at + 1) || self.byte_at(self.at + 1).is_some_and(is_flow),
                b'\n' => true,
                b'\t' => return None,
                b'#' if self.bytes[self.at - 1] == b' ' => return None,
                byte => is_flow(byte),
            };
            if ends {
                break;
            }
            self.at += 1;
        }
        let value = self.text[start..self.at].trim_end_matches(' ');
        let end = start + value.len();
        // `a : b` is left to the other reader, and so is what may be the end of a document
        let odd = (self.byte() == Some(b':') && end < self.at) || value == "...";
        (!odd).then(|| Scalar::of(Cow::Borrowed(value), ScalarStyle::Plain, start..end))
    }

    /// A block scalar whose `|` or `>` is here, below the column `parent`.
    pub(super) fn block_scalar(&mut self, parent: isize, literal: bool) -> Option<Scalar<'a>> {
        self.at += 1;
        let (mut chomp, mut explicit) = (None, None);
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
        (parent >= 0 && self.byte() != Some(b'\t')).then_some(())?;

        let indent = explicit.map(|by| usize::try_from(parent + by).ok());
        let (indent, mut breaks) = self.block_indent(indent.flatten(), usize::try_from(parent).ok()?)?;
        let start = self.at;
        let mut value = String::new();
        let (mut line, mut after_blank, mut first) = (start, false, true);
        let mut ended = true;
        // at the first byte of a line after its indentation
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
        let style = if literal { ScalarStyle::Literal } else { ScalarStyle::Folded };
        Some(Scalar::of(Cow::Owned(value), style, start..end))
    }

    /// To the first byte of the content of a block scalar: its indentation, and the empty lines before it. Such
    /// without content are left to the other reader.
    fn block_indent(&mut self, explicit: Option<usize>, parent: usize) -> Option<(usize, usize)> {
        let (mut breaks, mut longest) = (0, 0);
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

    fn skip_at_most(&mut self, most: usize) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take(most).take_while(|byte| **byte == b' ').count();
        self.at += count;
        count
    }
}

/// Adds what is left of line breaks between words.
fn fold(value: &mut String, breaks: usize) {
    match breaks {
        1 => value.push(' '),
        _ => (1..breaks).for_each(|_| value.push('\n')),
    }
}

/// Whether no plain scalar begins with `byte`, whatever follows it.
fn is_sign(byte: u8) -> bool {
    is_flow(byte) || matches!(byte, b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t')
}

fn is_flow(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}
