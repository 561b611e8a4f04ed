//! Quoted scalars.

use super::reader::{SimpleReader, fold};
use landfall_model::document::{ScalarStyle, YamlScalar};
use memchr::{memchr2, memchr3};
use std::borrow::Cow;

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
