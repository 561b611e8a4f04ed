//! Tests with the apt of this machine, and with the suites whose indexes it has.

mod base;
mod choice;
mod install;
mod random;

use crate::support::apt::PROGRAMS;
use crate::support::{need, run, skip, test_name};
use memchr::memmem;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const STATUS: &str = "/var/lib/dpkg/status";

/// A suite of the machine.
struct Suite {
    url: String,
    name: String,
    component: String,
    /// The text of its package index.
    text: String,
}

/// The suites at the host of the machine's first suite, read once for all tests. Returns `None` if
/// the machine lacks a program, the keyring, the status file or the indexes of the suites.
fn suites() -> Option<&'static [Suite]> {
    static SUITES: OnceLock<Vec<Suite>> = OnceLock::new();
    if !need(&PROGRAMS) {
        return None;
    }
    let is_known = Path::new(KEYRING).exists() && Path::new(STATUS).exists();
    let suites = SUITES.get_or_init(|| if is_known { read_suites() } else { Vec::new() });
    if suites.is_empty() {
        skip(
            &test_name(),
            "the machine lacks the Debian keyring, the dpkg status file or indexes of apt",
        );
    }
    Some(suites.as_slice()).filter(|suites| !suites.is_empty())
}

fn read_suites() -> Vec<Suite> {
    let format = "$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT) $(FILENAME)";
    let targets = run(Command::new("apt-get").args(["indextargets", "--format", format]));
    let targets = String::from_utf8_lossy(&targets);
    let lines = targets
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let all: Vec<Vec<&str>> = lines
        .filter(|words| words.len() == 5 && words[0] == "Packages")
        .collect();
    let host = |words: &Vec<&str>| words[1].split('/').nth(2).map(str::to_owned);
    let first = all.first().and_then(host);
    let own = all
        .iter()
        .filter(|words| host(words) == first && words[1].starts_with("http"));
    let read = own.map(|words| {
        let bytes = Command::new("/usr/lib/apt/apt-helper")
            .args(["cat-file", words[4]])
            .output()
            .ok()?;
        let text = String::from_utf8(bytes.stdout)
            .ok()
            .filter(|_| bytes.status.success())?;
        let [url, name, component] = [words[1], words[2], words[3]].map(str::to_owned);
        Some(Suite {
            url,
            name,
            component,
            text,
        })
    });
    read.collect::<Option<Vec<Suite>>>().unwrap_or_default()
}

/// The paragraphs of the index `text`, each with the name of its package.
fn paragraphs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut start = 0;
    let ends = memmem::find_iter(text.as_bytes(), b"\n\n").chain([text.len()]);
    let all = ends.map(move |end| &text[std::mem::replace(&mut start, end + 2)..end]);
    all.filter_map(|one| Some((one.strip_prefix("Package: ")?.split_once('\n')?.0, one)))
}

/// The packages of several suites, by name.
struct Offered<'t> {
    /// The paragraphs of each name.
    own: HashMap<&'t str, Vec<&'t str>>,
    /// The names of the packages that provide each name.
    provided: HashMap<&'t str, Vec<&'t str>>,
}

impl<'t> Offered<'t> {
    fn by(suites: &'t [Suite]) -> Offered<'t> {
        let mut offered = Offered {
            own: HashMap::new(),
            provided: HashMap::new(),
        };
        for (name, paragraph) in suites.iter().flat_map(|suite| paragraphs(&suite.text)) {
            for other in names(field(paragraph, "Provides")) {
                offered.provided.entry(other).or_default().push(name);
            }
            offered.own.entry(name).or_default().push(paragraph);
        }
        offered
    }
}

/// The value of the field `name`, which must not be the first field of the paragraph; empty if the
/// paragraph has no such field.
fn field<'t>(paragraph: &'t str, name: &str) -> &'t str {
    let Some(at) = memmem::find(paragraph.as_bytes(), format!("\n{name}: ").as_bytes()) else {
        return "";
    };
    paragraph[at + name.len() + 3..]
        .lines()
        .next()
        .unwrap_or_default()
}

/// The names in a relation.
fn names(relation: &str) -> impl Iterator<Item = &str> {
    let all = relation
        .split([',', '|'])
        .filter_map(|one| one.trim().split([' ', ':', '(']).next());
    all.filter(|name| !name.is_empty())
}
