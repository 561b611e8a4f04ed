//! An encoder that is used for several streams, one after the other.

use crate::encoder::Encoder;
use std::fmt;

/// An encoder that can begin another stream.
pub(super) trait RestartEncoder: Encoder + fmt::Debug {
    /// Begins a stream whose matches may refer to `dictionary`.
    fn restart(&mut self, dictionary: &[u8]);
}
