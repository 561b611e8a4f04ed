//! Properties that every encoder has for any input.

use super::{EncoderSpec, StreamHints};
use crate::bits::BitWriter;
use flate2::read::DeflateDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Read;

/// Bytes with matches at all distances: random bytes, repeated bytes, and copies.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        vec(any::<u8>(), 1..300).prop_map(|bytes| (bytes, 0, 0)),
        (any::<u8>(), 1_usize..5000).prop_map(|(byte, count)| (vec![byte; count], 0, 0)),
        (1_usize..40_000, 1_usize..3000).prop_map(|(distance, count)| (
            Vec::new(),
            distance,
            count
        )),
    ];
    vec(part, 0..60).prop_map(|parts| {
        let mut plain: Vec<u8> = Vec::new();
        for (bytes, distance, count) in parts {
            plain.extend(bytes);
            let source = plain.len().saturating_sub(distance);
            for at in source..source + count {
                let Some(&byte) = plain.get(at) else { break };
                plain.push(byte);
            }
        }
        plain
    })
}

fn all_specs() -> Vec<EncoderSpec> {
    let mut specs = EncoderSpec::candidates(&StreamHints::default());
    // programs that write gzip only, and full flushes
    specs.extend(EncoderSpec::candidates(&StreamHints {
        gzip_extra_flags: Some(0),
        has_flushes: true,
        ..StreamHints::default()
    }));
    specs
}

fn encode(spec: EncoderSpec, pieces: &[&[u8]], flushes: bool) -> Vec<u8> {
    let mut encoder = spec.start();
    let mut out = BitWriter::default();
    for piece in pieces {
        encoder.write(piece, &mut out);
        if flushes {
            encoder.flush(&mut out);
        }
    }
    encoder.finish(&mut out);
    out.bytes
}

fn decode(stream: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    DeflateDecoder::new(stream).read_to_end(&mut plain).unwrap();
    plain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn streams_decode_to_their_plain_bytes_however_they_are_cut(
        plain in plain(),
        number in any::<prop::sample::Index>(),
        piece_size in 1_usize..100_000,
    ) {
        let spec = *number.get(&all_specs());
        let whole = encode(spec, &[&plain], false);
        prop_assert_eq!(decode(&whole), &plain[..], "{:?}", spec);
        let pieces: Vec<&[u8]> = plain.chunks(piece_size).collect();
        prop_assert!(encode(spec, &pieces, false) == whole, "{:?} depends on the pieces", spec);
        prop_assert_eq!(decode(&encode(spec, &pieces, true)), &plain[..], "{:?}", spec);
    }
}
