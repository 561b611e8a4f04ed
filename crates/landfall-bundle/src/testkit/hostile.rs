//! Tests with forged bundles: tar headers, frame table, footer and sizes that contradict the
//! content. Each bundle is refused.

use super::sample::{Packed, packed};
use crate::Bundle;
use crate::format::entry::TarEntry;
use crate::format::footer::{self, Footer};
use crate::format::frame::{self, FrameHash, ROW};
use crate::format::header;
use crate::format::stored::ContentForm;
use landfall_content::BlobRead;
use landfall_os::FileExt;
use std::fs;
use std::io::Read;
use tar::{EntryType, Header};

impl Packed {
    fn write_at(&self, bytes: &[u8], at: u64) {
        fs::File::options()
            .write(true)
            .open(&self.path)
            .unwrap()
            .write_all_at(bytes, at)
            .unwrap();
    }

    /// Replaces the footer by a changed one.
    fn refoot(&self, change: impl FnOnce(&mut Footer)) {
        let bundle = Bundle::open(&self.path).unwrap();
        let mut footer = bundle.0.index.footer.clone();
        change(&mut footer);
        self.write_at(&footer.to_bytes(), bundle.bytes() - footer::LEN as u64);
    }

    fn assert_refused(&self, why: &str) {
        let problems = self.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
}

/// The boundaries of all frames, including those of the index and the end of the bundle.
fn edges(bundle: &Bundle, bytes: &[u8]) -> Vec<usize> {
    let mut edges = vec![0];
    let mut at = 0;
    while let Some((frame, _)) = frame::split(&bytes[at..]) {
        at += frame.len();
        edges.push(at);
        if at == bytes.len() {
            break;
        }
    }
    let listed = (bundle.contents().frames.size / ROW as u64) as usize;
    assert!(
        edges.len() > listed + 6 && at == bytes.len(),
        "{} of {listed}",
        edges.len()
    );
    edges
}

#[test]
fn a_cut_at_every_edge_of_a_frame_is_found() {
    let packed = packed();
    let good = fs::read(&packed.path).unwrap();
    let edges = edges(&Bundle::open(&packed.path).unwrap(), &good);
    for edge in edges.into_iter().filter(|edge| *edge < good.len()) {
        for cut in [edge.saturating_sub(1), edge, edge + 1] {
            fs::write(&packed.path, &good[..cut]).unwrap();
            assert_ne!(packed.problems(), "", "cut after {cut} bytes");
        }
    }
    fs::write(&packed.path, [&good[..], &good[..]].concat()).unwrap();
    assert_ne!(packed.problems(), "", "twice");
}

/// A valid tar header with this name and kind. Other tools would unpack its entry.
fn header_of(name: &str, size: u64, kind: EntryType) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_link_name("/etc/passwd").unwrap();
    header.set_mode(0o4777);
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_device_major(8).unwrap();
    header.set_device_minor(0).unwrap();
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn links_devices_and_names_that_lead_elsewhere_are_refused() {
    let kinds = [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::Continuous,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNULongName,
        EntryType::GNUSparse,
    ];
    let names = [
        "/etc/passwd",
        "../../etc/passwd",
        "blobs/../../x",
        "./oci-layout",
        "",
        "C:\\x",
        "a\nb",
    ];
    let headers = kinds.map(|kind| (None, kind)).into_iter();
    let headers = headers.chain(names.map(|name| (Some(name), EntryType::Regular)));
    for (name, kind) in headers.chain([(None, EntryType::Regular)]) {
        for entry_index in [0, 1, 3] {
            let packed = packed();
            packed.reseal(|contents, rows| {
                let entry = &contents.entries[entry_index];
                let name = name.unwrap_or(&entry.name);
                let forged = frame::stored(&header_of(name, entry.size, kind));
                rows[entry.frame as usize].1 = FrameHash::of(&forged);
                packed.write_at(&forged, entry.offset);
            });
            packed.assert_refused("tar header");
        }
    }
}

#[test]
fn a_footer_with_wrong_values_is_refused() {
    type FooterChange = fn(&mut Footer);
    let changes: [FooterChange; 16] = [
        |f| f.offset = 0,
        |f| f.offset -= 1,
        |f| f.offset += 1,
        |f| f.offset = u64::MAX,
        |f| f.length = 0,
        |f| f.length -= 1,
        |f| f.length = u64::MAX,
        |f| f.size = 0,
        |f| f.size -= 1,
        |f| f.size += 1,
        |f| f.size = u64::MAX,
        |f| f.frames = FrameHash::of(b"others"),
        |f| f.sha256 = landfall_model::Digest::sha256(b"others"),
        |f| f.signed = 1,
        |f| f.signed = u64::MAX,
        |f| f.signatures = FrameHash::of(b"others"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let packed = packed();
        packed.refoot(change);
        assert!(Bundle::open(&packed.path).is_err(), "change {number}");
    }
    // the footer points to an index that has a gap before it
    let packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let bytes = fs::read(&packed.path).unwrap();
    let footer = bundle.0.index.footer.clone();
    let at = footer.offset as usize;
    let moved = Footer {
        offset: footer.offset + 100,
        ..footer
    };
    let end = bytes.len() - footer::LEN;
    let gap = [&bytes[..at], &[0; 100], &bytes[at..end], &moved.to_bytes()].concat();
    fs::write(&packed.path, gap).unwrap();
    packed.assert_refused("right after the frame table");
}

#[test]
fn bytes_between_the_parts_of_the_end_are_refused() {
    let good = packed();
    let bytes = fs::read(&good.path).unwrap();
    let footer = Bundle::open(&good.path).unwrap().0.index.footer.clone();
    let tar_end = footer.tar_end().unwrap() as usize;
    let end = bytes.len();
    for at in [footer.offset as usize - 1, tar_end - 1, tar_end, end] {
        let packed = packed();
        fs::write(
            &packed.path,
            [&bytes[..at], b"smuggled", &bytes[at..]].concat(),
        )
        .unwrap();
        assert!(Bundle::open(&packed.path).is_err(), "at {at}");
    }
}

#[test]
fn impossible_index_sizes_are_refused() {
    // each size exceeds the limit for an index, which depends on the length of the file. The added
    // sizes are multiples of a tar block, so that `Footer::bundle_len` stays right
    for more in [1 << 62, 200 << 20, 65 << 20] {
        let packed = packed();
        packed.refoot(|footer| footer.size += more);
        packed.assert_refused("it is longer than the");
    }
}

/// Replaces the compressed content of the last entry with `bomb`, with an index that matches it.
fn plant(packed: &Packed, bomb: &[u8]) {
    let (mut contents, mut rows) = packed.opened();
    let last = contents.entries.last_mut().unwrap();
    assert_eq!(
        (last.form, TarEntry::frame_count(last.size)),
        (ContentForm::Compressed, 3)
    );
    let content = &mut rows[last.frame as usize + 1];
    content.1 = FrameHash::of(bomb);
    let at = content.0;
    let padding = frame::stored(&vec![0; header::padding(last.size)]);
    packed.write_at(&[bomb, &padding].concat(), at);
    let end = at + (bomb.len() + padding.len()) as u64;
    rows[last.frame as usize + 2].0 = at + bomb.len() as u64;
    last.length = end - last.offset;
    packed.seal(contents, &rows, end, false, &[]);
}

#[test]
fn decompression_bombs_are_refused() {
    let size = Bundle::open(&packed().path)
        .unwrap()
        .contents()
        .entries
        .last()
        .unwrap()
        .size as u32;
    let head = |declared: u32| {
        [
            &[0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50][..],
            &declared.to_le_bytes(),
        ]
        .concat()
    };
    // an RLE block of 128 KiB is four bytes (RFC 8878, 3.1.1.2.2): a whole GiB in 32 KiB
    let rle =
        |last: bool| ((128u32 << 10) << 3 | 1 << 1 | u32::from(last)).to_le_bytes()[..3].to_vec();
    let block = [rle(false), vec![0]].concat();
    let bomb = |declared| {
        [
            head(declared),
            block.repeat(8191),
            [rle(true), vec![0]].concat(),
            vec![0; 4],
        ]
        .concat()
    };
    for (what, frame) in [
        ("says the right size", bomb(size)),
        ("says a GiB", bomb(1 << 30)),
        (
            "two frames",
            [
                frame::encode(ContentForm::Compressed, 3, &vec![0; size as usize]).unwrap(),
                bomb(size),
            ]
            .concat(),
        ),
        ("no end", [head(size), block.repeat(8191)].concat()),
        ("nothing", head(size)),
    ] {
        let packed = packed();
        plant(&packed, &frame);
        assert_ne!(packed.problems(), "", "{what}");
        let bundle = Bundle::open(&packed.path).unwrap();
        let digest = bundle.contents().entries.last().unwrap().digest.clone();
        let mut read = Vec::new();
        assert!(
            bundle
                .open(&digest, 0)
                .unwrap()
                .read_to_end(&mut read)
                .is_err(),
            "{what}"
        );
        assert!(
            read.len() <= size as usize,
            "{what}: {} bytes were returned",
            read.len()
        );
    }
    // a contents index that is a bomb
    let packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let frames = bomb(1 << 20);
    let footer = &bundle.0.index.footer;
    let bytes = fs::read(&packed.path).unwrap();
    let after = &bytes[(footer.offset + footer.length) as usize..bytes.len() - footer::LEN];
    let forged = Footer {
        length: frames.len() as u64,
        frames: FrameHash::of(&frames),
        size: footer.size + (2 << 20),
        ..footer.clone()
    };
    let before = &bytes[..footer.offset as usize];
    fs::write(
        &packed.path,
        [before, &frames, after, &forged.to_bytes()].concat(),
    )
    .unwrap();
    packed.assert_refused("landfall-contents.json");
}
