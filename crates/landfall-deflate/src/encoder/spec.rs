//! The families of encoders.

use super::go::GoFlate;
use super::klauspost::KlauspostFlate;
use super::zlib::pigz::Pigz;
use super::zlib::{GnuGzip, ZlibDeflate};
use super::{Encoder, StreamHints};

#[cfg(test)]
use super::testing;

/// Defines [`EncoderSpec`]. A family is a `Copy` type of parameters with a number that recipes
/// record and that never changes. It has the methods that are called below.
macro_rules! families {
    ($($(#[$attribute:meta])* $number:literal => $family:ident($parameters:ty)),* $(,)?) => {
        /// An encoder and all parameters that its output depends on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum EncoderSpec {
            $($(#[$attribute])* $family($parameters)),*
        }

        impl EncoderSpec {
            /// All encoders that may have written a stream, the most likely first.
            pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
                let mut specs = Vec::new();
                $(
                    $(#[$attribute])*
                    specs.extend(<$parameters>::candidates(hints).into_iter().map(Self::$family));
                )*
                specs
            }

            /// Returns an encoder at the beginning of a stream.
            pub(crate) fn start(self) -> Box<dyn Encoder> {
                match self {
                    $($(#[$attribute])* Self::$family(parameters) => parameters.start()),*
                }
            }

            /// The encoding in recipes: the number of the family, then at most 31 bytes.
            pub(crate) fn to_bytes(self) -> Vec<u8> {
                let mut bytes = Vec::new();
                match self {
                    $(
                        $(#[$attribute])*
                        Self::$family(parameters) => {
                            bytes.push($number);
                            bytes.extend(parameters.to_bytes());
                        }
                    )*
                }
                bytes
            }

            /// The encoder that `to_bytes` recorded, or `None` if it is not known.
            pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
                match bytes.split_first()? {
                    $(
                        $(#[$attribute])*
                        (&$number, rest) => <$parameters>::from_bytes(rest).map(Self::$family),
                    )*
                    _ => None,
                }
            }
        }
    };
}

// the number 0 means that the tokens of a stream are predicted
families! {
    // Go's standard library
    1 => Go(GoFlate),
    // klauspost/compress and pgzip
    2 => Klauspost(KlauspostFlate),
    // zlib, with the default build options
    3 => Zlib(ZlibDeflate),
    // GNU gzip
    4 => GnuGzip(GnuGzip),
    // pigz
    5 => Pigz(Pigz),
    #[cfg(test)]
    255 => Runs(testing::RunEncoding),
}
