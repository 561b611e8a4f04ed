//! Decodes base64, and encodes changed content in the style of the original.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The style of a base64 text.
pub(super) struct Base64Style {
    alphabet: &'static Alphabet,
    padded: bool,
    /// The length of all lines except the last; `None` if there is only one line.
    width: Option<usize>,
}

impl Base64Style {
    /// The style of `written`. `None` if its lines have different lengths, so that they could not
    /// be restored.
    pub(super) fn read(written: &str) -> Option<Base64Style> {
        let mut lines = written.split('\n').map(|line| line.trim_end_matches('\r'));
        let first = lines.next().filter(|line| !line.is_empty())?.len();
        let rest: Vec<usize> = lines.map(str::len).collect();
        let even = rest.iter().rev().skip(1).all(|len| *len == first);
        let fits = rest.last().is_none_or(|last| *last <= first && *last > 0);
        (even && fits).then_some(())?;
        // the two alphabets differ in these characters only (RFC 4648, 5)
        let alphabet = if written.contains(['-', '_']) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        let chars = written
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count();
        Some(Base64Style {
            alphabet,
            // a text whose length is a multiple of 4 is padded or needs no padding
            padded: chars % 4 == 0,
            width: (!rest.is_empty()).then_some(first),
        })
    }

    fn engine(&self) -> GeneralPurpose {
        let config = GeneralPurposeConfig::new()
            .with_encode_padding(self.padded)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(self.alphabet, config)
    }

    pub(super) fn decode(&self, written: &str) -> Option<Vec<u8>> {
        let packed: String = written
            .chars()
            .filter(|c| !matches!(c, '\n' | '\r'))
            .collect();
        self.engine().decode(packed).ok()
    }

    pub(super) fn encode(&self, bytes: &[u8]) -> String {
        let text = self.engine().encode(bytes);
        let Some(width) = self.width else { return text };
        let lines = text
            .as_bytes()
            .chunks(width)
            .map(|line| String::from_utf8_lossy(line).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}
