//! Measures the memory and the time that each reader of foreign bytes needs for the worst short
//! documents: what a document costs is limited by its own size times a constant.
//!
//! The documents of a target are read in a process of its own, whose peak of memory is then known.
//! A new target is measured as soon as it is in the list.

use super::TARGETS;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// The size of a document in bytes, as far as its shape allows.
const SIZE: usize = 128 << 10;

/// The memory that a reader may need for each byte of a document.
const MOST_PER_BYTE: u64 = 200;

/// The memory that a reader may need for any document: buffers and unpacked content.
const MOST: u64 = 24 << 20;

/// What the tables of compressors take in addition, by target.
const TABLES: &[(&str, u64)] = &[("deflate", 64 << 20)];

/// The CPU time in seconds after which the process of a target is stopped: a reader that takes
/// quadratic time needs much more for one document.
const MOST_SECONDS: u32 = 120;

/// The variable with the name of the target and the folder with its documents, for
/// [`reads_documents`].
const VARIABLE: &str = "LANDFALL_COST";

/// The documents of a target, each with the name of its shape.
fn documents(seeds: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let many = |text: &str| text.repeat(SIZE / text.len());
    let aliases: String = (1..20)
        .map(|number| {
            format!(
                "k{number}: &a{number} [{}]\n",
                vec![format!("*a{}", number - 1); 9].join(",")
            )
        })
        .collect();
    let zeros = vec![0; 64 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    let mut documents: Vec<(&str, Vec<u8>)> = [
        ("brackets", many("[")),
        ("objects", many("{\"a\":")),
        ("braces", many("{a: ")),
        ("nested list", many("- ")),
        ("elements", many("<a>")),
        ("empty elements", format!("<a>{}</a>", many("<b/>"))),
        ("list of numbers", format!("[{}0]", many("0,"))),
        ("list of objects", format!("[{}{{}}]", many("{},"))),
        ("list of lines", many("- a\n")),
        (
            "keys",
            (0..SIZE / 12)
                .map(|number| format!("k{number}: a\n"))
                .collect(),
        ),
        ("quotes", many("\"\" ")),
        ("stanzas", many("Package: a\n\n")),
        (
            "relations",
            format!(
                "Package: a\nVersion: 1\nArchitecture: amd64\nDepends: {}\n",
                many("b,")
            ),
        ),
        (
            "provides",
            format!(
                "Package: a\nVersion: 1\nArchitecture: amd64\nProvides: {}\n",
                many("b,")
            ),
        ),
        ("one word", many("a")),
        ("empty lines", many("\n")),
        ("blanks", many(" ")),
        ("tabs", many("\ta: b\n")),
        ("sections", many("[a]\n")),
        ("aliases", format!("k0: &a0 [a]\n{aliases}")),
    ]
    .map(|(shape, text)| (shape, text.into_bytes()))
    .into();
    documents.push(("zero bytes", vec![0; SIZE]));
    documents.push(("bits", vec![0xff; SIZE]));
    documents.push(("gzip of zeros", gzip.finish().unwrap()));
    documents.push(("zstd of zeros", zstd::encode_all(&zeros[..], 3).unwrap()));
    for seed in seeds.iter().filter(|seed| !seed.is_empty()) {
        documents.push(("valid, repeated", seed.repeat(SIZE.div_ceil(seed.len()))));
        // the beginning of a valid document leads into the reader
        for (shape, tail) in [
            ("valid, then brackets", "["),
            ("valid, then lists", "\n- a"),
            ("valid, then elements", "<a>"),
        ] {
            documents.push((shape, [seed.as_slice(), many(tail).as_bytes()].concat()));
        }
    }
    documents
}

/// The peak of this process's memory in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// Reads the documents in the folder, and prints by how much the peak of memory has grown after
/// each.
#[test]
#[ignore = "a process of `the_memory_of_every_reader_is_limited`"]
fn reads_documents() {
    let wanted = std::env::var(VARIABLE).unwrap();
    let (name, folder) = wanted.split_once(' ').unwrap();
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let before = peak();
    for number in 0.. {
        let Ok(document) = std::fs::read(format!("{folder}/{number}")) else {
            break;
        };
        (target.run)(&document);
        println!("peak {}", peak() - before);
    }
}

/// The peaks of memory in bytes after each document in `folder`, and the end of the output.
fn measure(target: &str, folder: &Path) -> (Vec<u64>, String) {
    let limited = format!("ulimit -t {MOST_SECONDS} && exec \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "fuzz::cost::reads_documents", "--ignored"])
        .arg("--nocapture")
        .env(VARIABLE, format!("{target} {}", folder.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // the harness of the tests writes its own words into the first line
    let peaks = text.lines().filter_map(|line| line.split_once("peak "));
    let peaks = peaks.filter_map(|(_, peak)| peak.parse().ok()).collect();
    let rest = String::from_utf8_lossy(&output.stderr);
    (peaks, format!("{} {rest}", output.status))
}

#[test]
fn the_memory_of_every_reader_is_limited() {
    let mut faults = Vec::new();
    for target in TARGETS {
        let tables = TABLES.iter().find(|(name, _)| *name == target.name);
        let most = MOST + tables.map_or(0, |(_, bytes)| *bytes) + MOST_PER_BYTE * SIZE as u64;
        let folder = tempfile::tempdir().unwrap();
        let documents = documents(&(target.seeds)());
        for (number, (_, document)) in documents.iter().enumerate() {
            std::fs::write(folder.path().join(number.to_string()), document).unwrap();
        }
        let (peaks, end) = measure(target.name, folder.path());
        let mut before = 0;
        for ((shape, _), peak) in documents.iter().zip(&peaks) {
            if *peak > before + (1 << 20) {
                println!("{}, {shape}: {} KiB", target.name, peak >> 10);
            }
            if *peak > most && before <= most {
                faults.push(format!("{}, {shape}: {peak} bytes", target.name));
            }
            before = *peak;
        }
        if let Some((shape, _)) = documents.get(peaks.len()) {
            faults.push(format!("{}, {shape}: {end}", target.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
