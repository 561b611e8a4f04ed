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

/// The reason why the members are refused, with the other fields of [`recipe_of`].
fn refusal_of(members: &[u8]) -> String {
    recipe_of(members).unwrap_err().to_string()
}

#[test]
fn invalid_recipes_are_rejected() {
    // a new header of no bytes, the test encoder, 10 plain bytes
    recipe_of(&[3, 0, 0, 2, 255, 1, 10]).unwrap();
    recipe_of(&[2, 2, 255, 1, 10]).unwrap();
    // with a run of one flush, an explicit trailer, or one repeat
    recipe_of(&[6, 2, 255, 1, 10, 1, 10, 1]).unwrap();
    recipe_of(&[10, 2, 255, 1, 10, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    recipe_of(&[0x22, 2, 255, 1, 5, 1]).unwrap();
    let rejected: [(&str, &[u8], &str); 15] = [
        ("no encoder", &[1, 0, 0, 10], "an encoder is unknown"),
        (
            "another encoder",
            &[2, 2, 99, 1, 10],
            "an encoder is unknown",
        ),
        ("parameters", &[2, 2, 255, 0, 10], "an encoder is unknown"),
        ("a prediction", &[2, 1, 0, 10], "an encoder is unknown"),
        ("flags", &[0x42, 2, 255, 1, 10], "unknown flags"),
        ("sizes", &[2, 2, 255, 1, 9], "do not add up to its size"),
        (
            "too many repeats",
            &[0x22, 2, 255, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            "it expands too much",
        ),
        (
            "a shared header that does not exist",
            &[3, 1, 0, 2, 255, 1, 10],
            "a header shares more bytes",
        ),
        (
            "a flush after the end",
            &[6, 2, 255, 1, 10, 1, 11, 1],
            "a flush is outside of its member",
        ),
        (
            "a run of no flushes",
            &[6, 2, 255, 1, 10, 1, 10, 0],
            "a run of flushes is empty",
        ),
        (
            "too many flushes",
            &[6, 2, 255, 1, 10, 1, 0, 0xff, 0xff, 3],
            "it expands too much",
        ),
        (
            "flushes that do not exist",
            &[6, 2, 255, 1, 10, 3, 10, 1],
            "it ends early",
        ),
        (
            "padding of an encoder",
            &[0x12, 2, 255, 1, 10, 5],
            "a field of another method",
        ),
        (
            "a trailer that is cut off",
            &[10, 2, 255, 1, 10, 1, 2, 3, 4, 5, 6, 7],
            "it ends early",
        ),
        (
            "a number that is too long",
            &[2, 2, 255, 1, 0x8a, 0],
            "a number is invalid",
        ),
    ];
    for (what, members, reason) in rejected {
        let refusal = refusal_of(members);
        assert!(refusal.contains(reason), "{what}: {refusal}");
    }
    // one member of the test encoder with an empty header, no trailing bytes, no deviations
    let accepted = [1, 2, 10, 30, 5, 2, 2, 255, 1, 10, 0, 0, 0];
    Recipe::parse(accepted.to_vec()).unwrap();
    let rejected: [(usize, &[u8], &str); 7] = [
        (1, &[2], "its version is not supported"),
        (1, &[1, 3], "the framing is unknown"),
        // 2^40 plain bytes from 30
        (
            3,
            &[1, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
            "it expands too much",
        ),
        // fewer bytes than a member has
        (4, &[1, 2, 10, 9], "it expands too much"),
        // the members end early
        (10, &[1, 2, 10, 30, 4, 2, 2, 255, 1], "it ends early"),
        // no member
        (10, &[1, 2, 0, 30, 0], "the number of members is invalid"),
        (
            13,
            &[1, 2, 10, 30, 5, 2, 2, 255, 1, 10, 0, 0, 0, 0],
            "it is too long",
        ),
    ];
    for (count, beginning, reason) in rejected {
        let bytes = [beginning, &accepted[count..]].concat();
        let refusal = Recipe::parse(bytes).unwrap_err().to_string();
        assert!(refusal.contains(reason), "{reason}: {refusal}");
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
    // a fixed block with the literal `a`, which is predicted only when plain bytes follow
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
        prop_assert!(encoders(&recipe).iter().all(Option::is_none));
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
