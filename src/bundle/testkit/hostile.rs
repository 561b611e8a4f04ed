//! Bundles of somebody who lies about more than the index: tar headers, locator, seek table, sizes. Each is
//! refused, and no content of it is handed out.

use super::sample::{Packed, index_at, packed};
use crate::bundle::Bundle;
use crate::bundle::format::contents::Contents;
use crate::bundle::format::form::Form;
use crate::bundle::format::hash::{Frame, Hash};
use crate::bundle::format::locator::Locator;
use crate::bundle::format::{frame, header};
use crate::content::BlobRead;
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use tar::{EntryType, Header};

impl Packed {
    fn write_at(&self, bytes: &[u8], at: u64) {
        fs::File::options().write(true).open(&self.path).unwrap().write_all_at(bytes, at).unwrap();
    }

    /// Puts a locator where the good one was.
    fn relocate(&self, lie: impl FnOnce(&mut Locator)) {
        let bundle = Bundle::open(&self.path).unwrap();
        let mut locator = bundle.0.index.locator.clone();
        lie(&mut locator);
        self.write_at(&locator.frames().concat(), bundle.contents().locator);
    }

    fn assert_refused(&self, why: &str) {
        let problems = self.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
}

/// Every edge between two frames, of the index and of the tail too.
fn edges(bundle: &Bundle, bytes: &[u8]) -> Vec<usize> {
    let (mut edges, mut at) = (vec![0], 0);
    while let Some((frame, _)) = frame::split(&bytes[at..]) {
        at += frame.len();
        edges.push(at);
        if at == bytes.len() {
            break;
        }
    }
    let listed: usize = bundle.contents().entries.iter().map(|entry| entry.frames.len()).sum();
    assert!(edges.len() > listed + 6 && at == bytes.len(), "{} of {listed}", edges.len());
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

/// A tar header with this name and kind, as other tools would unpack it.
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
    let names = ["/etc/passwd", "../../etc/passwd", "blobs/../../x", "./oci-layout", "", "C:\\x", "a\nb"];
    let lies = kinds.map(|kind| (None, kind)).into_iter();
    let lies = lies.chain(names.map(|name| (Some(name), EntryType::Regular)));
    for (name, kind) in lies.chain([(None, EntryType::Regular)]) {
        for place in [0, 1, 3] {
            let packed = packed();
            packed.reseal(|contents| {
                let entry = &mut contents.entries[place];
                let name = name.unwrap_or(&entry.name);
                let lie = frame::stored(&header_of(name, entry.size, kind));
                entry.frames[0] = Frame(lie.len() as u32, Hash::of(&lie));
                packed.write_at(&lie, entry.offset);
            });
            packed.assert_refused("tar header");
        }
    }
}

#[test]
fn a_locator_that_lies_is_refused() {
    type Lie = fn(&mut Locator);
    let lies: [Lie; 13] = [
        |l| l.offset = 0,
        |l| l.offset -= 1,
        |l| l.offset += 1,
        |l| l.offset = u64::MAX,
        |l| l.length = 0,
        |l| l.length -= 1,
        |l| l.length = u64::MAX,
        |l| l.size = 0,
        |l| l.size -= 1,
        |l| l.size += 1,
        |l| l.size = u64::MAX,
        |l| l.frames = Hash::of(b"others"),
        |l| l.sha256 = crate::model::Digest::sha256(b"others"),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let packed = packed();
        packed.relocate(lie);
        assert!(Bundle::open(&packed.path).is_err(), "lie {number}");
    }
    // an index elsewhere that fits the locator: behind the end of the bundle, with a gap before it
    let packed = packed();
    let (bundle, bytes) = (Bundle::open(&packed.path).unwrap(), fs::read(&packed.path).unwrap());
    let tail = &bytes[index_at(&bundle) as usize..];
    fs::write(&packed.path, [&bytes[..], tail].concat()).unwrap();
    let mut locator = bundle.0.index.locator.clone();
    locator.offset += tail.len() as u64;
    packed.write_at(&locator.frames().concat(), bundle.contents().locator);
    packed.assert_refused("right after the last entry");
}

#[test]
fn readers_do_not_trust_the_seek_table() {
    let packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let length = bundle.bytes();
    // the first entry's lengths, the number of frames, the descriptor, the magic number
    let table = fs::read(&packed.path).unwrap();
    let count = u32::from_le_bytes(table[table.len() - 9..][..4].try_into().unwrap());
    for at in [length - 9 - u64::from(count) * 8, length - 9, length - 5, length - 4] {
        let good = table[at as usize];
        packed.write_at(&[good ^ 0x55], at);
        packed.assert_refused("seek table");
        let bundle = Bundle::open(&packed.path).unwrap();
        for entry in bundle.contents().entries.iter().filter(|entry| entry.is_blob()) {
            let mut read = Vec::new();
            bundle.open(&entry.digest, 0).unwrap().read_to_end(&mut read).unwrap();
            assert!(entry.digest.matches(&read));
        }
        packed.write_at(&[good], at);
    }
    assert_eq!(packed.problems(), "");
}

#[test]
fn sizes_that_cannot_be_allocate_nothing() {
    // a header before the locator
    for size in [1 << 41, u64::MAX] {
        let packed = packed();
        packed.write_at(&frame::stored(&header::encode("oci-layout", size)), 0);
        assert_ne!(packed.problems(), "", "{size}");
    }
    // an index that says it is as large as may be read, or as the file is
    for size in [1 << 62, 200 << 20, 5 << 20] {
        let packed = packed();
        packed.relocate(|locator| locator.size = size);
        assert_ne!(packed.problems(), "", "{size}");
    }
}

/// Puts `bomb` in place of the last entry's content, which is compressed, with an index that fits.
fn plant(packed: &Packed, bomb: &[u8]) {
    let bundle = Bundle::open(&packed.path).unwrap();
    let mut contents: Contents = bundle.contents().clone();
    let last = contents.entries.last_mut().unwrap();
    assert_eq!((last.form, last.frames.len()), (Form::Compressed, 3));
    let at = last.offset + u64::from(last.frames[0].0);
    let padding = frame::stored(&vec![0; header::padding(last.size)]);
    last.frames[1] = Frame(bomb.len() as u32, Hash::of(bomb));
    packed.write_at(&[bomb, &padding].concat(), at);
    let end = at + (bomb.len() + padding.len()) as u64;
    packed.seal(&contents, contents.locator, end);
}

#[test]
fn bombs_are_not_blown_up() {
    let size = Bundle::open(&packed().path).unwrap().contents().entries.last().unwrap().size as u32;
    let head = |declared: u32| [&[0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50][..], &declared.to_le_bytes()].concat();
    // an RLE block of 128 KiB is four bytes (RFC 8878, 3.1.1.2.2): a whole GiB in 32 KiB
    let rle = |last: bool| ((128u32 << 10) << 3 | 1 << 1 | u32::from(last)).to_le_bytes()[..3].to_vec();
    let block = [rle(false), vec![0]].concat();
    let bomb =
        |declared| [head(declared), block.repeat(8191), [rle(true), vec![0]].concat(), vec![0; 4]].concat();
    for (what, frame) in [
        ("says the right size", bomb(size)),
        ("says a GiB", bomb(1 << 30)),
        (
            "two frames",
            [frame::encode(Form::Compressed, 3, &vec![0; size as usize]).unwrap(), bomb(size)].concat(),
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
        assert!(bundle.open(&digest, 0).unwrap().read_to_end(&mut read).is_err(), "{what}");
        assert!(read.len() <= size as usize, "{what}: {} bytes came", read.len());
    }
    // an index that is one
    let packed = packed();
    let bundle = Bundle::open(&packed.path).unwrap();
    let frames = bomb(1 << 20);
    packed.relocate(|locator| {
        locator.length = frames.len() as u64;
        locator.frames = Hash::of(&frames);
        locator.size = 2 << 20;
    });
    packed.write_at(&frames, bundle.0.index.locator.offset);
    packed.assert_refused("landfall-contents.json");
}
