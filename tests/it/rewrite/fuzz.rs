//! Runs the scanner and the rewriter, also for texts within texts, on documents that a seeded
//! generator cuts, mixes and breaks. `FUZZ_SECONDS` is the duration of each test;
//! `LANDFALL_FUZZ_SEED` changes the seed.

use crate::support::library::{
    Lock, ReferenceIndex, RewriteOptions, Site, TextSyntax, destination_map, inputs, rewrite, scan,
};
use base64::Engine as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of rounds without `FUZZ_SECONDS`.
const ROUNDS: usize = 400;
/// The maximum length of a generated text, in bytes.
const LONGEST: usize = 6000;

/// xorshift64*, so that a seed gives the same texts everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        all[self.below(all.len())]
    }

    /// A position in `text` between two characters.
    fn place(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        (0..=at)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap()
    }
}

const PIECES: [&str; 36] = [
    "quay.io/prometheus/node-exporter:v1.9.0",
    "docker.io/library/nginx:1.27",
    "nginx",
    "quay.io/kubermatic/api",
    "172.20.0.2:5000/dexidp/dex:v2.42.0",
    "https://dl.k8s.io/$V/bin/",
    "https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet",
    "registry: quay.io\n",
    "repository: kubermatic/api\n",
    "tag: v2.26.2\n",
    "image: ",
    "- ",
    ": ",
    "\n",
    "\n  ",
    "\t",
    "\r\n",
    "|\n  ",
    ">-\n  ",
    "|2-\n",
    "\"",
    "'",
    "''",
    "\\\"",
    "\\u0041",
    "\\\n",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "{{ .x }}",
    "${X:-",
    "---\n",
    "\u{feff}é",
];

fn mutated(random: &mut Random, seeds: &[String]) -> String {
    let mut text = random
        .one(&seeds.iter().map(String::as_str).collect::<Vec<_>>())
        .to_owned();
    for _ in 0..=random.below(8) {
        let a = random.place(&text);
        let b = random.place(&text);
        let start = a.min(b);
        let end = a.max(b);
        match random.below(6) {
            0 => text.insert_str(start, random.one(&PIECES)),
            1 => text.replace_range(start..if end > start + 40 { start } else { end }, ""),
            2 => text = format!("{}{}", &text[..end], &text[start..]),
            3 => {
                let other = &seeds[random.below(seeds.len())];
                let c = random.place(other);
                let d = random.place(other);
                text.insert_str(start, &other[c.min(d)..c.max(d)]);
            }
            4 => text.truncate(end),
            _ => {
                let from = random.one(&PIECES);
                let to = random.one(&PIECES);
                text = text.replacen(from, to, 1);
            }
        }
        let limit = (0..=LONGEST.min(text.len()))
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap();
        text.truncate(limit);
    }
    text
}

struct Target {
    there: ReferenceIndex,
    back: ReferenceIndex,
    seeds: Vec<String>,
}

impl Target {
    fn new() -> Target {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rewrite");
        let text = |name: &str| std::fs::read_to_string(data.join(name)).unwrap();
        let site = Site::parse(Path::new("site.yaml"), &text("site.yaml")).unwrap();
        let lock = Lock::parse("landfall.lock", &text("landfall.lock")).unwrap();
        let mapping = destination_map("172.20.0.2:5000".parse().unwrap(), Some(&site));
        let files: Vec<PathBuf> = inputs(&[data.join("in")], None)
            .unwrap()
            .into_iter()
            .map(|input| input.path)
            .collect();
        let base = site.files.as_ref().unwrap();
        Target {
            there: ReferenceIndex::new(&lock, &mapping).with_files(base),
            back: ReferenceIndex::reverse(&lock, &mapping).with_files(base),
            seeds: files
                .iter()
                .map(|path| std::fs::read_to_string(path).unwrap())
                .collect(),
        }
    }

    /// Calls `make` on mutated texts, and checks how the resulting texts are rewritten.
    fn run(&self, name: &str, kind: TextSyntax, make: impl Fn(&mut Random, String) -> String) {
        let seed = std::env::var("LANDFALL_FUZZ_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or(0x1a2b_3c4d);
        let time = std::env::var("FUZZ_SECONDS")
            .ok()
            .and_then(|time| time.parse().ok())
            .map(Duration::from_secs_f64);
        let start = Instant::now();
        let mut rounds = 0;
        let mut changes = 0;
        while time.map_or(rounds < ROUNDS, |time| start.elapsed() < time) {
            let mut random = Random(seed + rounds as u64 * 0x9e37_79b9 + 1);
            let text = mutated(&mut random, &self.seeds);
            let text = make(&mut random, text);
            changes += self.check(&format!("{name}, seed {seed}, round {rounds}"), kind, &text);
            rounds += 1;
        }
        assert!(
            changes > rounds / 4,
            "{name}: {changes} changes in {rounds} rounds"
        );
    }

    fn check(&self, name: &str, kind: TextSyntax, text: &str) -> usize {
        for options in [
            RewriteOptions::default(),
            RewriteOptions {
                pin: true,
                comments: true,
            },
        ] {
            let there = |text: &str| rewrite(text, kind, &self.there, options);
            let first = there(text);
            let mut old = 0;
            let mut new = 0;
            for edit in first.scan.edits() {
                assert!(edit.span.start >= old, "{name}: edits overlap in {text:?}");
                let kept = edit.span.start - old;
                assert_eq!(text[old..old + kept], first.text[new..new + kept], "{name}");
                (old, new) = (edit.span.end, new + kept + edit.bytes.len());
            }
            assert_eq!(text[old..], first.text[new..], "{name}");
            assert_eq!(
                there(&first.text).text,
                first.text,
                "{name}: a second run changes something in {text:?}"
            );
        }
        let first = rewrite(text, kind, &self.there, RewriteOptions::default());
        rewrite(&first.text, kind, &self.back, RewriteOptions::default());
        let all = scan(text, kind, &self.there).found;
        assert!(all.len() >= first.scan.found.len(), "{name}: {text:?}");
        first
            .scan
            .found
            .iter()
            .filter(|finding| finding.is_change())
            .count()
    }
}

#[test]
fn mutated_documents_are_rewritten_consistently() {
    Target::new().run("documents", TextSyntax::Document, |_, text| text);
}

#[test]
fn mutated_words_are_rewritten_consistently() {
    Target::new().run("words", TextSyntax::Text, |_, text| text);
}

#[test]
fn mutated_texts_within_texts_are_rewritten_consistently() {
    Target::new().run(
        "texts within texts",
        TextSyntax::Document,
        |random, mut text| {
            for _ in 0..=random.below(3) {
                text = match random.below(5) {
                    0 => format!(
                        "a: |\n{}",
                        text.split('\n')
                            .map(|line| format!("  {line}\n"))
                            .collect::<String>()
                    ),
                    1 => format!("a: '{}'\n", text.replace('\'', "''").replace('\n', " ")),
                    2 => format!(
                        "kind: Secret\ndata: {{x: {}}}\n",
                        base64::engine::general_purpose::STANDARD.encode(&text)
                    ),
                    3 => format!("a: {}\n", serde_json::to_string(&text).unwrap()),
                    _ => format!("- {}\n- {text}", serde_json::to_string(&text).unwrap()),
                };
            }
            text
        },
    );
}
