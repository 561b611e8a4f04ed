//! Bundles whose contents index or frame table was replaced.

use super::sample::{Rows, packed};
use crate::format::contents::ContentsIndex;
use crate::format::entry::TarEntry;
use crate::format::frame::FrameHash;
use std::fs;

#[test]
fn a_forged_index_is_refused() {
    type Forgery = fn(&mut ContentsIndex, &mut Rows);
    let forgeries: [(&str, Forgery); 24] = [
        ("newer landfall", |c, _| c.version = 2),
        ("newer landfall", |c, _| {
            c.requires = vec!["delta".into(), "unknown".into()]
        }),
        ("contradict each other", |c, _| {
            c.requires = vec!["delta".into()]
        }),
        ("newer landfall", |c, _| c.locks.push(c.locks[0].clone())),
        ("every bundle has", |c, _| {
            c.locks[0].name = "../../etc/passwd".into()
        }),
        ("every bundle has", |c, _| {
            c.entries[1].name = "landfall-other".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "blobs/sha256/../../../etc/passwd".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "/etc/passwd".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "landfall-contents.json".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "landfall-../x".into()
        }),
        ("must begin at", |c, _| c.entries[4].offset += 1),
        ("must begin at", |c, _| c.entries[4].offset = u64::MAX),
        ("must begin at", |c, _| c.entries[4].frame += 1),
        ("must begin at", |c, _| drop(c.entries.remove(4))),
        ("impossible length", |c, _| c.entries[4].size = u64::MAX),
        ("impossible length", |c, _| c.entries[3].length = u64::MAX),
        ("impossible length", |c, _| {
            c.entries.last_mut().unwrap().length += 1 << 30
        }),
        ("frame table is not after the last entry", |c, _| {
            c.frames.offset += 1
        }),
        ("frame table is not after the last entry", |c, _| {
            c.frames.size = u64::MAX
        }),
        ("hashes of the frame table", |c, _| {
            c.frames.hashes.truncate(1)
        }),
        ("do not have the hash", |c, _| {
            c.frames.hashes[1] = FrameHash::of(b"x")
        }),
        ("an impossible offset or length", |c, rows| {
            rows[c.entries[4].frame as usize].0 += 1
        }),
        ("an impossible offset or length", |c, rows| {
            rows[c.entries.last().unwrap().frame as usize + 1].0 -= 1
        }),
        ("do not have the hash", |c, rows| {
            rows[c.entries[4].frame as usize].1 = FrameHash::of(b"x")
        }),
    ];
    for (why, forge) in forgeries {
        let packed = packed();
        packed.reseal(forge);
        let problems = packed.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
}

#[test]
fn a_duplicate_entry_is_refused() {
    let packed = packed();
    let (mut contents, mut rows) = packed.opened();
    let last: TarEntry = contents.entries.last().unwrap().clone();
    let end = last.end();
    let bytes = fs::read(&packed.path).unwrap();
    let copy = &bytes[last.offset as usize..end as usize];
    fs::write(&packed.path, [&bytes[..end as usize], copy].concat()).unwrap();
    let again = rows[last.frame as usize..].to_vec();
    contents.entries.push(TarEntry {
        offset: end,
        frame: rows.len() as u64,
        ..last
    });
    rows.extend(
        again
            .iter()
            .map(|(at, hash)| (at + copy.len() as u64, *hash)),
    );
    packed.seal(contents, &rows, end + copy.len() as u64, false, &[]);
    assert!(packed.problems().contains("twice"), "{}", packed.problems());
}
