//! A source map of a scalar: which bytes of the text each part of its value comes from, so that a
//! part can be replaced in place, whatever quotes, folds and indentation surround it.

use super::edit::Edit;
use super::yaml::Scalar;
use granit_parser::ScalarStyle;
use std::ops::Range;

/// A part of a value, and the bytes that it is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    value: Range<usize>,
    source: Range<usize>,
}

/// The source map of one scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceMap {
    /// In order. Parts of the value that lie between pieces are white space that was folded.
    pieces: Vec<Piece>,
    style: ScalarStyle,
    /// What stands before each line but the first of a literal block.
    indent: usize,
}

impl SourceMap {
    /// How `scalar` of `source` is spelled; `None` where that cannot be made out.
    pub(super) fn of(source: &str, scalar: &Scalar<'_>) -> Option<SourceMap> {
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
        if bytes == &*scalar.value {
            source_map.pieces.push(Piece {
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
            _ => self.pieces.push(Piece { value, source }),
        }
    }

    /// Line by line: each is the value's, after the indentation.
    fn literal(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        // blank lines at the beginning stand before the span
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
            if from > 0 && !text.is_empty() {
                self.indent = indent;
            }
            (at, from) = (at + line.len(), from + raw.len());
        }
        Some(())
    }

    /// Word by word: the white space between them is folded.
    fn words(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        let (mut words, mut raws) = (spans(value), spans(source));
        loop {
            match (words.next(), raws.next()) {
                (None, None) => return Some(()),
                (Some(word), Some(raw)) if value[word.clone()] == source[raw.clone()] => {
                    self.pieces.push(Piece {
                        value: word,
                        source: base + raw.start..base + raw.end,
                    });
                }
                _ => return None,
            }
        }
    }

    /// Character by character, with the escapes of quoted scalars and folded line breaks.
    fn flow(&mut self, source: &str, value: &str, base: usize) -> Option<()> {
        let (mut from, mut at) = (0, 0);
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
                // after an escaped line break nothing is left of the others
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
                self.pieces.push(Piece {
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
                    self.pieces.push(Piece {
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

    /// The place of the value's byte `at` in the text; the nearest one before it, where it has
    /// none.
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

    /// The bytes that the part `range` of the value is read from, or why it has none of its own.
    fn bytes(&self, range: &Range<usize>) -> Result<Range<usize>, &'static str> {
        let holds = |piece: &&Piece, at: usize| piece.value.start <= at && at < piece.value.end;
        let find = |at: usize| {
            let after = self.pieces.partition_point(|piece| piece.value.start <= at);
            self.pieces
                .get(after.checked_sub(1)?)
                .filter(|piece| holds(piece, at))
        };
        let cut = "a part of an escape";
        if range.is_empty() {
            return self.offset(range.start).map(|at| at..at).ok_or(cut);
        }
        let (first, last) = (
            find(range.start).ok_or(cut)?,
            find(range.end - 1).ok_or(cut)?,
        );
        let verbatim = |piece: &Piece| piece.value.len() == piece.source.len();
        let start = match range.start - first.value.start {
            0 => first.source.start,
            into if verbatim(first) => first.source.start + into,
            _ => return Err(cut),
        };
        let end = match last.value.end - range.end {
            0 => last.source.end,
            before if verbatim(last) => last.source.end - before,
            _ => return Err(cut),
        };
        Ok(start..end)
    }

    /// The edit of `source` that makes `change` in the value; an error says why there is none. Line
    /// breaks in the new text are those of a literal block.
    pub(super) fn edit(&self, source: &str, change: &Edit) -> Result<Edit, &'static str> {
        let span = self.bytes(&change.span)?;
        let (old, new) = (&source[span.clone()], &*change.bytes);
        if old.contains('\n') && self.style != ScalarStyle::Literal {
            return Err("it is written over several lines");
        }
        let bytes = match self.style {
            ScalarStyle::SingleQuoted => new.replace('\'', "''"),
            ScalarStyle::DoubleQuoted => {
                let new = new.replace('\\', "\\\\").replace('"', "\\\"");
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
        Ok(Edit { span, bytes })
    }
}

/// The words of a text: what stands between white space.
fn spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let start = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |word| {
        let at = word.as_ptr() as usize - start;
        at..at + word.len()
    })
}

/// What the escape at the beginning of `text` reads as, and how long it is (YAML 1.2.2, 5.7).
fn escape(text: &str) -> Option<(Option<char>, usize)> {
    let sign = text[1..].chars().next()?;
    let hex = |digits: usize| {
        let code = u32::from_str_radix(text.get(2..2 + digits)?, 16).ok()?;
        // JSON has what lies beyond the first plane as two escapes
        if digits == 4 && (0xd800..0xdc00).contains(&code) {
            let low = u32::from_str_radix(
                text.get(8..12).filter(|_| text[6..].starts_with("\\u"))?,
                16,
            )
            .ok()?;
            let code = 0x10000 + ((code - 0xd800) << 10) + low.checked_sub(0xdc00)?;
            return Some((Some(char::from_u32(code)?), 12));
        }
        Some((Some(char::from_u32(code)?), 2 + digits))
    };
    let one = |read: char| Some((Some(read), 2));
    match sign {
        '\r' | '\n' => {
            let rest = text[1..].trim_start_matches('\r').strip_prefix('\n')?;
            Some((
                None,
                text.len() - rest.trim_start_matches([' ', '\t']).len(),
            ))
        }
        'x' => hex(2),
        'u' => hex(4),
        'U' => hex(8),
        '0' => one('\0'),
        'a' => one('\u{7}'),
        'b' => one('\u{8}'),
        't' | '\t' => one('\t'),
        'n' => one('\n'),
        'v' => one('\u{b}'),
        'f' => one('\u{c}'),
        'r' => one('\r'),
        'e' => one('\u{1b}'),
        'N' => one('\u{85}'),
        '_' => one('\u{a0}'),
        'L' => one('\u{2028}'),
        'P' => one('\u{2029}'),
        ' ' | '"' | '/' | '\\' => one(sign),
        _ => None,
    }
}
