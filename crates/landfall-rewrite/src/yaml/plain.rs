//! Scalars of every style: plain, quoted, literal and folded.

use super::simple::{SimpleReader, fold, is_indicator};
use landfall_model::document::{ScalarStyle, YamlScalar};
use memchr::{memchr, memchr2, memchr3};
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

// Quoted scalars.

impl<'a> SimpleReader<'a> {
    /// Reads a quoted scalar that begins here. `below` is the column of the collection that
    /// contains it; `None` if the scalar must not have several lines.
    pub(super) fn quoted(&mut self, below: Option<isize>) -> Option<YamlScalar<'a>> {
        let start = self.at;
        let single = self.byte() == Some(b'\'');
        let mut from = start + 1;
        self.at = from;
        let mut value = Cow::Borrowed("");
        let mut lines = false;
        loop {
            let rest = &self.bytes[self.at..];
            let found = if single {
                memchr2(b'\'', b'\n', rest)
            } else {
                memchr3(b'"', b'\\', b'\n', rest)
            };
            self.at += found?;
            let text = &self.text[from..self.at];
            let next = self.byte_at(self.at + 1);
            match self.bytes[self.at] {
                // line folding (YAML 1.2.2, 7.3.1): blanks around the break are not content
                b'\n' => {
                    value.to_mut().push_str(text.trim_end_matches([' ', '\t']));
                    fold(value.to_mut(), self.continue_line(below?)?);
                    lines = true;
                }
                b'\\' if next == Some(b'\n') => {
                    value.to_mut().push_str(text);
                    self.at += 1;
                    // if empty lines follow, the general parser reads the scalar
                    (self.continue_line(below?)? == 1).then_some(())?;
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
                        Cow::Borrowed(value) => *value = text,
                    }
                    self.at += 1;
                    let style = if single {
                        ScalarStyle::SingleQuoted
                    } else {
                        ScalarStyle::DoubleQuoted
                    };
                    // a key has one line
                    let is_key = self.byte() == Some(b':');
                    return (!(lines && is_key))
                        .then(|| YamlScalar::new(value, style, start..self.at));
                }
            }
            from = self.at;
        }
    }

    /// Moves from the end of a line of a quoted scalar to its next text. Returns the number of line
    /// breaks between them. The text may begin in the column of the key, which the general
    /// parser does not accept.
    fn continue_line(&mut self, below: isize) -> Option<usize> {
        let (breaks, spaces) = self.breaks();
        let is_end = spaces == 0 && self.text[self.at..].starts_with("...");
        (spaces >= below && !is_end && self.byte() != Some(b'\t')).then_some(breaks)
    }

    /// Reads the escape that begins here.
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
            // the general parser reads all other escapes
            _ => return None,
        };
        self.at += 2;
        match plain {
            Ok(plain) => Some(plain),
            Err(len) => {
                let digits = self.text.get(self.at..self.at + len)?;
                self.at += len;
                let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                // half of a surrogate pair is not a character: the general parser decides
                hex.then(|| {
                    u32::from_str_radix(digits, 16)
                        .ok()
                        .and_then(char::from_u32)
                })?
            }
        }
    }
}

// Literal and folded scalars.

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
