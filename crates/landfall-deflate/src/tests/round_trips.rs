//! Streams are rebuilt as they were.

use super::*;
use crate::encoder::zlib::{ZlibDeflate, ZlibStrategy};
use crate::framing::StreamFormat;
use crate::{assume, estimate_recipe_size};

/// The encoder of [`runs`].
fn run_encoder(thousands: u8) -> Option<EncoderSpec> {
    Some(EncoderSpec::Runs(RunEncoding { thousands }))
}

#[test]
fn streams_of_an_encoder_that_is_not_replayed_are_rebuilt() {
    for level in 0..=9 {
        for length in [0, 1, 2, 3, 100, 65_535, 65_536, 200_000] {
            let plain = [text(length, 7), noise(length / 10, 3)].concat();
            let stream = gzip(&plain, level);
            let recipe = round_trip(&stream);
            assert_eq!(recipe.format(), StreamFormat::Gzip);
            assert_eq!(plain_of(&stream), plain);
        }
    }
}

#[test]
fn zlib_and_raw_streams_are_rebuilt() {
    let plain = text(200_000, 1);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(&plain).unwrap();
    let stream = encoder.finish().unwrap();
    assert_eq!(round_trip(&stream).format(), StreamFormat::Zlib);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(&plain).unwrap();
    let stream = encoder.finish().unwrap();
    assert_eq!(round_trip(&stream).format(), StreamFormat::Raw);
}

#[test]
fn a_known_encoder_costs_a_few_bytes() {
    let plain = [vec![5; 3_000_000], noise(500_000, 9), vec![0; 10]].concat();
    for flushes in [
        &[][..],
        &[0, 0, 100, 700_000, 1_400_000, 2_100_000, 3_500_010],
    ] {
        let stream = member(&runs(&plain, 50, flushes), &plain);
        let recipe = round_trip(&stream);
        assert_eq!(encoders(&recipe), [run_encoder(50)]);
        let size = recipe.as_bytes().len();
        assert!(size < 60, "{size}");
    }
}

#[test]
fn the_estimated_size_of_a_recipe_is_close_to_its_size() {
    let plain: Vec<u8> = (0..40)
        .flat_map(|seed| [text(40_000, seed), noise(40_000, seed)].concat())
        .collect();
    let members: Vec<u8> = plain
        .chunks(5000)
        .flat_map(|piece| member(&runs(piece, 1, &[]), piece))
        .collect();
    for stream in [
        gzip(&plain, 6),
        gzip(&plain[..100_000], 9),
        member(&runs(&plain, 50, &[]), &plain),
        members,
    ] {
        let bytes = stream.len() as u64;
        let size = analyze(|| Ok(&stream[..]), &GENEROUS)
            .unwrap()
            .as_bytes()
            .len();
        let estimate = estimate_recipe_size(|| Ok(&stream[..]), bytes, &GENEROUS).unwrap();
        let error = estimate.abs_diff(size as u64);
        assert!(error * 4 < size as u64 + 100, "{estimate} for {size}");
    }
    let cut = &gzip(&plain, 6)[..100_000];
    assert!(estimate_recipe_size(|| Ok(cut), cut.len() as u64, &GENEROUS).is_err());
    let limits = AnalysisLimits {
        recipe_bytes: 10,
        ..GENEROUS
    };
    let stream = gzip(&plain, 6);
    let error = estimate_recipe_size(|| Ok(&stream[..]), stream.len() as u64, &limits);
    assert!(matches!(error, Err(DeflateError::RecipeTooLarge)));
}

#[test]
fn tokens_are_predicted_if_the_encoder_differs_late() {
    let plain = noise(1_500_000, 4);
    let first = runs(&plain[..1_000_000], 50, &[1_000_000]);
    // the empty final block is cut off, and the rest follows in blocks of another size
    let head = &first[..first.len() - 2];
    let stream = member(&[head, &runs(&plain[1_000_000..], 1, &[])].concat(), &plain);
    let both = [&stream[..], &member(&runs(&plain, 2, &[]), &plain)].concat();
    let recipe = round_trip(&both);
    assert_eq!(encoders(&recipe), [None, run_encoder(2)]);
}

#[test]
fn the_recipe_of_an_assumed_encoder_equals_that_of_analysis() {
    let plain = noise(3_000_000, 4);
    for flushes in [&[][..], &[700_000, 2_000_000]] {
        let stream = member(&runs(&plain, 50, flushes), &plain);
        let mut decoded = Vec::new();
        let assumed = assume(|| Ok(&stream[..]), &GENEROUS, &mut decoded).unwrap();
        assert_eq!(assumed, Some(round_trip(&stream)));
        assert!(decoded == plain);
    }
}

#[test]
fn a_wrongly_assumed_encoder_does_not_rebuild_the_stream() {
    let plain = noise(3_000_000, 4);
    let first = runs(&plain[..2_000_000], 50, &[2_000_000]);
    let head = &first[..first.len() - 2];
    let stream = member(&[head, &runs(&plain[2_000_000..], 1, &[])].concat(), &plain);
    let mut decoded = Vec::new();
    let assumed = assume(|| Ok(&stream[..]), &GENEROUS, &mut decoded);
    let assumed = assumed.unwrap().unwrap();
    assert!(decoded == plain);
    assert_eq!(encoders(&assumed), [run_encoder(50)]);
    let is_same = |bytes| bytes == stream;
    assert!(!rebuilt(&assumed, &plain, 1 << 20).is_ok_and(is_same));
    assert_eq!(encoders(&round_trip(&stream)), [None]);
}

#[test]
fn if_the_encoder_of_an_earlier_member_fails_late_another_is_used() {
    let encoded = |level: u8, plain: &[u8]| {
        let spec = ZlibDeflate::new(level, 15, 8, ZlibStrategy::Default).unwrap();
        let mut out = crate::bits::BitWriter::default();
        let mut encoder = EncoderSpec::Zlib(spec).start();
        encoder.write(plain, &mut out);
        encoder.finish(&mut out);
        member(&out.bytes, plain)
    };
    // both levels write noise in the same way, and this text differently
    let words = text(400_000, 5);
    assert_ne!(encoded(5, &words), encoded(9, &words));
    let plain = [noise(700_000, 3), words.clone()].concat();
    let stream = [encoded(5, &words), encoded(9, &plain)].concat();
    let recipe = round_trip(&stream);
    let encoders = encoders(&recipe);
    assert!(
        matches!(
            encoders[..],
            [Some(one @ EncoderSpec::Zlib(_)), Some(other @ EncoderSpec::Zlib(_))] if one != other
        ),
        "{encoders:?}"
    );
    let size = recipe.as_bytes().len();
    assert!(size < 100, "{size}");
}

#[test]
fn recipes_of_many_members_are_small() {
    let mut stream = Vec::new();
    for number in 0..3000_u32 {
        let plain = noise(100 + (number % 7) as usize, number);
        stream.extend(member(&runs(&plain, 1, &[]), &plain));
    }
    let recipe = round_trip(&stream);
    assert_eq!(encoders(&recipe).len(), 3000);
    let size = recipe.as_bytes().len();
    assert!(size < 3000 * 3, "{size}");
    let equal = member(&runs(b"abc", 1, &[]), b"abc").repeat(1000);
    let recipe = round_trip(&equal);
    assert_eq!(encoders(&recipe).len(), 1000);
    let size = recipe.as_bytes().len();
    assert!(size < 40, "{size}");
    let empty = member(&runs(b"", 1, &[]), b"").repeat(5);
    assert_eq!(round_trip(&empty).plain_size(), 0);
}

#[test]
fn members_of_known_and_unknown_encoders_are_rebuilt() {
    let mut stream = Vec::new();
    for number in 0..40 {
        let plain = text(3000 * (number as usize % 9), number);
        stream.extend(match number % 3 {
            0 => member(&runs(&plain, 2, &[]), &plain),
            level => gzip(&plain, level * 3),
        });
    }
    round_trip(&stream);
}

#[test]
fn wrong_trailers_padding_and_trailing_bytes_are_rebuilt() {
    let plain = text(5000, 2);
    let mut stream = member(&runs(&plain, 1, &[]), &plain);
    let end = stream.len();
    stream[end - 1] ^= 1;
    stream.extend([0; 10_000]);
    stream.extend(b"tail");
    round_trip(&stream);
    // the last byte of the deflate stream has padding bits
    let mut padded = gzip(b"", 6);
    let end = padded.len();
    assert_eq!(padded[end - 9], 0);
    padded[end - 9] = 0xa4;
    round_trip(&padded);
}

#[test]
fn invalid_streams_are_rejected() {
    let stream = gzip(&text(100_000, 5), 6);
    for length in [0, 1, 5, 12, 100, stream.len() - 9, stream.len() - 1] {
        let cut = &stream[..length];
        let error = analyze(|| Ok(cut), &GENEROUS).unwrap_err();
        assert!(
            matches!(error, DeflateError::Stream { .. }),
            "{length}: {error}"
        );
        assert!(PlainReader::new(cut).read_to_end(&mut Vec::new()).is_err());
    }
    let limits = AnalysisLimits {
        plain_bytes: 99_999,
        ..GENEROUS
    };
    let error = analyze(|| Ok(stream.as_slice()), &limits).unwrap_err();
    assert!(matches!(
        error,
        DeflateError::PlainTooLarge { limit: 99_999 }
    ));
}

#[test]
fn plain_bytes_of_another_stream_do_not_rebuild_the_stream() {
    let plain = text(100_000, 6);
    for stream in [gzip(&plain, 6), member(&runs(&plain, 50, &[]), &plain)] {
        let recipe = round_trip(&stream);
        let error = rebuilt(&recipe, &plain[1..], 1000).unwrap_err();
        assert!(matches!(
            error,
            DeflateError::Plain(_) | DeflateError::Recipe(_)
        ));
        assert!(rebuilt(&recipe, &[&plain[..], b"x"].concat(), 1000).is_err());
        let other = rebuilt(&recipe, &noise(100_000, 8), 1000);
        assert!(other.is_err() || other.unwrap() != stream);
    }
}
