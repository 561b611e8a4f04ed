//! Go's `compress/flate`, which `compress/gzip` and `compress/zlib` use: Docker and BuildKit at the
//! default level, crane, ko and kaniko at level 1.
//!
//! The encoder has two generations, which differ at all levels: the [classic] one up to Go 1.26,
//! and the one from Go 1.27, which descends from `github.com/klauspost/compress`
//! ([`klauspost`](super::klauspost)).

mod chain;
pub(crate) mod classic;

use super::{BlockSize, Encoder, StreamHints, klauspost};

/// The releases of Go that write the same streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GoGeneration {
    /// The encoder of Go up to 1.26.
    Classic,
    /// The encoder of Go since 1.27.
    Go1_27,
}

impl GoGeneration {
    /// All generations, in the order of their numbers in recipes.
    const ALL: [Self; 2] = [Self::Classic, Self::Go1_27];
}

/// An encoder of Go's standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GoFlate {
    pub(crate) generation: GoGeneration,
    pub(crate) level: GoLevel,
}

impl GoFlate {
    /// Returns an encoder at the beginning of a stream.
    pub(crate) fn start(self) -> Box<dyn Encoder> {
        match self.generation {
            GoGeneration::Classic => classic::start(self.level),
            GoGeneration::Go1_27 => klauspost::start(
                klauspost::rules::KlauspostGeneration::Go1_27,
                self.level.resolved(),
            ),
        }
    }

    /// Whether the first block of a stream can be full at this size.
    fn can_be_full(self, size: BlockSize) -> bool {
        match self.generation {
            GoGeneration::Classic => classic::can_be_full(self.level, size),
            GoGeneration::Go1_27 => klauspost::can_be_full(
                klauspost::rules::KlauspostGeneration::Go1_27,
                self.level.resolved(),
                size,
            ),
        }
    }

    /// The encoders that can have written a stream, the most likely first.
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        let levels: &[i8] = match (hints.zlib_header, hints.gzip_extra_flags) {
            // `compress/zlib` writes the class of the level into the header
            (Some([_, flags]), _) => match flags >> 6 {
                0 => &[1, 0, -2],
                1 => &[5, 4, 3, 2],
                2 => &[6],
                _ => &[9, 8, 7],
            },
            (None, Some(2)) => &[9],
            (None, Some(4)) => &[1],
            (None, Some(0)) => &[6, 5, 4, 3, 2, 8, 7, 0, -2],
            (None, _) => &[6, 1, 9, 5, 4, 3, 2, 8, 7, 0, -2],
        };
        let levels = levels.iter().filter_map(|level| GoLevel::new(*level));
        levels
            .flat_map(|level| GoGeneration::ALL.map(|generation| Self { generation, level }))
            .filter(|spec| hints.full_block.is_none_or(|size| spec.can_be_full(size)))
            .collect()
    }

    /// The parameters in a recipe.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        [
            self.generation as u8,
            self.level.resolved().to_le_bytes()[0],
        ]
    }

    /// Reads the parameters from a recipe, or returns `None` if they are unknown.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[generation, level] = bytes else {
            return None;
        };
        let generation = *GoGeneration::ALL.get(usize::from(generation))?;
        let number = i8::from_le_bytes([level]);
        // the default level is always recorded as level 6
        let level = GoLevel::new(number).filter(|level| level.resolved() == number)?;
        Some(Self { generation, level })
    }
}

// The levels of `compress/flate`.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::vectors;

    fn start(generation: GoGeneration, level: &str) -> Box<dyn Encoder> {
        let level = GoLevel::new(level.parse().unwrap()).unwrap();
        GoFlate { generation, level }.start()
    }

    #[test]
    fn the_classic_generation_writes_the_bytes_of_go_1_26() {
        let table = include_str!("../../../tests/vectors/go-1.26.txt");
        vectors::check(table, |level| start(GoGeneration::Classic, level));
    }

    #[test]
    fn the_second_generation_writes_the_bytes_of_go_1_27() {
        let table = include_str!("../../../tests/vectors/go-1.27.txt");
        vectors::check(table, |level| start(GoGeneration::Go1_27, level));
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        for parameters in GoFlate::candidates(&StreamHints::default()) {
            assert_eq!(
                GoFlate::from_bytes(&parameters.to_bytes()),
                Some(parameters)
            );
        }
        for bytes in [[9, 6], [0, 10], [0, 0xff], [0, 0xfd]] {
            assert_eq!(GoFlate::from_bytes(&bytes), None);
        }
    }
}
