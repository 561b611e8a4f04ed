//! The kinds of framing.

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamFormat {
    /// A deflate stream without framing.
    Raw,
    /// A zlib stream (RFC 1950).
    Zlib,
    /// One or more gzip members.
    Gzip,
}

impl StreamFormat {
    /// Returns the framing of a stream that begins with these bytes. A raw stream has no signature:
    /// a stream that is neither gzip nor zlib is read as raw deflate.
    pub(crate) fn detect(beginning: &[u8]) -> Self {
        match *beginning {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // the method is 8, the window at most 32 KiB, and there is no preset dictionary
            [first, second, ..]
                if first & 0x0f == 8
                    && first >> 4 <= 7
                    && second & 0x20 == 0
                    && u16::from_be_bytes([first, second]) % 31 == 0 =>
            {
                Self::Zlib
            }
            _ => Self::Raw,
        }
    }

    /// The number of bytes after the deflate stream of a member.
    pub(crate) fn trailer_bytes(self) -> usize {
        match self {
            Self::Raw => 0,
            Self::Zlib => 4,
            Self::Gzip => 8,
        }
    }

    /// The number that a recipe records.
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Zlib => 1,
            Self::Gzip => 2,
        }
    }

    /// The framing that a recipe records as this number.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Raw, Self::Zlib, Self::Gzip]
            .into_iter()
            .find(|format| format.to_byte() == byte)
    }
}
