//! The target for patches between plain streams.

use landfall_patch::{
    Listing, PatchBase, PatchReader, PatchSections, PlainSource, SECTIONS, create,
};
use std::io::Read;
use std::sync::Arc;

/// The size of the stream that the patches describe.
const SIZE: u64 = 6000;

/// A base with words and runs.
fn base() -> Vec<u8> {
    let words = [
        "layer ",
        "of ",
        "an ",
        "image, ",
        "0123",
        "\0\0\0\0\0\0\0\0",
    ];
    let numbers = (0..1100_usize).map(|number| words[number * number % 7 % 6]);
    let mut base = numbers.collect::<String>().into_bytes();
    base.resize(SIZE as usize, b'x');
    base
}

/// The uncompressed sections of patches, each with its length in two bytes before it.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let old = base();
    let mut changed = old.clone();
    changed.splice(1000..1100, *b"other bytes");
    changed[3000..3004].copy_from_slice(b"word");
    changed.resize(SIZE as usize, b'y');
    [old.clone(), changed, vec![7; SIZE as usize]]
        .into_iter()
        .map(|new| {
            let listing = Listing::read(&new[..]).unwrap();
            let old_listing = Listing::read(&old[..]).unwrap();
            let bases = [PatchBase {
                source: &old,
                listing: &old_listing,
            }];
            let sinks = PatchSections::<Vec<u8>>::default();
            let sections = create(&new, &listing, &bases, sinks).unwrap();
            let mut seed = Vec::new();
            for section in sections.into_array() {
                let plain = zstd::decode_all(&section[..]).unwrap();
                seed.extend(u16::try_from(plain.len()).unwrap().to_le_bytes());
                seed.extend(plain);
            }
            seed
        })
        .collect()
}

/// Applies any patch. The result must not be longer than the stream.
pub(super) fn patch(mut bytes: &[u8]) {
    let sections: [Vec<u8>; SECTIONS] = std::array::from_fn(|_| {
        let Some((length, rest)) = bytes.split_first_chunk() else {
            return Vec::new();
        };
        let (section, rest) = rest.split_at(rest.len().min(u16::from_le_bytes(*length).into()));
        bytes = rest;
        zstd::encode_all(section, 1).unwrap()
    });
    let sections = PatchSections::from_array(sections.each_ref().map(|section| &section[..]));
    let bases: Vec<Arc<dyn PlainSource>> = vec![Arc::new(base()), Arc::new(vec![1, 2, 3])];
    let Ok(reader) = PatchReader::new(sections, bases, SIZE) else {
        return;
    };
    let mut plain = Vec::new();
    // an error is the usual result
    let _ = reader.take(SIZE + 1).read_to_end(&mut plain);
    assert!(plain.len() as u64 <= SIZE);
}
