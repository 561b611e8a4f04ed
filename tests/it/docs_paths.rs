//! Every path that the documents mention exists, and every link between them leads somewhere.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents that people read.
fn pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/ci", "docs/platforms"]
        .map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    let in_docs = folders
        .into_iter()
        .flatten()
        .map(|page| page.unwrap().path());
    let mut pages: Vec<PathBuf> = in_docs
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.extend(
        [
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "CHANGELOG.md",
            "fuzz/README.md",
        ]
        .map(|page| root().join(page)),
    );
    pages
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    match path
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
    {
        None => vec![path.to_owned()],
        Some((head, (names, tail))) => names
            .split(',')
            .map(|name| format!("{head}{name}{tail}"))
            .collect(),
    }
}

/// Whether a text between backticks is meant as a path of this project: a file of sources, scripts
/// or documents, or a folder that begins at the project's root.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/{},".contains(c);
    let ours = [
        "src/",
        "crates/",
        "tests/",
        "docs/",
        "scripts/",
        "manifests/",
        "examples/",
        "fuzz/",
        ".ci/",
    ];
    let from_root = ours.iter().any(|folder| text.starts_with(folder));
    // capitals stand for a name of the reader's, as in `src/item/KIND.rs`
    let stem = text
        .rsplit('/')
        .next()
        .unwrap_or(text)
        .split('.')
        .next()
        .unwrap_or_default();
    let is_pattern = !stem.is_empty() && stem.chars().all(|c| c.is_ascii_uppercase());
    text.chars().all(plain)
        && !is_pattern
        && (from_root || (text.ends_with(".rs") && text.contains('/')))
}

/// Where a path may lead: from the root, from the sources of a crate, or from the integration
/// tests. `http/send.rs` is the file of the crate `landfall-http`.
fn places(path: &str) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|folder| folder.unwrap().path());
    let mut places: Vec<PathBuf> = crates.map(|folder| folder.join("src").join(path)).collect();
    if let Some((name, rest)) = path.split_once('/') {
        places.push(
            root()
                .join(format!("crates/landfall-{name}/src"))
                .join(rest),
        );
    }
    places.extend(["", "src", "tests/it"].map(|folder| root().join(folder).join(path)));
    places
}

#[test]
fn every_path_in_the_documents_exists() {
    let mut gone = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        // sessions and examples show paths of the reader's
        let prose: String = text.split("```").step_by(2).collect();
        for path in prose
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|text| is_path(text))
            .flat_map(expanded)
        {
            seen += 1;
            if !places(&path).iter().any(|place| place.exists()) {
                gone.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(seen > 40, "only {seen} paths were found: are they read?");
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut gone = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap();
            if !page.parent().unwrap().join(file).exists() {
                gone.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}
