//! Hostile recipes and streams never cause a panic or unbounded work.

use super::*;
use proptest::prelude::*;

/// A recipe of format gzip with these members, for 10 plain bytes and 1000 compressed ones.
fn recipe_of(members: &[u8]) -> Result<Recipe, DeflateError> {
    let mut bytes = vec![1, 2, 10, 0xe8, 7, members.len() as u8];
    bytes.extend_from_slice(members);
    bytes.extend([0, 0, 0]);
    Recipe::parse(bytes)
}

#[test]
fn recipes_that_contradict_themselves_are_rejected() {
    // a new header of no bytes, the test encoder, 10 plain bytes
    recipe_of(&[3, 0, 0, 2, 255, 1, 10]).unwrap();
    let rejected: [(&str, &[u8]); 16] = [
        ("no members", &[]),
        ("no encoder", &[1, 0, 0, 10]),
        ("an unknown encoder", &[2, 2, 99, 1, 10]),
        ("unknown parameters", &[2, 2, 255, 0, 10]),
        ("no parameters of a prediction", &[2, 1, 0, 10]),
        ("unknown flags", &[0x42, 2, 255, 1, 10]),
        ("other plain sizes", &[2, 2, 255, 1, 9]),
        (
            "too many repeats",
            &[0x22, 2, 255, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ),
        (
            "a shared header that does not exist",
            &[3, 1, 0, 2, 255, 1, 10],
        ),
        ("a flush after the end", &[6, 2, 255, 1, 10, 1, 11, 1]),
        ("a run of no flushes", &[6, 2, 255, 1, 10, 1, 0, 0]),
        ("too many flushes", &[6, 2, 255, 1, 10, 1, 0, 0xff, 0xff, 3]),
        ("flushes that do not exist", &[6, 2, 255, 1, 10, 3, 1, 1]),
        ("padding of an encoder", &[0x12, 2, 255, 1, 10, 5]),
        ("a trailer that is cut off", &[10, 2, 255, 1, 10, 1]),
        ("a number that is too long", &[2, 2, 255, 1, 0x8a, 0]),
    ];
    for (what, members) in rejected {
        assert!(recipe_of(members).is_err(), "{what}");
    }
    for bytes in [
        &[][..],
        &[2, 2, 0, 30, 0, 0, 0, 0],
        &[1, 3, 0, 30, 0, 0, 0, 0],
        // 2^40 plain bytes from 30
        &[1, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 30, 0, 0, 0, 0],
    ] {
        assert!(Recipe::parse(bytes.to_vec()).is_err());
    }
}

#[test]
fn output_never_exceeds_the_declared_size() {
    let plain = noise(50_000, 1);
    let stream = member(&runs(&plain, 1, &[]), &plain);
    let mut bytes = round_trip(&stream).into_bytes();
    // the compressed size follows version, format and a plain size of three bytes
    bytes[5] -= 1;
    let recipe = Recipe::parse(bytes).unwrap();
    let limit = recipe.compressed_size() as usize;
    let mut output = Vec::new();
    let mut rebuilder = Rebuilder::new(recipe, &mut output);
    let result = rebuilder
        .write(&plain)
        .and_then(|()| rebuilder.finish().map(drop));
    assert!(result.is_err());
    assert!(output.len() <= limit);
}

#[test]
fn blocks_that_wait_for_plain_bytes_are_limited() {
    let mut out = crate::bits::BitWriter::default();
    // a fixed block with the literal `a`, which is predicted only once plain bytes follow
    out.write(1 << 1, 3);
    out.write(u32::from(0x91_u8.reverse_bits()), 8);
    out.write(0, 7);
    for _ in 0..50_000 {
        // a fixed block that has only the symbol for its end
        out.write(1 << 1, 10);
    }
    out.write(1 | 1 << 1, 10);
    out.align();
    let stream = member(&out.bytes, b"a");
    assert_eq!(plain_of(&stream), b"a");
    let error = crate::analyze::predict(&stream, &GENEROUS).unwrap_err();
    assert!(matches!(error, DeflateError::RecipeTooLarge), "{error}");
}

/// Parses the bytes as a recipe, and rebuilds its stream.
fn rebuild_any(recipe: Vec<u8>, plain: &[u8]) {
    let Ok(recipe) = Recipe::parse(recipe) else {
        return;
    };
    recipe.encoders();
    let limit = recipe.compressed_size();
    let mut output = Vec::new();
    let mut rebuilder = Rebuilder::new(recipe, &mut output);
    if plain.chunks(777).all(|part| rebuilder.write(part).is_ok()) {
        let _ = rebuilder.finish();
    }
    assert!(output.len() as u64 <= limit);
}

/// Plain bytes with runs, repetitions and noise.
fn any_plain() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        (any::<u8>(), 1..2000_usize).prop_map(|(byte, count)| vec![byte; count]),
        (any::<u32>(), 1..3000_usize).prop_map(|(seed, length)| noise(length, seed)),
        (0..50_u32, 1..6000_usize).prop_map(|(seed, length)| text(length, seed)),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn streams_are_rebuilt(plain in any_plain(), level in 0..=9_u32, piece in 1..5000_usize) {
        let stream = gzip(&plain, level);
        let recipe = analyze(|| Ok(stream.as_slice()), &GENEROUS).unwrap();
        prop_assert_eq!(rebuilt(&recipe, &plain, piece).unwrap(), stream);
    }

    #[test]
    fn predicted_streams_are_rebuilt(
        plain in any_plain(),
        level in 0..=9_u32,
        piece in 1..5000_usize,
    ) {
        let stream = gzip(&plain, level);
        let recipe = crate::analyze::predict(&stream, &GENEROUS).unwrap();
        prop_assert!(recipe.encoders().iter().all(|share| !share.is_replayed));
        prop_assert_eq!(rebuilt(&recipe, &plain, piece).unwrap(), stream);
    }

    #[test]
    fn changed_streams_are_rejected_or_rebuilt(
        plain in any_plain(),
        level in 0..=9_u32,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut stream = gzip(&plain, level);
        for (index, byte) in changes {
            let at = index.index(stream.len());
            stream[at] = byte;
        }
        if let Ok(recipe) = analyze(|| Ok(stream.as_slice()), &GENEROUS) {
            let plain = plain_of(&stream);
            prop_assert_eq!(rebuilt(&recipe, &plain, 4096).unwrap(), stream);
        }
    }

    #[test]
    fn changed_recipes_do_not_panic(
        plain in any_plain(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let stream = [gzip(&plain, 6), gzip(&plain, 1)].concat();
        let mut recipe = crate::analyze::predict(&stream, &GENEROUS).unwrap().into_bytes();
        for (index, byte) in changes {
            let at = index.index(recipe.len());
            recipe[at] = byte;
        }
        rebuild_any(recipe, &[&plain[..], &plain].concat());
    }
}
