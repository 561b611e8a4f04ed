//! `landfall::rewrite` on trees of files: our corpus of reference shapes with the expected bytes,
//! and any folder named by `LANDFALL_REWRITE_CORPUS`.

use crate::support::library::{
    DestinationMap, Digest, ImageRef, InputContent, InputFile, Lock, ReadAs, ReferenceIndex,
    ReferenceMeaning, RewriteOptions, RewriteResult, Site, TextSyntax, destination_map, inputs,
    read, rewrite, scan,
};
use crate::support::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files of the corpus that a reverse rewrite does not restore, because they contain short names,
/// aliases, or a registry to which several images are mapped.
const NOT_CANONICAL: [&str; 2] = ["short-names.yaml", "helm/values.yaml"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rewrite")
}

struct Corpus {
    there: ReferenceIndex,
    back: ReferenceIndex,
}

impl Corpus {
    fn own() -> Corpus {
        let text = |name: &str| std::fs::read_to_string(data().join(name)).unwrap();
        let site = Site::parse(Path::new("site.yaml"), &text("site.yaml")).unwrap();
        let lock = Lock::parse("landfall.lock", &text("landfall.lock")).unwrap();
        Corpus::new(
            &lock,
            &destination_map("172.20.0.2:5000".parse().unwrap(), Some(&site)),
            &site.files.unwrap(),
        )
    }

    fn new(lock: &Lock, mapping: &DestinationMap, files: &str) -> Corpus {
        Corpus {
            there: ReferenceIndex::new(lock, mapping).with_files(files),
            back: ReferenceIndex::reverse(lock, mapping).with_files(files),
        }
    }
}

/// Rewrites `text`, and checks the properties that hold for every text.
fn checked(corpus: &Corpus, name: &str, kind: TextSyntax, text: &str) -> RewriteResult {
    let there = |text: &str| rewrite(text, kind, &corpus.there, RewriteOptions::default());
    let first = there(text);
    let mut old = 0;
    let mut new = 0;
    for edit in first.scan.edits() {
        let kept = edit.span.start - old;
        assert_eq!(
            text[old..old + kept],
            first.text[new..new + kept],
            "{name}: bytes outside of the edits changed"
        );
        assert_eq!(
            first.text[new + kept..new + kept + edit.bytes.len()],
            edit.bytes,
            "{name}"
        );
        (old, new) = (edit.span.end, new + kept + edit.bytes.len());
    }
    assert_eq!(
        text[old..],
        first.text[new..],
        "{name}: bytes outside of the edits changed"
    );
    assert_eq!(
        there(&first.text).text,
        first.text,
        "{name}: a second run changes something"
    );
    let back = rewrite(&first.text, kind, &corpus.back, RewriteOptions::default()).text;
    assert_eq!(
        there(&back).text,
        first.text,
        "{name}: a rewrite after a reverse rewrite differs"
    );
    first
}

#[test]
fn every_reference_shape_gives_its_expected_result() {
    let corpus = Corpus::own();
    let mut shapes = 0;
    for input in inputs(&[data().join("in")], None).unwrap() {
        let name = input.relative.display().to_string();
        let text = std::fs::read_to_string(&input.path).unwrap();
        let kind = TextSyntax::of(&input.path);
        let result = checked(&corpus, &name, kind, &text);
        let beside = |folder: &str| data().join(folder).join(&input.relative);
        let expected =
            std::fs::read_to_string(beside("out")).unwrap_or_else(|_| panic!("no out/{name}"));
        assert_eq!(result.text, expected, "{name}");
        let left: Vec<String> = result
            .scan
            .found
            .iter()
            .filter_map(|finding| match &finding.meaning {
                ReferenceMeaning::Left(why) => Some(format!(
                    "{}:{}: {}: {why}\n",
                    finding.line, finding.column, finding.written
                )),
                _ => None,
            })
            .collect();
        let notes = PathBuf::from(format!("{}.txt", beside("left").display()));
        let noted = std::fs::read_to_string(&notes).unwrap_or_default();
        assert_eq!(left.concat(), noted, "{name}: the references that are left");
        let back = rewrite(&result.text, kind, &corpus.back, RewriteOptions::default()).text;
        if !NOT_CANONICAL.contains(&&*name) {
            assert_eq!(back, text, "{name}: the reverse rewrite");
        }
        shapes += 1;
    }
    assert!(shapes >= 25, "{shapes}");
}

/// A lock of about two thirds of the images in `texts` and of the files that `texts` download.
fn lock_of(texts: &[(String, TextSyntax, String)]) -> Lock {
    let nothing = Lock::parse("l", "version: 1\n").unwrap();
    let nothing = ReferenceIndex::new(
        &nothing,
        &DestinationMap::to("r.invalid:5000".parse().unwrap()),
    );
    let mut images = BTreeSet::new();
    let mut files = BTreeSet::new();
    for (_, kind, text) in texts {
        for finding in scan(text, *kind, &nothing).found {
            if let Ok(mut name) = finding.written.parse::<ImageRef>() {
                if !name.is_pinned() {
                    name.tag = Some("latest".into());
                }
                if let (Some(_), Some(_)) = (&name.tag, &name.digest) {
                    name.tag = None;
                }
                images.insert(name.to_string());
            } else if finding.written.starts_with("https://")
                && !finding.written.contains(['$', '{', '%', '?'])
            {
                files.insert(finding.written);
            }
        }
    }
    let is_locked =
        |name: &str| !Digest::sha256(name.as_bytes()).hex().as_bytes()[0].is_multiple_of(3);
    let mut text = String::from("version: 1\nimages:\n");
    for name in images.iter().filter(|name| is_locked(name)) {
        let digest = name.split_once('@').map_or_else(
            || Digest::sha256(name.as_bytes()).to_string(),
            |(_, d)| d.into(),
        );
        text += &format!("- {{name: \"{name}\", digest: \"{digest}\", mediaType: m, size: 1}}\n");
    }
    text += "files:\n";
    for name in files.iter().filter(|name| is_locked(name)) {
        text += &format!(
            "- {{name: {name:?}, digest: \"{}\", size: 1}}\n",
            Digest::sha256(name.as_bytes())
        );
    }
    Lock::parse("corpus", &text).unwrap()
}

/// The value tree of every document, by an independent parser; `None` if it cannot parse the text.
fn values(text: &str) -> Option<Vec<serde_yaml::Value>> {
    use serde::Deserialize;
    serde_yaml::Deserializer::from_str(text)
        .map(|document| serde_yaml::Value::deserialize(document).ok())
        .collect()
}

/// The scalars of a tree in order, with its structure.
fn leaves(value: &serde_yaml::Value, found: &mut Vec<String>) {
    match value {
        serde_yaml::Value::Sequence(items) => {
            found.push(format!("[{}", items.len()));
            items.iter().for_each(|item| leaves(item, found));
        }
        serde_yaml::Value::Mapping(map) => {
            found.push(format!("{{{}", map.len()));
            map.iter().for_each(|(key, value)| {
                leaves(key, found);
                leaves(value, found);
            });
        }
        serde_yaml::Value::String(text) => found.push(text.clone()),
        serde_yaml::Value::Tagged(tagged) => {
            found.push(tagged.tag.to_string());
            leaves(&tagged.value, found);
        }
        other => found.push(format!("{other:?}")),
    }
}

/// Whether `new` is `old` with some of `pairs` replaced.
fn is_mapped(old: &str, new: &str, pairs: &BTreeSet<(String, String)>) -> bool {
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    if same == old.len() && same == new.len() {
        return true;
    }
    // the two texts of a pair may begin alike
    (0..=same).rev().filter(|at| old.is_char_boundary(*at) && new.is_char_boundary(*at)).any(|at| {
        pairs.iter().any(|(from, to)| {
            let rest = old[at..].strip_prefix(from.as_str());
            let put = new[at..].strip_prefix(to.as_str());
            matches!((rest, put), (Some(rest), Some(put)) if (!from.is_empty() || !to.is_empty()) && is_mapped(rest, put, pairs))
        })
    })
}

#[test]
fn real_files_change_only_in_their_references() {
    let Some(folder) = std::env::var_os("LANDFALL_REWRITE_CORPUS") else {
        skip(
            "rewrite::corpus::real_files_change_only_in_their_references",
            "LANDFALL_REWRITE_CORPUS names no folder",
        );
        return;
    };
    let mut texts = Vec::new();
    for input in inputs(&[PathBuf::from(folder)], None).unwrap() {
        let InputFile { path, relative, .. } = &input;
        if let Ok(InputContent::Text(text, _)) = read(&input) {
            texts.push((relative.display().to_string(), TextSyntax::of(path), text));
        }
    }
    assert!(!texts.is_empty(), "LANDFALL_REWRITE_CORPUS has no texts");
    let lock = lock_of(&texts);
    let mapping = DestinationMap::to("172.20.0.2:5000/far".parse().unwrap());
    let corpus = Corpus::new(&lock, &mapping, "http://172.20.0.2:8080");
    let mut bytes = 0;
    let mut changes = 0;
    let mut changed = 0;
    let mut trees = 0;
    let mut spent = Duration::ZERO;
    let (mut read_as, mut left) = (
        BTreeMap::<String, usize>::new(),
        BTreeMap::<String, (usize, String)>::new(),
    );
    let mut slowest = (Duration::ZERO, String::new());
    for (name, kind, text) in &texts {
        let start = Instant::now();
        let result = rewrite(text, *kind, &corpus.there, RewriteOptions::default());
        let took = start.elapsed();
        spent += took;
        if took > slowest.0 {
            slowest = (took, name.clone());
        }
        assert_eq!(checked(&corpus, name, *kind, text), result, "{name}");
        bytes += text.len();
        *read_as
            .entry(format!("{:?}", result.scan.read_as))
            .or_default() += 1;
        let edits = result
            .scan
            .found
            .iter()
            .filter(|finding| finding.is_change())
            .count();
        (changes, changed) = (changes + edits, changed + usize::from(edits > 0));
        for finding in &result.scan.found {
            if let ReferenceMeaning::Left(why) = &finding.meaning {
                let kind = why.split(['(', ':', ';']).next().unwrap_or_default();
                let kind = kind
                    .split(" only as ")
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned();
                let place = format!(
                    "{name}:{}:{}: {}",
                    finding.line, finding.column, finding.written
                );
                left.entry(kind).or_insert((0, place)).0 += 1;
            }
        }
        if result.scan.read_as == ReadAs::Yaml
            && edits > 0
            && let (Some(before), Some(after)) = (values(text), values(&result.text))
        {
            let mut old = Vec::new();
            let mut new = Vec::new();
            before.iter().for_each(|value| leaves(value, &mut old));
            after.iter().for_each(|value| leaves(value, &mut new));
            assert_eq!(old.len(), new.len(), "{name}");
            let unquoted = |text: &str| text.trim_matches(['"', '\'']).replace("\\/", "/");
            let edits = result.scan.edits();
            let pairs = edits
                .iter()
                .map(|s| (unquoted(&text[s.span.clone()]), unquoted(&s.bytes)))
                .collect();
            for (old, new) in old.iter().zip(&new) {
                assert!(is_mapped(old, new, &pairs), "{name}: {old} -> {new}");
            }
            trees += 1;
        }
    }
    let speed = bytes as f64 / spent.as_secs_f64() / 1e6;
    println!(
        "{} files, {bytes} bytes, {:.2} s ({speed:.0} MB/s here); read as {read_as:?}; {changes} changes in {changed} files, \
         {} images and {} files locked; value trees compared in {trees}; slowest {:?}",
        texts.len(),
        spent.as_secs_f64(),
        lock.images.len(),
        lock.files.len(),
        slowest
    );
    for (why, (count, example)) in left {
        println!("left {count}: {why}: {example}");
    }
}
