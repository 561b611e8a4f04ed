//! Creates patches of generated streams, and applies them.
#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use landfall_patch::{Listing, PatchBase, PatchReader, PatchSections, PlainSource, create};
use proptest::prelude::*;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Sections = PatchSections<Vec<u8>>;

fn patch(new: &[u8], bases: &[Vec<u8>]) -> Sections {
    let listings: Vec<Listing> = bases
        .iter()
        .map(|base| Listing::read(&base[..]).unwrap())
        .collect();
    let bases: Vec<PatchBase<'_>> = bases
        .iter()
        .zip(&listings)
        .map(|(source, listing)| PatchBase { source, listing })
        .collect();
    let listing = Listing::read(new).unwrap();
    create(&new.to_vec(), &listing, &bases, PatchSections::default()).unwrap()
}

fn apply(sections: &Sections, bases: &[Vec<u8>], size: u64) -> Result<Vec<u8>, String> {
    let PatchSections {
        parts,
        gaps,
        words,
        literals,
    } = sections;
    let sections = PatchSections {
        parts: &parts[..],
        gaps: &gaps[..],
        words: &words[..],
        literals: &literals[..],
    };
    let bases = bases
        .iter()
        .map(|base| Arc::new(base.clone()) as Arc<dyn PlainSource>)
        .collect();
    let mut reader = PatchReader::new(sections, bases, size).map_err(|error| error.to_string())?;
    let mut plain = Vec::new();
    reader
        .read_to_end(&mut plain)
        .map_err(|error| error.to_string())?;
    Ok(plain)
}

/// A stream of zeros that records the length of its longest read.
struct Zeros {
    size: u64,
    longest: AtomicUsize,
}

impl PlainSource for Zeros {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], _offset: u64) -> io::Result<()> {
        self.longest.fetch_max(buffer.len(), Ordering::Relaxed);
        buffer.fill(0);
        Ok(())
    }
}

#[test]
fn an_old_file_that_is_much_longer_than_the_new_one_is_not_read_as_a_whole() {
    let old = Zeros {
        size: 256 << 20,
        longest: AtomicUsize::new(0),
    };
    let listing = Listing::read(io::repeat(0).take(old.size)).unwrap();
    let bases = [PatchBase {
        source: &old,
        listing: &listing,
    }];
    let new = vec![1_u8; 1000];
    let of_new = Listing::read(&new[..]).unwrap();
    create(&new, &of_new, &bases, PatchSections::<Vec<u8>>::default()).unwrap();
    let longest = old.longest.load(Ordering::Relaxed);
    assert!((1..=64 << 20).contains(&longest), "{longest} bytes at once");
}

fn size(sections: &Sections) -> usize {
    sections.clone().into_array().iter().map(Vec::len).sum()
}

/// The new bytes that a patch contains.
fn literals(sections: &Sections) -> Vec<u8> {
    zstd::decode_all(&sections.literals[..]).unwrap()
}

/// An entry of a tar: its path, its content, and the length of the comment in its extended header
/// (0 if it has none). A path that ends with `/` is a folder.
type ArchiveEntry = (String, Vec<u8>, usize);

/// A tar of these entries. The length of an entry's headers depends on its comment.
fn archive_with_extended_headers(entries: &[ArchiveEntry]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content, extended) in entries {
        if *extended > 0 {
            let comment = vec![b'c'; *extended];
            let records = [("comment", &comment[..])];
            builder.append_pax_extensions(records).unwrap();
        }
        let mut header = tar::Header::new_ustar();
        if path.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
        }
        header.set_size(content.len() as u64);
        builder
            .append_data(&mut header, path, &content[..])
            .unwrap();
    }
    builder.into_inner().unwrap()
}

/// A tar of these files.
fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, &content[..])
            .unwrap();
    }
    builder.into_inner().unwrap()
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..))
        .take(length)
        .collect()
}

#[track_caller]
fn assert_restores(new: &[u8], bases: &[Vec<u8>]) -> Sections {
    let sections = patch(new, bases);
    let plain = apply(&sections, bases, new.len() as u64).unwrap();
    assert!(
        plain == new,
        "the patch gave another stream, of {} bytes",
        plain.len()
    );
    sections
}

#[test]
fn files_with_equal_content_need_no_literals_at_any_path() {
    let a = noise(1, 100_000);
    let b = noise(2, 50_001);
    let c = noise(3, 7);
    let old = archive(&[("a", a.clone()), ("dir/b", b.clone()), ("c", c.clone())]);
    let new = archive(&[("c", c), ("elsewhere/b", b), ("a", a)]);
    let sections = assert_restores(&new, &[old]);
    let size = size(&sections);
    assert!(size < 500, "{size}");
    assert_eq!(literals(&sections), b"");
}

#[test]
fn moved_addresses_cost_little() {
    let mut old = noise(4, 400_000);
    let mut new = old[..200_000].to_vec();
    new.extend_from_slice(b"an inserted function");
    new.extend_from_slice(&old[200_000..]);
    for at in (0..new.len() - 4).step_by(97) {
        let address = u32::from_le_bytes(new[at..at + 4].try_into().unwrap());
        new[at..at + 4].copy_from_slice(&address.wrapping_add(20).to_le_bytes());
    }
    let sections = assert_restores(&new, std::slice::from_ref(&old));
    let (size, new_bytes) = (size(&sections), literals(&sections).len());
    assert!(new_bytes < 200 && size < 4000, "{size} {new_bytes}");
    old.truncate(10);
    assert_restores(&new, &[old]);
}

#[test]
fn a_file_is_compared_with_its_older_version_under_another_name() {
    let content = noise(5, 300_000);
    let mut changed = content.clone();
    changed[1000..1010].fill(0);
    let old = archive(&[("usr/lib/libssl.so.3.0.11", content)]);
    let new = archive(&[("usr/lib/libssl.so.3.0.13", changed)]);
    let size = size(&assert_restores(&new, &[noise(6, 1000), old]));
    assert!(size < 400, "{size}");
}

#[test]
fn streams_of_any_shape_are_restored() {
    let tar = archive(&[("a", noise(1, 1000)), ("b", Vec::new())]);
    let shapes = [
        Vec::new(),
        vec![7],
        tar.clone(),
        tar[..700].to_vec(),
        tar[..1024 + 512].to_vec(),
        [&tar[..], b"trailing bytes"].concat(),
        vec![0; 10_000],
        noise(9, 30_000),
    ];
    for new in &shapes {
        assert_restores(new, &[]);
        for old in &shapes {
            assert_restores(new, &[old.clone(), tar.clone()]);
        }
    }
}

#[test]
fn an_entry_without_content_may_have_longer_headers_than_in_the_base() {
    let entry = |path: &str, content: &[u8], extended| (path.into(), content.to_vec(), extended);
    let old = archive_with_extended_headers(&[entry("d/", b"", 0), entry("x", b"old", 0)]);
    for extended in [1, 600] {
        let new = [entry("d/", b"", extended), entry("y", b"new", 0)];
        assert_restores(
            &archive_with_extended_headers(&new),
            std::slice::from_ref(&old),
        );
    }
}

#[test]
fn a_damaged_patch_gives_an_error_or_at_most_the_declared_number_of_bytes() {
    let old = noise(7, 6000);
    let mut new = old.clone();
    new.splice(3000..3010, noise(8, 50));
    new[5000..5100].fill(1);
    let sections = patch(&new, std::slice::from_ref(&old));
    let bases = [old];
    for section in 0..landfall_patch::SECTIONS {
        let bytes = sections.clone().into_array()[section].clone();
        for at in 0..bytes.len() {
            let mut damaged = sections.clone().into_array();
            damaged[section][at] ^= 1 << (at % 8);
            let damaged = PatchSections::from_array(damaged);
            if let Ok(plain) = apply(&damaged, &bases, new.len() as u64) {
                assert!(plain.len() <= new.len());
            }
            let mut cut = sections.clone().into_array();
            cut[section].truncate(at);
            if let Ok(plain) = apply(&PatchSections::from_array(cut), &bases, new.len() as u64) {
                assert!(plain.len() <= new.len());
            }
        }
    }
    // other bases, and sizes that are not the stream's
    assert!(apply(&sections, &[noise(9, 6000)], new.len() as u64).unwrap() != new);
    assert!(apply(&sections, &[noise(9, 100)], new.len() as u64).is_err());
    assert!(apply(&sections, &[], new.len() as u64).is_err());
    assert!(apply(&sections, &bases, new.len() as u64 - 1).is_err());
    assert!(apply(&sections, &bases, new.len() as u64 + 1).is_err());
}

#[test]
fn a_gap_beyond_the_stream_is_an_error() {
    let compressed = |bytes: &[u8]| zstd::encode_all(bytes, 0).unwrap();
    // one part: all 8 bytes of the base; the gap after its first word exceeds the stream
    let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let sections = PatchSections {
        parts: compressed(&[0, 8, 0, 0]),
        gaps: compressed(&[&[0][..], &largest].concat()),
        words: compressed(&[1, 0, 0, 0]),
        literals: compressed(&[]),
    };
    let refusal = apply(&sections, &[noise(1, 8)], 8).unwrap_err();
    assert!(refusal.contains("a gap exceeds the stream"), "{refusal}");
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
    let edit = (
        0..5000_usize,
        0..300_usize,
        proptest::collection::vec(any::<u8>(), 0..40),
    );
    proptest::collection::vec(edit, 0..30)
}

/// Entries with few different paths and contents, so that archives have entries in common.
fn entries() -> impl Strategy<Value = Vec<ArchiveEntry>> {
    let path = prop::sample::select(vec!["a/", "b/", "c", "lib-1", "lib-2", "empty"]);
    let content = prop::sample::select(vec![0, 1, 511, 512, 1500]);
    let extended = prop::sample::select(vec![0, 0, 1, 600, 2000]);
    let entry = (path, content, 0..3_u64, extended).prop_map(|(path, length, seed, extended)| {
        let length = if path.ends_with('/') { 0 } else { length };
        (path.to_owned(), noise(seed, length), extended)
    });
    proptest::collection::vec(entry, 0..8)
}

proptest! {
    #[test]
    fn archives_of_any_entries_are_restored(
        new in entries(), bases in proptest::collection::vec(entries(), 0..3)
    ) {
        let new = archive_with_extended_headers(&new);
        let bases: Vec<Vec<u8>> =
            bases.iter().map(|base| archive_with_extended_headers(base)).collect();
        let sections = patch(&new, &bases);
        prop_assert!(apply(&sections, &bases, new.len() as u64) == Ok(new));
    }

    #[test]
    fn streams_with_any_edits_are_restored(seed: u64, edits in edits(), repeat in 1..200_usize) {
        let mut random = fastrand::Rng::with_seed(seed);
        // few symbols, so that there are many matches of all lengths
        let old: Vec<u8> = (0..5000).map(|at| random.u8(0..4) * u8::from(at % repeat != 0)).collect();
        let mut new = old.clone();
        for (at, length, bytes) in edits {
            let at = at.min(new.len());
            let end = (at + length).min(new.len());
            new.splice(at..end, bytes);
        }
        let sections = patch(&new, std::slice::from_ref(&old));
        prop_assert_eq!(apply(&sections, &[old], new.len() as u64).unwrap(), new);
    }
}
