//! Targets for compressed streams, and for the recipes that rebuild them.

use flate2::{Compression, GzBuilder};
use landfall_deflate::{AnalysisLimits, PlainReader, Rebuilder, Recipe, analyze};
use std::io::{Read, Write};

const LIMITS: AnalysisLimits = AnalysisLimits {
    plain_bytes: 1 << 20,
    recipe_bytes: 1 << 20,
    recipe_percent: 10_000,
};

/// Repeated words and runs, so that streams contain matches.
fn plain() -> Vec<u8> {
    let words = [
        "layer ",
        "of ",
        "an ",
        "image, ",
        "0123",
        "\0\0\0\0\0\0\0\0",
    ];
    let numbers = (0..900_usize).map(|number| words[number * number % 7 % 6]);
    numbers.collect::<String>().into_bytes()
}

/// A stream in each framing. The gzip stream has several members, with stored and dynamic blocks.
pub(super) fn stream_seeds() -> Vec<Vec<u8>> {
    let plain = plain();
    let gzip = |level, plain: &[u8]| {
        let header = GzBuilder::new().filename("name").mtime(1);
        let mut packed = header.write(Vec::new(), Compression::new(level));
        packed.write_all(plain).unwrap();
        packed.finish().unwrap()
    };
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::new(1));
    zlib.write_all(&plain).unwrap();
    zlib.flush().unwrap();
    zlib.write_all(&plain[..100]).unwrap();
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), Compression::new(9));
    raw.write_all(&plain).unwrap();
    let members = [
        gzip(6, &plain),
        gzip(0, &plain[..50]),
        gzip(6, b""),
        vec![0; 9],
    ];
    vec![
        members.concat(),
        zlib.finish().unwrap(),
        raw.finish().unwrap(),
    ]
}

/// Analyzes a stream: if it has a recipe, rebuilding must give the same bytes.
pub(super) fn deflate(bytes: &[u8]) {
    let mut plain = Vec::new();
    let read = PlainReader::new(bytes).take(LIMITS.plain_bytes + 1);
    let decoded = std::io::BufReader::new(read).read_to_end(&mut plain);
    let Ok(recipe) = analyze(|| Ok(bytes), &LIMITS) else {
        return;
    };
    decoded.unwrap();
    let recipe = Recipe::parse(recipe.into_bytes()).unwrap();
    assert_eq!(recipe.plain_size(), plain.len() as u64);
    let mut rebuilder = Rebuilder::new(recipe, Vec::new());
    plain
        .chunks(1000)
        .for_each(|part| rebuilder.write(part).unwrap());
    assert_eq!(rebuilder.finish().unwrap(), bytes);
}

/// Recipes, each with its length in two bytes before it and its plain bytes after it.
pub(super) fn recipe_seeds() -> Vec<Vec<u8>> {
    let recipes = stream_seeds().into_iter().map(|stream| {
        let mut plain = Vec::new();
        PlainReader::new(stream.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        let recipe = analyze(|| Ok(stream.as_slice()), &LIMITS)
            .unwrap()
            .into_bytes();
        let length = u16::try_from(recipe.len()).unwrap().to_le_bytes();
        [&length[..], &recipe, &plain].concat()
    });
    recipes.collect()
}

/// Rebuilds a stream by any recipe. The output must not be longer than the recipe says.
pub(super) fn recipe(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length));
    let (recipe, plain) = rest.split_at(rest.len().min(length));
    let Ok(recipe) = Recipe::parse(recipe.to_vec()) else {
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
