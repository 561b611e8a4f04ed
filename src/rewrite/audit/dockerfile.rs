//! Images of Dockerfiles.

use super::candidate::Candidate;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Whether a file is a Dockerfile by its name.
pub(super) fn is_dockerfile(name: &Path) -> bool {
    let name = name.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let is = |word: &str| {
        name == word || name.starts_with(&format!("{word}.")) || name.ends_with(&format!(".{word}"))
    };
    is("dockerfile") || is("containerfile")
}

/// Images of a Dockerfile: `FROM`, `COPY --from` and `RUN --mount=…,from=`. Arguments stand
/// for their defaults; stages and `scratch` are not images.
pub(super) fn candidates(text: &str) -> Vec<Candidate> {
    let (mut arguments, mut stages, mut found) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let mut words = line.split_whitespace();
        let Some(instruction) = words.next().map(str::to_ascii_uppercase) else { continue };
        let words: Vec<&str> = words.collect();
        let mut add = |word: &str| {
            let name = filled(word.trim_matches(['"', '\'']), &arguments);
            let at = start + line.find(word).unwrap_or_default();
            let own =
                name == "scratch" || name.parse::<usize>().is_ok() || stages.contains(&name.to_lowercase());
            if !own {
                found.extend(Candidate::all(at, &[], &name, true, true));
            }
        };
        match instruction.as_str() {
            "ARG" => {
                let defaults = words.iter().filter_map(|word| word.split_once('='));
                arguments.extend(defaults.map(|(name, value)| {
                    (name.to_owned(), filled(value.trim_matches(['"', '\'']), &BTreeMap::new()))
                }));
            }
            "FROM" => {
                let mut plain = words.iter().filter(|word| !word.starts_with("--"));
                plain.next().into_iter().for_each(|word| add(word));
                let name = plain.next().filter(|word| word.eq_ignore_ascii_case("as")).and(plain.next());
                stages.extend(name.map(|name| name.to_lowercase()));
            }
            "COPY" | "ADD" | "RUN" => {
                let flags = words.iter().take_while(|word| word.starts_with("--"));
                let from = |flag: &&str| {
                    let mut values = flag.split_once('=')?.1.split(',');
                    match flag.strip_prefix("--from=") {
                        Some(from) => Some(from.to_owned()),
                        None => values.find_map(|part| part.strip_prefix("from=")).map(str::to_owned),
                    }
                };
                flags.filter_map(from).for_each(|word| add(&word));
            }
            _ => {}
        }
    }
    found
}

/// `word` with `$NAME`, `${NAME}` and `${NAME:-default}` replaced where that is possible.
fn filled(word: &str, arguments: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((head, tail)) = rest.split_once('$') {
        out.push_str(head);
        let (name, default, after) = match tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
            Some((inside, after)) => {
                let (name, default) = inside.split_once(":-").map_or((inside, None), |(n, d)| (n, Some(d)));
                (name, default, after)
            }
            None => {
                let end = tail.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tail.len());
                (&tail[..end], None, &tail[end..])
            }
        };
        match arguments.get(name).map(String::as_str).or(default) {
            Some(value) => out.push_str(value),
            None => out.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    out + rest
}
