//! Measures the patch between two files: `measure OLD NEW`.
#![allow(
    clippy::unwrap_used,
    reason = "a test or a measurement panics on what it finds"
)]
use landfall_patch::{Listing, PatchBase, PatchReader, PatchSections, PlainSource, create};
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let old = std::fs::read(&names[0]).unwrap();
    let new = std::fs::read(&names[1]).unwrap();
    let started = Instant::now();
    let old_listing = Listing::read(&old[..]).unwrap();
    let new_listing = Listing::read(&new[..]).unwrap();
    let listed = Instant::now();
    let bases = [PatchBase {
        source: &old,
        listing: &old_listing,
    }];
    let (sections, statistics) = create(
        &new,
        &new_listing,
        &bases,
        PatchSections::<Vec<u8>>::default(),
    )
    .unwrap();
    let created = Instant::now();
    let sizes = sections.clone().into_array().map(|section| section.len());
    let PatchSections {
        parts,
        gaps,
        words,
        literals,
    } = &sections;
    let sections = PatchSections {
        parts: &parts[..],
        gaps: &gaps[..],
        words: &words[..],
        literals: &literals[..],
    };
    let mut plain = Vec::new();
    PatchReader::new(
        sections,
        vec![Arc::new(old) as Arc<dyn PlainSource>],
        new.len() as u64,
    )
    .unwrap()
    .read_to_end(&mut plain)
    .unwrap();
    let applied = Instant::now();
    assert!(plain == new);
    println!(
        "{} bytes: {} {sizes:?} {statistics:?} listed {:?} created {:?} applied {:?}",
        new.len(),
        sizes.iter().sum::<usize>(),
        listed.duration_since(started),
        created.duration_since(listed),
        applied.duration_since(created)
    );
}
