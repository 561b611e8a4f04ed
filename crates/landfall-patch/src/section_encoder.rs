//! The compressor of one section of a patch.

use std::io::{self, Write};
use zstd::stream::raw::CParameter;

/// The base-2 logarithm of the largest window of the sections' zstd streams: 8 MiB, which bounds
/// the memory of a reader.
pub(crate) const WINDOW_LOG: u32 = 23;

/// A section of at most this many bytes is compressed as a whole.
const MAX_BUFFERED: usize = 1 << 20;

/// Tables of 60 MB, which find matches that are far away.
pub(crate) const LARGE_TABLES: &[CParameter] = &[CParameter::WindowLog(WINDOW_LOG)];

/// Tables of 16 MB, for sections that are rarely long and have no matches far away.
pub(crate) const SMALL_TABLES: &[CParameter] = &[
    CParameter::WindowLog(21),
    CParameter::ChainLog(21),
    CParameter::HashLog(20),
];

/// The slowest level that compresses 15 MB of plain bytes in a second if a tenth of them is new.
const LEVEL: i32 = 17;

/// The compressor of a section. Short sections are compressed as a whole, because a compressor that
/// does not know the size of its input allocates its tables in full.
pub(crate) struct SectionEncoder<W: Write> {
    state: EncoderState<W>,
    tables: &'static [CParameter],
}

enum EncoderState<W: Write> {
    Buffered {
        bytes: Vec<u8>,
        sink: W,
    },
    Streaming(Box<zstd::Encoder<'static, W>>),
    /// The compressor could not be created, or could not write the buffered bytes.
    Failed,
}

impl<W: Write> SectionEncoder<W> {
    pub(crate) fn new(sink: W, tables: &'static [CParameter]) -> SectionEncoder<W> {
        let state = EncoderState::Buffered {
            bytes: Vec::new(),
            sink,
        };
        SectionEncoder { state, tables }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            EncoderState::Buffered {
                bytes: buffered, ..
            } if buffered.len() + bytes.len() <= MAX_BUFFERED => {
                buffered.extend_from_slice(bytes);
                Ok(())
            }
            EncoderState::Buffered { .. } => {
                let state = std::mem::replace(&mut self.state, EncoderState::Failed);
                if let EncoderState::Buffered {
                    bytes: buffered,
                    sink,
                } = state
                {
                    let mut encoder = zstd::Encoder::new(sink, LEVEL)?;
                    for parameter in self.tables {
                        encoder.set_parameter(*parameter)?;
                    }
                    encoder.write_all(&buffered)?;
                    encoder.write_all(bytes)?;
                    self.state = EncoderState::Streaming(Box::new(encoder));
                }
                Ok(())
            }
            EncoderState::Streaming(encoder) => encoder.write_all(bytes),
            EncoderState::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        match self.state {
            EncoderState::Buffered { bytes, mut sink } => {
                let compressed = zstd::bulk::compress(&bytes, LEVEL)?;
                sink.write_all(&compressed)?;
                Ok(sink)
            }
            EncoderState::Streaming(encoder) => encoder.finish(),
            EncoderState::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_section_is_compressed_with_the_window_of_its_tables() {
        for (tables, window_log) in [(SMALL_TABLES, 21), (LARGE_TABLES, WINDOW_LOG)] {
            let mut encoder = SectionEncoder::new(Vec::new(), tables);
            encoder.write(&vec![0; MAX_BUFFERED + 1]).unwrap();
            let compressed = encoder.finish().unwrap();
            // the exponent of the window descriptor (RFC 8878, section 3.1.1.1.2)
            assert_eq!(10 + u32::from(compressed[5] >> 3), window_log);
        }
    }
}
