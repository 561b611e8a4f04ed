//! The simple reader returns the result of the general parser, or nothing; and a text that is cut
//! at its markers has the same documents as the whole text. `LANDFALL_REWRITE_CORPUS` names a
//! folder of further files, and `MUTATIONS` sets the number of texts that are made from each file.

use super::*;
use crate::{InputContent, inputs, read};
use landfall_model::document::{NotYaml, YamlDocuments};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// The number of bytes of all texts, and of those that the simple reader read.
#[derive(Default)]
struct Counts {
    given: usize,
    simple: usize,
}

/// Checks `text`, part by part and as a whole.
fn check(text: &str, counts: &mut Counts) {
    for part in stream_parts(text) {
        counts.given += part.len();
        let Some(document) = simple::read(text, &part) else {
            continue;
        };
        counts.simple += part.len();
        let read: Result<Vec<YamlDocument<'_>>, NotYaml> =
            YamlDocuments::new(text, part.clone()).collect();
        let simple: Vec<YamlDocument<'_>> = document.into_iter().collect();
        let refused = read.is_err() && is_refused_for_indentation(&text[part.clone()]);
        assert!(
            refused || read.as_ref() == Ok(&simple),
            "{:?}: {read:?}, {simple:?}",
            &text[part]
        );
    }
    if is_refused_for_indentation(text) {
        return;
    }
    let whole: Vec<_> = YamlDocuments::new(text, 0..text.len())
        .map(|one| one.map(|one| flat(&one)))
        .collect();
    let cut: Vec<_> = documents(text)
        .map(|one| one.map(|one| flat(&one)))
        .collect();
    assert_eq!(whole, cut, "{text:?}");
}

/// Formats a document without the numbers of its anchors, which differ if reading begins at another
/// document.
fn flat(document: &YamlDocument<'_>) -> String {
    fn add(node: &YamlNode<'_>, text: &mut String) {
        match node {
            YamlNode::Scalar(one) => {
                let marks = (one.anchor != 0, one.tag());
                *text += &format!("{:?} {:?} {:?} {marks:?}\n", one.span, one.style, one.value);
            }
            YamlNode::Sequence(sequence) => {
                *text += &format!("[{:?} {}\n", sequence.span, sequence.anchor != 0);
                sequence.items.iter().for_each(|item| add(item, text));
                text.push(']');
            }
            YamlNode::Mapping(mapping) => {
                *text += &format!("{{{:?} {}\n", mapping.span, mapping.anchor != 0);
                for entry in &mapping.entries {
                    add(&entry.key, text);
                    add(&entry.value, text);
                }
                text.push('}');
            }
            YamlNode::Alias(alias) => *text += &format!("*{:?}\n", alias.span),
        }
    }
    let mut text = String::new();
    if let Some(root) = &document.root {
        add(root, &mut text);
    }
    text
}

/// Texts that the simple reader reads.
const SIMPLE: &[&str] = &[
    "a: b",
    "a: b\n",
    "---\na: b\n---\nc: d\n",
    "--- # x\na:\n- b\n-  c: d\n   e: f\nf:\n    - g\n",
    "# x\n\n  # y\n",
    "- - a\n  - b\n- c\n",
    "-\n  a: b\n-\n  - c\n- # x\n d: e\n",
    "a:\nb:\n  c:\nd: # x\n",
    "a:\n  b\n  c\n\n\n  d  \ne: f # g\nh: i#j:k\n",
    "a: b\n   - c\n   [d\n",
    "a:\n   'b'\nc:\n  \"d\" # e\nf:\n  [g]\n",
    "a: it''s\nb: 'it''s'\nc: \"\\\"\\\\\\/\\n\\t\\x41\\u00e9\"\n'd e': f\n\"g\\n\": h\n",
    "a: 'b  \n  c''\n\n\n  d\n  '\ne: \"f\\n \\\n  \\ g\n  h\"\ni: 'j\n\n    k'\n",
    "- a: 'b\n    c'\n- 'd\n  e'\n-\n  \"f\n  g\" # h\n",
    "a: |\n  b\n   c\n\n  d\n\n\ne: f\n",
    "a: |-\n  b\n  # no comment\n # one\ne: f\n",
    "a: >\n  b\n  c\n\n  d\n   e\n  f\n\n   g\n\n\n  h\ni: j\n",
    "a: >+\n\n  b\n\n\nc: d\n",
    "a: |+\n  b\n\n",
    "a: |2\n   b\n  c\nd: |2- # x\n\n    e\n",
    "- |\n b\n- >-\n   c\n- d: |\n    e\n",
    "a: |\n  b",
    "a: |-\n  b\n  ",
    "a: |\n  b\n    ",
    "a: |\n  \tb\n  c\t\n",
    "a:\n  b: |\n\n    c\n\n\n  d: e\n",
    "a: [b, 'c', \"d\", [e], {f: g}, -h, i j, k:l,]\n",
    "a: {b: c, 'd':e, \"f\": [g], h: , i: {}, j: 'k', }\n",
    "{\"a\":1,\"b\":[true,null,{\"c\":\"d\"}],\"e\": f}\n",
    "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n",
    "[]",
    "[a,\nb\n]\n",
    "a: -b\nc: ?d\ne: :f\n-g: h\n?i: j\n",
    "a: 1:2\nb: http://c/d:e#f\n",
    "a b: c d\ne/f.g: h\n<<: i\n",
    "a: é — “x”\né: |\n  ü\n",
    "  a: b\n  c: d\n",
    "a:\n- b:\n  - c\n  d:\n  - e\n- f\n",
    "a: b  \t\nc: d\te\n",
    "a:\n  - b\n  # c\n# d\n  - e\nf: []\n# g",
    "a: b:c\nd: \"e\tf\"\n",
    "a: 'b\n'\n",
];

/// Texts that the simple reader leaves to the general parser, and texts that are not YAML.
const OTHER: &[&str] = &[
    "",
    "---",
    "---\n---\n",
    "--- a\n",
    "--- a: b\n",
    "---\ta: b\n",
    "a",
    "'a'",
    "|\n a\n",
    "%YAML 1.2\n---\na: b\n",
    "a: ...\nb: ---\n",
    "a: b\n...\nc: d\n",
    "a: b\n... # x\n",
    "... a: b\n",
    "[a,\n... b]\n",
    "[a,\n...\n]\n",
    "a: &x b\nc: *x\n",
    "a: !!str b\n",
    "? a\n: b\n",
    "- ? a\n",
    "a: b: c\n",
    "a: - b\n",
    "a: b\n  c: d\n",
    "a: b\n c\nd\n",
    "a: b # x\n  c\n",
    "a: b\n  # x\n  c\n",
    "a:\n    - b\n  - c\n",
    "a: b\n  - c: d\n",
    "a:\n  b: c\n d: e\n",
    "a: 'b' c\n",
    "a: 'b'#c\n",
    "a: 'b\n  c': d\n",
    "a: [b, 'c\n  d']\n",
    "'a\n b': c\n",
    "a: 'b\n...\nc'\n",
    "a:\n  b: 'c\n d'\n",
    "a: \"b\\\n\n  c\"\n",
    "a: \"b\n\tc\"\n",
    "a: \"\\q\"\n",
    "a: \"\\ud83d\\ude00\"\n",
    "a: \"\\ud83d\"\n",
    "a: 'b\n",
    "a: [b\n",
    "a: [b}\n",
    "a: [b c: d]\n",
    "a: [b: c]\n",
    "a: [,]\n",
    "a: [b,,c]\n",
    "a: {b}\n",
    "a: {b:c}\n",
    "{\"a\" : b}",
    "a:\n  b\n:\n",
    "a: {b:[c]}\n",
    "a: {b\n: c}\n",
    "a: {b\n  c: d}\n",
    "a: [b\n  c]\n",
    "a: [-]\n",
    "a: [- b]\n",
    "a: [?b, :c]\n",
    "a: [b # c\n]\n",
    "a: [b]: c\n",
    "[a]: b\n",
    "{a: b}: c\n",
    "a : b\n",
    "'a' : b\n",
    "a: |\n",
    "a: |\nb: c\n",
    "a: |\n    \n  b\n",
    "a: |0\n  b\n",
    "a: | b\n",
    "a: |\n\tb\n",
    "a: |3\n  b\n",
    "a:\tb\n",
    "a: b:\tc\n",
    "\ta: b\n",
    "a:\n\tb\n",
    "-\n- a\n",
    "a: b\r\nc: d\r\n",
    "\u{feff}a: b\n",
];

/// Quoted scalars that continue in the column of their key, and their values. The general parser
/// refuses them.
const AT_THE_KEY: &[(&str, &str)] = &[
    ("a: 'b\nc'\n", "b c"),
    ("a: \"b\n\nc\"\n", "b\nc"),
    ("- 'b\n- c'\n", "b - c"),
    ("x:\n  a: 'b\n  c: d'\n", "b c: d"),
    ("x:\n- a: \"b\n  # c\"\n", "b # c"),
];

/// Whether the general parser refuses `text` only for the indentation of a quoted scalar.
fn is_refused_for_indentation(text: &str) -> bool {
    let refused = granit_parser::Parser::new_from_str(text).find_map(Result::err);
    refused
        .is_some_and(|error| *error.kind() == granit_parser::ErrorKind::InvalidQuotedScalarIndent)
}

#[test]
fn a_quoted_scalar_may_continue_in_the_column_of_its_key() {
    for (text, value) in AT_THE_KEY {
        assert!(is_refused_for_indentation(text), "{text}");
        let read = simple::read(text, &(0..text.len())).flatten().expect(text);
        assert!(
            flat(&read).contains(&format!("{value:?}")),
            "{text}: {read:?}"
        );
        let other: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
        assert!(
            format!("{other:?}").contains(&format!("{value:?}")),
            "{text}: {other:?}"
        );
    }
}

#[test]
fn the_simple_reader_reads_only_simple_yaml() {
    for text in SIMPLE {
        let mut counts = Counts::default();
        check(text, &mut counts);
        assert_eq!(counts.simple, text.len(), "{text:?}");
    }
    for text in OTHER {
        let mut counts = Counts::default();
        check(text, &mut counts);
        assert_eq!(counts.simple, 0, "{text:?}");
    }
    for text in [
        "a: b\u{7}",
        "a: b\u{85}",
        "a: \u{fffe}",
        "a: b\0c",
        "a\rb: c",
        "- `a`",
        "a: @b",
    ] {
        check(text, &mut Counts::default());
    }
    let deep = format!("{}a{}", "[".repeat(300), "]".repeat(300));
    check(&deep, &mut Counts::default());
    for len in 990..1040 {
        check(&format!("{}: x\n", "k".repeat(len)), &mut Counts::default());
        check(
            &format!("{{\"{}\": x}}\n", "é".repeat(len)),
            &mut Counts::default(),
        );
        check(
            &format!("- {}\n  : x\n", "k".repeat(len)),
            &mut Counts::default(),
        );
    }
}

/// The texts that landfall reads in `tests/data`, `examples` and `manifests`, and in the folder
/// that `LANDFALL_REWRITE_CORPUS` names.
fn files() -> Vec<String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut folders = ["tests/data", "examples", "manifests"]
        .map(|folder| root.join(folder))
        .to_vec();
    if let Some(corpus) = std::env::var_os("LANDFALL_REWRITE_CORPUS") {
        let corpus = [PathBuf::from(corpus)];
        assert!(
            !inputs(&corpus, None).unwrap().is_empty(),
            "{corpus:?} has no texts"
        );
        folders.extend(corpus);
    }
    let contents = inputs(&folders, None)
        .unwrap()
        .into_iter()
        .filter_map(|input| read(&input).ok());
    let texts = contents.filter_map(|content| match content {
        InputContent::Text(text, _) => Some(text),
        _ => None,
    });
    texts.collect()
}

#[test]
fn both_readers_agree_on_files() {
    let mut counts = Counts::default();
    files().iter().for_each(|text| check(text, &mut counts));
    println!("{} of {} bytes were simple", counts.simple, counts.given);
    assert!(
        counts.simple * 3 > counts.given,
        "{} of {}",
        counts.simple,
        counts.given
    );
}

/// The pieces of text that mutations insert.
const PIECES: [&str; 44] = [
    "\n", "\n\n", "\n  ", "\n    ", " ", "  ", "\t", "\r\n", "\r", ":", ": ", ":\n", "- ", "-\n",
    "-", "#", " #", "# ", "'", "''", "\"", "\\", "\\\n", "\\n", "|\n", "|-\n  ", ">\n  ", "|2+\n",
    "{", "}", "[", "]", ",", "---\n", "\n---\n", "\n...\n", "--- ", "&a ", "*a", "!t ", "? ", "%",
    "\u{feff}", "é",
];

/// Random numbers by xorshift64*. A seed gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    /// A random offset in `text` between two characters.
    fn offset(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        (0..=at)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap()
    }

    /// Up to 20 consecutive lines of `text` without the indentation of the first one, with a few
    /// random changes.
    fn mutated(&mut self, text: &str) -> String {
        let from = self.offset(text);
        let from = text[..from].rfind('\n').map_or(0, |at| at + 1);
        let indent = text[from..].len() - text[from..].trim_start_matches(' ').len();
        let lines = 1 + self.below(20);
        let lines = text[from..].split_inclusive('\n').take(lines);
        let below = lines.map_while(|line| match line.get(..indent) {
            Some(spaces) if spaces.trim_start_matches(' ').is_empty() => Some(&line[indent..]),
            _ => (line.trim_start().is_empty()).then_some("\n"),
        });
        let mut new: String = below.collect();
        for _ in 0..=self.below(4) {
            let a = self.offset(&new);
            let b = self.offset(&new);
            match self.below(4) {
                0 if a.abs_diff(b) < 30 => new.replace_range(a.min(b)..a.max(b), ""),
                1 => {
                    new.replace_range(a..a + new[a..].chars().next().map_or(0, char::len_utf8), "")
                }
                _ => new.insert_str(a, PIECES[self.below(PIECES.len())]),
            }
        }
        new
    }
}

#[test]
fn both_readers_agree_on_broken_files() {
    let rounds = std::env::var("MUTATIONS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(150);
    let mut random = Random(0x5eed);
    let mut counts = Counts::default();
    let texts: Vec<String> = files()
        .into_iter()
        .chain([SIMPLE, OTHER].concat().into_iter().map(str::to_owned))
        .collect();
    for text in &texts {
        for _ in 0..rounds {
            check(&random.mutated(text), &mut counts);
        }
    }
    println!(
        "{} texts; {} of {} bytes were simple",
        texts.len() * rounds,
        counts.simple,
        counts.given
    );
    assert!(
        counts.simple * 20 > counts.given,
        "{} of {}",
        counts.simple,
        counts.given
    );
}

/// Lines of tokens at any indentation, which are rarely valid YAML.
fn tokens() -> impl Strategy<Value = String> {
    let token = proptest::sample::select(vec![
        "a", "b c", ": ", ":", "- ", "-", "'d'", "\"e\"", "\"\\n\"", "'", "\"", "[", "]", "{", "}",
        ", ", "|", ">-", "|1", "# f", " # g", "#", " ", "\t", "---", "...", "?", "&h ", "*h",
        "!i ", "k: ", "k:", "- k: ", "é", "~",
    ]);
    let line = (0usize..5, proptest::collection::vec(token, 0..4))
        .prop_map(|(indent, tokens)| format!("{}{}", " ".repeat(indent), tokens.concat()));
    proptest::collection::vec(line, 0..7).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_readers_agree_on_lines_of_tokens(text in tokens()) {
        check(&text, &mut Counts::default());
    }
}

#[test]
fn a_text_with_another_value_does_not_match() {
    let source = "a: [b, b]\nc: d\n";
    let reads = |bytes: &str, to: &str| {
        let changed = BTreeMap::from([(4, to.to_owned())]);
        let mut fingerprint = ParseFingerprint::default();
        documents(source).for_each(|document| fingerprint.add(&document.unwrap(), &changed));
        let new = source.replacen('b', bytes, 1);
        fingerprint.matches(&new, new.len())
    };
    assert!(reads("'x:1'", "x:1") && reads("x", "x"));
    for (bytes, to) in [
        ("x, y", "x, y"),
        ("x]\nz: [", "x"),
        ("[x", "[x"),
        ("", ""),
        ("x", "y"),
        ("&b x", "x"),
        ("!t x", "x"),
    ] {
        assert!(!reads(bytes, to), "{bytes}");
    }
}
