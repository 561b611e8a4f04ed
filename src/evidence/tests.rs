//! Tests of whole logs: manipulations, killed writers, and files that are not logs.

use super::{EvidenceLog, EvidenceSummary, format_line, read_log, verify_log};
use landfall_model::{Digest, Exit, Failure, Limits};
use proptest::prelude::*;
use serde_json::json;
use std::path::{Path, PathBuf};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    (folder, path)
}

fn append(path: &Path, number: usize) -> Digest {
    let payload = json!({"predicate": {"command": "push", "number": number}});
    let mut log = EvidenceLog::open(path).unwrap();
    log.append(&payload).unwrap()
}

/// A log of some records: its bytes and the hash of each record.
fn log_of(records: usize) -> (Vec<u8>, Vec<Digest>) {
    let (_folder, path) = folder();
    let hashes = (0..records).map(|number| append(&path, number)).collect();
    (std::fs::read(&path).unwrap(), hashes)
}

fn read(bytes: &[u8], anchor: Option<&Digest>) -> Result<EvidenceSummary, String> {
    read_log(bytes, anchor, |_| {}).unwrap()
}

fn form(line: u64) -> String {
    format!("line {line} is not a complete record, and no record confirms that it was cut off")
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

#[test]
fn records_form_a_chain_that_ends_with_the_head() {
    let (bytes, hashes) = log_of(3);
    let summary = read(&bytes, Some(&hashes[1])).unwrap();
    assert_eq!((summary.records, summary.anchor), (3, Some(2)));
    assert_eq!(summary.head.as_ref(), Some(&hashes[2]));
    assert_eq!(summary.incomplete_line, None);
    assert_eq!(read(b"", None).unwrap().records, 0);
    // other tools can compute the hash of a record from its line up to the last member
    let line = String::from_utf8(lines(&bytes)[0].clone()).unwrap();
    let (hashed, rest) = line.split_once(",\"hash\":").unwrap();
    assert_eq!(
        rest,
        format!("\"{}\"}}\n", Digest::sha256(hashed.as_bytes()))
    );
}

#[test]
fn every_manipulation_is_found_with_its_line() {
    let (bytes, hashes) = log_of(5);
    let all = lines(&bytes);
    let without = |numbers: &[usize]| -> Vec<u8> {
        let kept = all.iter().enumerate();
        kept.filter(|(at, _)| !numbers.contains(at))
            .flat_map(|(_, line)| line.clone())
            .collect()
    };
    let edited = |at: usize, edit: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let mut all = all.clone();
        all[at] = edit(std::mem::take(&mut all[at]));
        all.concat()
    };
    let replaced = |line: Vec<u8>| {
        String::from_utf8(line)
            .unwrap()
            .replace("push", "pull")
            .into_bytes()
    };
    let forged = |line: Vec<u8>| {
        // with a hash that belongs to the new content
        let line = replaced(line);
        let end = line.len() - "\"sha256:\"}\n,\"hash\":".len() - 64;
        let hash = Digest::sha256(&line[..end]);
        [&line[..end], format!(",\"hash\":\"{hash}\"}}\n").as_bytes()].concat()
    };
    let mut swapped = all.clone();
    swapped.swap(1, 2);
    let mut repeated = all.clone();
    repeated.insert(3, all[2].clone());
    let other = {
        let (_folder, path) = folder();
        (0..7).for_each(|number| drop(append(&path, number + 100)));
        std::fs::read(&path).unwrap()
    };
    let inserted = [&all[0][..], b"a note\n", &all[1..].concat()].concat();
    let changed =
        |line| format!("line {line} was changed: its hash does not belong to its content");
    for (what, log, fault) in [
        (
            "the first line is removed",
            without(&[0]),
            "record 1 is missing before line 1".into(),
        ),
        (
            "two lines are removed",
            without(&[1, 2]),
            "records 2 to 3 are missing before line 2".into(),
        ),
        ("a line is changed", edited(2, &replaced), changed(3)),
        ("the last line is changed", edited(4, &replaced), changed(5)),
        (
            "a line has a forged hash",
            edited(2, &forged),
            "line 4 does not continue the line before it: one of the two was replaced".into(),
        ),
        (
            "lines are swapped",
            swapped.concat(),
            "record 2 is missing before line 2".into(),
        ),
        (
            "a line is repeated",
            repeated.concat(),
            "line 4 has record 3 where record 4 must be: lines were moved or repeated".into(),
        ),
        (
            "a line is cut off",
            edited(2, &|line| [&line[..20], b"\n"].concat()),
            form(3),
        ),
        (
            "two lines are joined",
            edited(2, &|line| line[..20].to_vec()),
            changed(3),
        ),
        ("a text is inserted", inserted, form(2)),
        ("a line is empty", edited(2, &|_| b"\n".to_vec()), form(3)),
        (
            "a line ends as on Windows",
            edited(0, &|line| [&line[..line.len() - 1], b"\r\n"].concat()),
            form(1),
        ),
    ] {
        assert_eq!(read(&log, None), Err(fault), "{what}");
    }
    // faults that only a known hash reveals
    for (what, log) in [
        ("the last lines are removed", without(&[3, 4])),
        ("another log", other),
    ] {
        read(&log, None).unwrap();
        let fault = read(&log, Some(&hashes[4])).unwrap_err();
        assert!(
            fault.starts_with("none of its ") && fault.contains(&hashes[4].to_string()),
            "{what}: {fault}"
        );
    }
    let cut = edited(4, &|line| line[..20].to_vec());
    let summary = read(&cut, None).unwrap();
    assert_eq!(
        (summary.records, summary.incomplete_line),
        (4, Some(5)),
        "the same as after a kill"
    );
    assert!(read(&cut, Some(&hashes[4])).is_err());
}

#[test]
fn a_kill_after_any_byte_loses_at_most_the_record_that_was_written() {
    let (bytes, hashes) = log_of(3);
    let start = lines(&bytes)[..2].concat().len();
    let (_folder, path) = folder();
    for end in start..=bytes.len() {
        let killed = &bytes[..end];
        // a whole record counts, even without its line feed
        let kept = 2 + u64::from(end + 1 >= bytes.len());
        let summary = read(killed, Some(&hashes[1])).unwrap();
        assert_eq!(summary.records, kept, "{end}");
        assert_eq!(
            summary.incomplete_line.is_some(),
            kept == 2 && end > start,
            "{end}"
        );
        std::fs::write(&path, killed).unwrap();
        let mut log = EvidenceLog::open(&path).unwrap();
        assert_eq!(log.check_end().unwrap(), summary.incomplete_line.is_some());
        drop(log);
        append(&path, 9);
        let after = std::fs::read(&path).unwrap();
        assert!(after.starts_with(killed), "nothing is overwritten");
        let summary = read(&after, summary.head.as_ref()).unwrap();
        assert_eq!(
            (summary.records, summary.incomplete_line),
            (kept + 1, None),
            "{end}"
        );
    }
}

#[test]
fn an_incomplete_line_cannot_be_removed_or_changed_afterwards() {
    let (_folder, path) = folder();
    append(&path, 0);
    let whole = std::fs::read(&path).unwrap();
    let torn = b"{\"seq\":2,\"prev\":\"sha2";
    std::fs::write(&path, [&whole[..], torn].concat()).unwrap();
    append(&path, 1);
    let all = lines(&std::fs::read(&path).unwrap());
    read(&all.concat(), None).unwrap();
    assert_eq!(all[1], [&torn[..], b"\n"].concat());
    assert_eq!(read(&[&all[0][..], &all[2]].concat(), None), Err(form(2)));
    let other = [&all[0][..], b"{\"seq\":2,\"prev\":\"sha3\n", &all[2]].concat();
    assert_eq!(read(&other, None), Err(form(2)));
}

fn is_bad_end(failure: &Failure) -> bool {
    failure.exit == Exit::Refused && failure.message.contains(" is damaged: its last line ")
}

#[test]
fn files_that_are_not_intact_logs_are_not_appended_to() {
    let (folder, path) = folder();
    let (log, _) = log_of(2);
    let replaced = String::from_utf8(log.clone())
        .unwrap()
        .replace("push", "pull");
    for other in [
        "version: 1\nimages: []\n",
        "{\"a\": 1}\n",
        "\u{0}",
        &replaced,
        &format!("{}a note\n", String::from_utf8(log).unwrap()),
    ] {
        std::fs::write(&path, other).unwrap();
        let mut log = EvidenceLog::open(&path).unwrap();
        for error in [log.check_end().err(), log.append(&json!({})).err()] {
            assert!(error.as_ref().is_some_and(is_bad_end), "{other}: {error:?}");
        }
        drop(log);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }
    assert!(EvidenceLog::open(folder.path()).is_err());
    assert!(EvidenceLog::open(&folder.path().join("none/log")).is_err());
    assert!(verify_log(Path::new("/dev/zero"), None, |_| {}).is_err());
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(EvidenceLog::open(&pipe).is_err() && verify_log(&pipe, None, |_| {}).is_err());
}

#[test]
fn lines_that_are_too_long_are_refused() {
    let long = vec![b'{'; Limits::DEFAULT.log_record_bytes + 5];
    assert_eq!(read(&long, None), Err(form(1)));
    let torn = b"{\"seq\":\n".repeat(Limits::DEFAULT.log_record_bytes / 8 + 1);
    assert_eq!(read(&torn, None), Err(form(1)));
    let (_folder, path) = folder();
    let mut log = EvidenceLog::open(&path).unwrap();
    let large = "x".repeat(Limits::DEFAULT.log_record_bytes);
    assert!(log.append(&json!({"large": large})).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

/// The writer continues exactly the logs that a reader accepts afterwards.
#[test]
fn a_log_whose_incomplete_lines_are_too_long_is_not_continued() {
    let limit = Limits::DEFAULT.log_record_bytes;
    let (folder, _) = folder();
    let torn = |bytes: usize| {
        let mut line = b"{\"seq\":2,".to_vec();
        line.resize(bytes, b'x');
        line
    };
    for (name, lines, is_long) in [
        // the last line gets a line feed with the next record
        (
            "fits",
            vec![torn(limit / 2), torn(limit - limit / 2 - 2)],
            false,
        ),
        (
            "one-more",
            vec![torn(limit / 2), torn(limit - limit / 2 - 1)],
            true,
        ),
        ("two", vec![torn(limit * 3 / 5), torn(limit * 3 / 5)], true),
        (
            "three",
            vec![
                torn(limit * 2 / 5),
                torn(limit * 2 / 5),
                torn(limit * 2 / 5),
            ],
            true,
        ),
    ] {
        for records in [0, 1] {
            let path = folder.path().join(format!("{name}-{records}"));
            (0..records).for_each(|number| drop(append(&path, number)));
            let before = std::fs::read(&path).unwrap_or_default();
            let before = [before, lines.join(&b'\n')].concat();
            std::fs::write(&path, &before).unwrap();
            let mut log = EvidenceLog::open(&path).unwrap();
            let results = [log.check_end().map(drop), log.append(&json!({})).map(drop)];
            drop(log);
            let after = std::fs::read(&path).unwrap();
            if is_long {
                for result in results {
                    assert!(result.as_ref().is_err_and(is_bad_end), "{name}: {result:?}");
                }
                assert_eq!(after.len(), before.len(), "{name}");
            } else {
                results.into_iter().for_each(|result| result.unwrap());
                assert_eq!(
                    read(&after, None).unwrap().records,
                    records as u64 + 1,
                    "{name}"
                );
            }
        }
    }
}

/// Digests are read in upper case elsewhere.
#[test]
fn the_case_of_a_digit_of_a_hash_is_a_changed_byte() {
    let (bytes, _) = log_of(1);
    let text = String::from_utf8(bytes).unwrap();
    let hash = text.rfind("sha256:").unwrap();
    let upper = [&text[..hash], &text[hash..].to_ascii_uppercase()].concat();
    let digits = text[hash..].replace("sha256", "SHA256");
    let digits = [&text[..hash], &digits].concat();
    for changed in [upper, digits] {
        let found = read(changed.as_bytes(), None);
        let is_noticed = found.map_or(true, |summary| summary.incomplete_line.is_some());
        assert!(is_noticed, "{changed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Commands end, or are killed while they write: no record that was complete is lost, and the
    /// log stays consistent.
    #[test]
    fn a_log_of_any_history_is_consistent(
        steps in proptest::collection::vec(proptest::option::of(0_usize..400), 1..12)
    ) {
        let (_folder, path) = folder();
        let mut hashes = Vec::new();
        for (number, killed_after) in steps.iter().enumerate() {
            let before = std::fs::read(&path).unwrap_or_default();
            let hash = append(&path, number);
            let after = std::fs::read(&path).unwrap();
            prop_assert!(after.starts_with(&before));
            let end = killed_after.map_or(after.len(), |cut| after.len().min(before.len() + cut));
            std::fs::write(&path, &after[..end]).unwrap();
            if end + 1 >= after.len() {
                hashes.push(hash);
            }
        }
        let mut found = Vec::new();
        let summary = verify_log(&path, None, |record| found.push(record.hash)).unwrap();
        prop_assert_eq!(&found, &hashes);
        prop_assert_eq!(summary.records, hashes.len() as u64);
    }

    /// If a byte is changed, or bytes are cut off at the end, a check against the known head fails.
    /// Only the last line feed may be missing.
    #[test]
    fn any_changed_byte_is_found(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let (bytes, hashes) = log_of(4);
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        changed[at] = to;
        if changed == bytes {
            return Ok(());
        }
        let head = hashes.last();
        // without the last line feed, the last record is still complete
        let is_last_feed = at + 1 == bytes.len();
        match read(&changed, None) {
            Err(_) => {}
            Ok(summary) => prop_assert!(summary.incomplete_line.is_some(), "{}", at),
        }
        prop_assert!(read(&changed, head).is_err());
        let cut = read(&bytes[..at], head);
        prop_assert_eq!(cut.is_ok(), is_last_feed);
    }

    /// Any bytes are read without a panic, and random bytes contain no valid record.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let summary = read(&bytes, None);
        if let Ok(summary) = summary {
            prop_assert_eq!(summary.records, 0);
        }
    }
}

#[test]
fn a_record_with_another_order_of_members_is_read() {
    let (line, hash) = format_line(1, None, None, &json!({"z": 1, "a": [true, null]})).unwrap();
    let summary = read(&line, Some(&hash)).unwrap();
    assert_eq!(summary.records, 1);
    let reordered = br#"{"payload":{},"seq":1,"prev":null"#;
    let line = format!(
        "{},\"hash\":\"{}\"}}",
        String::from_utf8_lossy(reordered),
        Digest::sha256(reordered)
    );
    assert_eq!(read(line.as_bytes(), None).unwrap().records, 1);
}
