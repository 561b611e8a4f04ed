//! Checks the Markdown files: every path of this project in a code span exists, and so do the types
//! and functions that pages for contributors name; every link leads to a file and a heading, and
//! the summary of the book lists every page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Markdown files of the project: those of `docs/` and `.github/` at any depth, and the others
/// by name.
fn pages() -> Vec<PathBuf> {
    let mut pages = markdown_below(&root().join("docs"));
    pages.extend(markdown_below(&root().join(".github")));
    pages.extend(
        [
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "CHANGELOG.md",
            "fuzz/README.md",
            "tests/data/bundles/README.md",
        ]
        .map(|page| root().join(page)),
    );
    pages
}

fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            found.extend(markdown_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Expands braces: `a/{b,c}.rs` becomes `a/b.rs` and `a/c.rs`.
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

/// Whether a code span is a path of this project: a Rust file, or a path from the project's root.
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
    // a name in capitals is a placeholder, as in `src/item/KIND.rs`
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

/// The files that a path may refer to. The path may be relative to the root, to `src`, to the
/// sources of a crate, or to the integration tests. `http/send.rs` is a file of the crate
/// `landfall-http`.
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
        // fenced blocks are skipped: they contain paths on the reader's machine
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
    assert!(
        seen > 40,
        "only {seen} paths were found: are the pages read?"
    );
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

/// The code spans of a text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The names of the items and functions that a Rust source defines.
fn definitions(code: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in code.lines() {
        let words: Vec<&str> = line
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '/'))
            .filter(|word| !word.is_empty())
            .take_while(|word| !word.starts_with('/'))
            .collect();
        let keywords = [
            "fn",
            "struct",
            "enum",
            "trait",
            "const",
            "static",
            "mod",
            "type",
            "macro_rules",
        ];
        let pairs = words.windows(2);
        names.extend(
            pairs
                .filter(|pair| keywords.contains(&pair[0]))
                .map(|pair| pair[1]),
        );
    }
    names
}

/// Each stop of the section names a file, and the functions or the table in it to begin with.
/// Further files of a stop are beside that file.
#[test]
fn the_stops_of_read_one_command_exist() {
    let page = std::fs::read_to_string(root().join("docs/explanation/architecture.md")).unwrap();
    let (_, section) = page.split_once("\n## Read one command\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut file = PathBuf::new();
    let mut code = String::new();
    let (mut files, mut names) = (0, 0);
    let mut gone = Vec::new();
    for span in spans(section) {
        if span.ends_with(".rs") && span.contains('/') {
            files += 1;
            file = root().join(span);
            code = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{span}: {error}"));
        } else if span.ends_with(".rs") && !file.with_file_name(span).exists() {
            gone.push(format!("{span}: not beside {}", file.display()));
        } else if span.chars().all(is_name) {
            names += 1;
            let mut path = span.rsplit("::");
            let is_defined = definitions(&code).contains(path.next().unwrap());
            // the type of a method may be defined in another file
            if !is_defined || path.any(|name| !code.contains(name)) {
                gone.push(format!("{span}: not in {}", file.display()));
            }
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
    assert!(files >= 20 && names >= 20, "{files} files, {names} names");
}

/// Code spans with a type, a path of modules or a macro are checked. Other names are words of a
/// document as often as names of the code.
#[test]
fn the_code_that_pages_for_contributors_name_exists() {
    let mut folders = ["src", "crates", "tests/it"]
        .map(|folder| root().join(folder))
        .to_vec();
    let mut code = String::new();
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                code += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let defined = definitions(&code);
    let mut gone = Vec::new();
    let mut seen = 0;
    for page in [
        "CONTRIBUTING.md",
        "docs/explanation/architecture.md",
        "docs/how-to/development.md",
    ] {
        let text = prose(&std::fs::read_to_string(root().join(page)).unwrap());
        for span in spans(&text) {
            let name = span.trim_start_matches("impl ").trim_end_matches("::");
            let last = name.trim_end_matches('!').rsplit("::").next().unwrap();
            let is_type = last.starts_with(|first: char| first.is_ascii_uppercase())
                && last.contains(|c: char| c.is_ascii_lowercase());
            let is_path = name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_:!".contains(c));
            if is_path && (is_type || name.contains("::") || name.ends_with('!')) {
                seen += 1;
                if !defined.contains(last) {
                    gone.push(format!("{page}: {span}"));
                }
            }
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
    assert!(seen > 60, "only {seen} names were found");
}

/// The text of a page without its fenced blocks.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            prose += line;
            prose.push('\n');
        }
    }
    prose
}

/// The targets of the links of a page, without those that have a scheme.
fn link_targets(text: &str) -> Vec<String> {
    prose(text)
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .map(str::to_owned)
        .collect()
}

/// The anchors of the headings of a page, as forges and mdBook derive them: lower case, spaces as
/// hyphens, other punctuation dropped; a repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept
            .flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone())
            .chain(numbered)
            .find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn every_link_between_documents_has_a_target() {
    let mut gone = Vec::new();
    let mut with_anchor = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in link_targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let linked = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(file)
            };
            let is_there = if anchor.is_empty() {
                linked.exists()
            } else {
                with_anchor += 1;
                std::fs::read_to_string(linked).is_ok_and(|text| anchors(&text).contains(anchor))
            };
            if !is_there {
                gone.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(with_anchor > 20, "only {with_anchor} anchors were followed");
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

/// The book and the packages lack most files outside `docs/`, so links to them would be broken.
#[test]
fn pages_of_the_book_link_only_to_files_of_the_book() {
    let docs = root().join("docs").canonicalize().unwrap();
    let mut outside = Vec::new();
    for page in markdown_below(&docs) {
        for target in link_targets(&std::fs::read_to_string(&page).unwrap()) {
            let file = target.split('#').next().unwrap();
            let linked = page.parent().unwrap().join(file);
            if !file.is_empty() && linked.canonicalize().is_ok_and(|to| !to.starts_with(&docs)) {
                outside.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(outside.is_empty(), "{}", outside.join("\n"));
}

#[test]
fn the_summary_of_the_book_lists_every_page_once() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let mut listed: Vec<PathBuf> = link_targets(&std::fs::read_to_string(&summary).unwrap())
        .iter()
        .map(|target| docs.join(target))
        .collect();
    listed.sort();
    let mut pages = markdown_below(&docs);
    pages.retain(|page| *page != summary);
    assert_eq!(listed, pages);
    // mdBook renders a README.md as index.html, but does not change the links to it
    let readmes = pages.iter().filter(|page| page.ends_with("README.md"));
    assert_eq!(readmes.count(), 1, "only the index is a README.md");
}

/// The index describes every page. It names the pages of platforms in an index of their own.
#[test]
fn the_index_describes_every_page() {
    let docs = root().join("docs");
    let listed = |page: &str, folder: &str| -> BTreeSet<PathBuf> {
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        let targets = link_targets(&text);
        targets
            .iter()
            .map(|to| docs.join(folder).join(to))
            .collect()
    };
    let mut listed_pages = listed("README.md", "");
    listed_pages.extend(listed("how-to/platforms.md", "how-to"));
    let mut pages: BTreeSet<PathBuf> = markdown_below(&docs).into_iter().collect();
    pages.retain(|page| page.parent() != Some(&docs));
    let missing: Vec<&PathBuf> = pages.difference(&listed_pages).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_page_begins_with_its_audience() {
    let docs = root().join("docs");
    let indexes = ["README.md", "SUMMARY.md"].map(|name| docs.join(name));
    for page in markdown_below(&docs) {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default();
        assert!(title.starts_with("# "), "{}: no title", page.display());
        let beginning = lines.next().unwrap_or_default();
        assert!(
            beginning.starts_with("For ") || indexes.contains(&page),
            "{} does not begin with its audience: {beginning}",
            page.display()
        );
    }
}

#[test]
fn pages_that_are_read_first_are_short() {
    let limits = [
        ("README.md", 120),
        // of these, 75 lines follow three commands through the code
        ("docs/explanation/architecture.md", 228),
    ];
    for (page, limit) in limits {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let lines = text.lines().count();
        assert!(
            lines <= limit,
            "{page} has {lines} lines, more than {limit}"
        );
    }
}

#[test]
fn anchors_are_those_of_forges_and_mdbook() {
    let page =
        "# A `b` page\n## What's new?\n```sh\n# no heading\n```\n## What's new?\n#no heading\n";
    let expected = ["a-b-page", "whats-new", "whats-new-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
}
