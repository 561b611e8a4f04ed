//! The levels of `compress/flate`.

/// A level, −2 to 9. The default level, −1, is resolved to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GoLevel(i8);

impl GoLevel {
    /// The level that codes literals and finds no matches.
    pub(crate) const HUFFMAN_ONLY: i8 = -2;

    /// The level, or `None` if there is no such level.
    pub(crate) fn new(level: i8) -> Option<Self> {
        match level {
            -1 => Some(Self(6)),
            -2..=9 => Some(Self(level)),
            _ => None,
        }
    }

    /// The number of the level, −2 or 0 to 9.
    pub(crate) fn resolved(self) -> i8 {
        self.0
    }
}
