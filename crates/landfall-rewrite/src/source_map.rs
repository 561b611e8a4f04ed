//! Maps the value of a scalar to the bytes of the text that it was read from, so that a part of the
//! value can be replaced in place within quotes, folds and indentation.

use crate::occurrence::SpanEdit;
use crate::yaml::{ScalarStyle, YamlScalar};
use std::ops::Range;

/// A part of a value, and the bytes that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourcePiece {
    value: Range<usize>,
    source: Range<usize>,
}

impl SourcePiece {
    /// Whether the value and the text have the same number of bytes. Of all escapes, only `\N` and
    /// `\_` are as long as their characters.
    fn is_verbatim(&self) -> bool {
        self.value.len() == self.source.len()
    }
}

/// The source map of one scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceMap {
    /// The pieces in order. The value between two pieces is white space, such as a line break or a
    /// folded space.
    pieces: Vec<SourcePiece>,
    style: ScalarStyle,
    /// The indentation of the lines of a literal block, except the first.
    indent: usize,
}

impl SourceMap {
    /// The map of `scalar` in `source`. `None` if its notation is not understood.
    pub(super) fn of(source: &str, scalar: &YamlScalar<'_>) -> Option<SourceMap> {
        let span = match scalar.style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                scalar.span.start + 1..scalar.span.end.checked_sub(1)?
            }
            _ => scalar.span.clone(),
        };
        let bytes = source.get(span.clone())?;
        let mut source_map = SourceMap {
            pieces: Vec::new(),
            style: scalar.style,
            indent: 0,
        };
        // most scalars are written without escapes and folds: one piece is enough
        if bytes == &*scalar.value {
            source_map.pieces.push(SourcePiece {
                value: 0..bytes.len(),
                source: span,
            });
            return Some(source_map);
        }
        match scalar.style {
            ScalarStyle::Literal => source_map.literal(bytes, &scalar.value, span.start)?,
            ScalarStyle::Folded => source_map.words(bytes, &scalar.value, span.start)?,
            _ => source_map.flow(bytes, &scalar.value, span.start)?,
        }
        Some(source_map)
    }

    fn add(&mut self, value: Range<usize>, source: Range<usize>) {
        match self.pieces.last_mut() {
            Some(last)
                if last.value.end == value.start
                    && last.source.end == source.start
                    && last.value.len() == last.source.len()
                    && value.len() == source.len() =>
            {
                (last.value.end, last.source.end) = (value.end, source.end);
            }
            _ => self.pieces.push(SourcePiece { value, source }),
        }
    }

    /// Maps a literal block line by line: each line of the value follows the indentation.
    fn literal(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        // the span of a block begins after its leading blank lines
        let mut at = value.len() - value.trim_start_matches('\n').len();
        let mut from = 0;
        for line in value[at..].split_inclusive('\n') {
            let raw = source.get(from..)?.split_inclusive('\n').next()?;
            let text = line.trim_end_matches('\n');
            let body = raw.trim_end_matches('\n').trim_end_matches('\r');
            let indent = if text.is_empty() {
                body.len()
            } else {
                body.len().checked_sub(text.len())?
            };
            let fits =
                body.is_char_boundary(indent) && body[..indent].bytes().all(|byte| byte == b' ');
            if !fits || (!text.is_empty() && body[indent..] != *text) {
                return None;
            }
            let start = base + from + indent;
            self.add(at..at + text.len(), start..start + text.len());
            // the span of a block begins after the indentation of its first line
            if from > 0 && !text.is_empty() {
                self.indent = indent;
            }
            (at, from) = (at + line.len(), from + raw.len());
        }
        Some(())
    }

    /// Maps a folded block word by word: the white space between words is folded.
    fn words(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        let mut words = spans(value);
        let mut raws = spans(source);
        loop {
            match (words.next(), raws.next()) {
                (None, None) => return Some(()),
                (Some(word), Some(raw)) if value[word.clone()] == source[raw.clone()] => {
                    self.pieces.push(SourcePiece {
                        value: word,
                        source: base + raw.start..base + raw.end,
                    });
                }
                _ => return None,
            }
        }
    }

    /// Maps a plain or quoted scalar character by character, with escapes and folded line breaks.
    fn flow(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        let mut from = 0;
        let mut at = 0;
        while from < source.len() {
            let rest = &source[from..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let breaks = rest[..blank].matches('\n').count();
            if breaks > 0 {
                let folded = if breaks == 1 {
                    " ".to_owned()
                } else {
                    "\n".repeat(breaks - 1)
                };
                // after an escaped line break, line breaks are not folded, so this fails
                at += if value[at..].starts_with(&folded) {
                    folded.len()
                } else {
                    return None;
                };
                from += blank;
                continue;
            }
            if self.style == ScalarStyle::SingleQuoted && rest.starts_with("''") {
                value[at..].starts_with('\'').then_some(())?;
                self.pieces.push(SourcePiece {
                    value: at..at + 1,
                    source: base + from..base + from + 2,
                });
                (from, at) = (from + 2, at + 1);
                continue;
            }
            if self.style == ScalarStyle::DoubleQuoted && rest.starts_with('\\') {
                let (read, taken) = escape(rest)?;
                let new: String = read.into_iter().collect();
                value[at..].starts_with(&new).then_some(())?;
                if !new.is_empty() {
                    self.pieces.push(SourcePiece {
                        value: at..at + new.len(),
                        source: base + from..base + from + taken,
                    });
                }
                (from, at) = (from + taken, at + new.len());
                continue;
            }
            let next = rest.chars().next()?;
            (value[at..].chars().next()? == next).then_some(())?;
            let len = next.len_utf8();
            self.add(at..at + len, base + from..base + from + len);
            (from, at) = (from + len, at + len);
        }
        (at == value.len()).then_some(())
    }

    /// The offset in the text of the byte `at` of the value. For a byte of an escape, and for
    /// white space after an escape, this is the start of the escape. For white space after another
    /// piece, this is the end of that piece. `\N` and `\_` are mapped as if they were not escapes.
    pub(super) fn offset(&self, at: usize) -> Option<usize> {
        let after = self.pieces.partition_point(|piece| piece.value.start <= at);
        let piece = self.pieces.get(after.saturating_sub(1))?;
        let into = at.saturating_sub(piece.value.start);
        Some(
            piece.source.start
                + if piece.value.len() == piece.source.len() {
                    into.min(piece.source.len())
                } else {
                    0
                },
        )
    }

    /// The bytes that the part `range` of the value was read from. An error is the reason why it
    /// has no bytes of its own.
    fn bytes(&self, range: &Range<usize>) -> Result<Range<usize>, &'static str> {
        const CUT: &str = "a part of an escape";
        if range.is_empty() {
            return self.offset(range.start).map(|at| at..at).ok_or(CUT);
        }
        let first = self.piece_at(range.start).ok_or(CUT)?;
        let last = self.piece_at(range.end - 1).ok_or(CUT)?;
        let start = match range.start - first.value.start {
            0 => first.source.start,
            into if first.is_verbatim() => first.source.start + into,
            _ => return Err(CUT),
        };
        let end = match last.value.end - range.end {
            0 => last.source.end,
            before if last.is_verbatim() => last.source.end - before,
            _ => return Err(CUT),
        };
        Ok(start..end)
    }

    /// The piece that contains the byte `at` of the value.
    fn piece_at(&self, at: usize) -> Option<&SourcePiece> {
        let after = self.pieces.partition_point(|piece| piece.value.start <= at);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        piece.value.contains(&at).then_some(piece)
    }

    /// The edit of `source` that makes `change` in the value. An error is the reason why there is
    /// none. In a literal block, the lines of a new text are indented.
    pub(super) fn edit(&self, source: &str, change: &SpanEdit) -> Result<SpanEdit, &'static str> {
        let span = self.bytes(&change.span)?;
        let old = &source[span.clone()];
        let new = &*change.bytes;
        // it is not certain where the new text of a folded scalar must be broken
        if old.contains('\n') && self.style != ScalarStyle::Literal {
            return Err("it is written over several lines");
        }
        let bytes = match self.style {
            ScalarStyle::SingleQuoted => new.replace('\'', "''"),
            ScalarStyle::DoubleQuoted => {
                let new = new.replace('\\', "\\\\").replace('"', "\\\"");
                // some JSON encoders escape slashes; the new text keeps that style
                if old.contains("\\/") {
                    new.replace('/', "\\/")
                } else {
                    new
                }
            }
            ScalarStyle::Literal if new.contains('\n') => {
                let end = if old.contains("\r\n") { "\r\n" } else { "\n" };
                new.replace('\n', &format!("{end}{}", " ".repeat(self.indent)))
            }
            _ => new.to_owned(),
        };
        Ok(SpanEdit { span, bytes })
    }
}

/// The words of a text, separated by white space.
fn spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let start = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |word| {
        let at = word.as_ptr() as usize - start;
        at..at + word.len()
    })
}

/// Decodes the escape at the beginning of `text` (YAML 1.2.2, 5.7). Returns its character and its
/// length in bytes. An escaped line break has no character.
fn escape(text: &str) -> Option<(Option<char>, usize)> {
    let sign = text[1..].chars().next()?;
    let read = match sign {
        '\r' | '\n' => {
            let rest = text[1..].trim_start_matches('\r').strip_prefix('\n')?;
            let length = text.len() - rest.trim_start_matches([' ', '\t']).len();
            return Some((None, length));
        }
        'x' => return hex_escape(text, 2),
        'u' => return hex_escape(text, 4),
        'U' => return hex_escape(text, 8),
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        ' ' | '"' | '/' | '\\' => sign,
        _ => return None,
    };
    Some((Some(read), 2))
}

/// The character and the length in bytes of an escape with `digits` hexadecimal digits.
fn hex_escape(text: &str, digits: usize) -> Option<(Option<char>, usize)> {
    let code = u32::from_str_radix(text.get(2..2 + digits)?, 16).ok()?;
    // JSON writes characters beyond the first plane as a surrogate pair of escapes
    if digits == 4 && (0xd800..0xdc00).contains(&code) {
        let low = text.get(6..12)?.strip_prefix("\\u")?;
        let low = u32::from_str_radix(low, 16).ok()?;
        let code = 0x10000 + ((code - 0xd800) << 10) + low.checked_sub(0xdc00)?;
        return Some((Some(char::from_u32(code)?), 12));
    }
    Some((Some(char::from_u32(code)?), 2 + digits))
}
