//! Line and column of an offset in a text, without counting from the start.

use std::borrow::Cow;
use std::ops::Deref;

/// A text with an index of its lines and characters, so that finding the positions of a million
/// values does not count from the start each time.
#[derive(Debug)]
pub struct LineIndex<'t> {
    text: Cow<'t, str>,
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
    /// The number of characters before each block. A whole file may be one line, so an index of
    /// lines would not be enough.
    blocks: Vec<usize>,
}

/// The size of a block, in bytes. A look-up counts characters in at most two blocks.
const BLOCK: usize = 1 << 10;

impl<'t> LineIndex<'t> {
    /// Creates the index in one pass over `text`.
    pub fn new(text: impl Into<Cow<'t, str>>) -> LineIndex<'t> {
        let text = text.into();
        let starts = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let starts = std::iter::once(0).chain(starts).collect();
        let count = |sum: &mut usize, block: &[u8]| {
            let before = *sum;
            *sum += characters(block);
            Some(before)
        };
        let blocks = text.as_bytes().chunks(BLOCK).scan(0, count).collect();
        LineIndex {
            text,
            starts,
            blocks,
        }
    }

    /// Line and column of the byte `at`, both counted from 1, the column in characters. Byte order
    /// marks at the start of the line are not counted.
    pub fn line_column(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self
            .starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let rest = self.text.get(start..at).unwrap_or_default();
        let marks = rest.chars().take_while(|c| *c == '\u{feff}').count();
        (line, self.before(at) - self.before(start) - marks + 1)
    }

    /// The number of characters that begin before the byte `at`.
    fn before(&self, at: usize) -> usize {
        let block = (at / BLOCK).min(self.blocks.len().saturating_sub(1));
        let counted = self.blocks.get(block).copied().unwrap_or_default();
        counted + characters(&self.text.as_bytes()[block * BLOCK..at])
    }
}

impl Deref for LineIndex<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// The number of UTF-8 characters that begin in `bytes`: continuation bytes are not counted.
fn characters(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .filter(|byte| !matches!(byte, 0x80..=0xbf))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn positions_equal_a_count_from_the_start(
            text in "(\u{feff}|[aé€😀]{0,700}|\r?\n){0,12}",
            part in 0.0..1.2f64,
        ) {
            let at = text.floor_char_boundary((text.len() as f64 * part) as usize);
            let before = &text[..at];
            let line = before.rsplit('\n').next().unwrap().trim_start_matches('\u{feff}');
            let expected = (before.matches('\n').count() + 1, line.chars().count() + 1);
            prop_assert_eq!(LineIndex::new(&*text).line_column(at), expected);
        }
    }
}
