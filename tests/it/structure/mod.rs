//! Checks rules that the compiler does not check: imports between the folders of a crate follow the
//! order in `docs/explanation/architecture.md`, and files of different folders do not import each
//! other, directly or through others.

mod idiom;
mod imports;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

/// The imports of all crates, read once. A file in a folder that the documented order lists has a
/// path like `registry/sink.rs`. The paths of other files of libraries begin with the crate's name
/// without `landfall-`.
static ALL_IMPORTS: LazyLock<Imports> = LazyLock::new(|| {
    let mut all = imports(&root().join("src"));
    for name in crates() {
        let short = name.strip_prefix("landfall-").unwrap();
        let listed_folders = listed_folders(&name);
        let placed = |file: String| match file.split_once('/') {
            Some((folder, _)) if listed_folders.contains(folder) => file,
            _ => format!("{short}/{file}"),
        };
        let found = imports(&root().join("crates").join(&name).join("src"));
        all.extend(
            found
                .into_iter()
                .map(|((from, to), names)| ((placed(from), placed(to)), names)),
        );
    }
    all
});

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the library crates.
fn crates() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|folder| folder.unwrap());
    let libraries = folders.filter(|folder| folder.path().join("src/lib.rs").exists());
    libraries
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect()
}

/// The lines of the order in `docs/explanation/architecture.md`: each is a crate with some folders.
fn order_lines() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/explanation/architecture.md")).unwrap();
    let block = page
        .split("```order\n")
        .nth(1)
        .expect("a block `order`")
        .split("```")
        .next()
        .unwrap();
    let line = |line: &str| {
        let (name, folders) = line.split_once(": ").expect("a crate and its folders");
        (
            name.to_owned(),
            folders.split_whitespace().map(str::to_owned).collect(),
        )
    };
    block.lines().map(line).collect()
}

/// The folders of a crate that are listed in the order.
fn listed_folders(name: &str) -> BTreeSet<String> {
    order_lines()
        .into_iter()
        .filter(|(of, _)| of == name)
        .flat_map(|(_, folders)| folders)
        .collect()
}

/// The number of the line that lists each folder.
fn order() -> BTreeMap<String, usize> {
    let lines = order_lines().into_iter().enumerate();
    lines
        .flat_map(|(number, (_, folders))| folders.into_iter().map(move |name| (name, number)))
        .collect()
}

/// The first folder of a path, or `None` if the path is only a file name.
fn folder(file: &str) -> Option<&str> {
    Some(file.split_once('/')?.0)
}

fn describe_import(imports: &Imports, from: &str, to: &str) -> String {
    let names = &imports[&(from.to_owned(), to.to_owned())];
    format!(
        "{from} imports {} from {to}",
        names.iter().cloned().collect::<Vec<_>>().join(", ")
    )
}

/// Describes the imports that violate the order.
fn imports_against_order(imports: &Imports, order: &BTreeMap<String, usize>) -> Vec<String> {
    let line = |file| folder(file).map(|name| (name, order.get(name)));
    let back = imports.keys().filter_map(|(from, to)| {
        let ((from_folder, from_line), (to_folder, to_line)) = (line(from)?, line(to)?);
        let allowed = from_folder == to_folder || from_line? < to_line?;
        (!allowed).then(|| {
            format!(
                "{from_folder} → {to_folder}: {}",
                describe_import(imports, from, to)
            )
        })
    });
    back.collect()
}

/// The folder that contains a file; files of one folder may import each other.
fn containing_folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Finds the shortest cycle through each file that is part of a cycle between folders. Describes
/// each cycle once.
fn import_cycles(imports: &Imports) -> Vec<String> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    imports
        .keys()
        .filter(|(from, to)| containing_folder(from) != containing_folder(to))
        .for_each(|(from, to)| next.entry(from).or_default().push(to));
    let mut found: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for &start in next.keys() {
        let mut came_from = BTreeMap::from([(start, start)]);
        let mut edge = vec![start];
        let end = 'search: loop {
            let mut further = Vec::new();
            for at in edge {
                for &to in next.get(at).into_iter().flatten() {
                    if to == start {
                        break 'search Some(at);
                    }
                    if !came_from.contains_key(to) {
                        came_from.insert(to, at);
                        further.push(to);
                    }
                }
            }
            if further.is_empty() {
                break None;
            }
            edge = further;
        };
        let Some(mut at) = end else { continue };
        let mut cycle = vec![at];
        while at != start {
            at = came_from[at];
            cycle.push(at);
        }
        cycle.reverse();
        found
            .entry(cycle.iter().copied().collect())
            .or_insert(cycle);
    }
    let describe = |cycle: Vec<&str>| {
        let pairs = cycle.iter().zip(cycle.iter().cycle().skip(1));
        pairs
            .map(|(from, to)| describe_import(imports, from, to))
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    found.into_values().map(describe).collect()
}

#[test]
fn imports_between_folders_follow_the_documented_order() {
    let imports = &*ALL_IMPORTS;
    let order = order();
    let folders: BTreeSet<&str> = imports
        .keys()
        .flat_map(|(a, b)| [folder(a), folder(b)])
        .flatten()
        .collect();
    let unlisted: Vec<_> = folders
        .iter()
        .filter(|name| !order.contains_key(**name))
        .collect();
    assert!(
        unlisted.is_empty(),
        "docs/explanation/architecture.md does not list {unlisted:?}"
    );
    let gone: Vec<_> = order
        .keys()
        .filter(|name| !folders.contains(name.as_str()))
        .collect();
    assert!(
        gone.is_empty(),
        "docs/explanation/architecture.md lists {gone:?}, which have no imports"
    );
    let back = imports_against_order(imports, &order);
    assert!(
        back.is_empty(),
        "{} imports violate the order:\n{}",
        back.len(),
        back.join("\n")
    );
}

/// Cargo forbids cycles of crates; `docs/explanation/architecture.md` states their order.
#[test]
fn crates_depend_only_on_crates_below_them() {
    let mut below: Vec<String> = Vec::new();
    for (name, _) in order_lines().into_iter().rev() {
        if below.contains(&name) {
            continue;
        }
        let folder = if name == "landfall" {
            root().to_owned()
        } else {
            root().join("crates").join(&name)
        };
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let wanted = text
            .split("\n[dependencies]\n")
            .nth(1)
            .unwrap()
            .split("\n[")
            .next()
            .unwrap();
        for line in wanted.lines().filter(|line| line.starts_with("landfall-")) {
            let other = line.split(['.', ' ']).next().unwrap();
            assert!(
                below.iter().any(|below| below == other),
                "{name} depends on {other}, which is not below it"
            );
        }
        below.push(name);
    }
    below.retain(|name| name != "landfall");
    assert_eq!(
        below.into_iter().collect::<BTreeSet<_>>(),
        crates().into_iter().collect()
    );
}

#[test]
fn no_two_files_of_different_folders_import_each_other() {
    let cycles = import_cycles(&ALL_IMPORTS);
    assert!(
        cycles.is_empty(),
        "{} cycles:\n\n  {}",
        cycles.len(),
        cycles.join("\n\n  ")
    );
}

/// Proves that the tests of the order and of cycles can fail: this crate has a cycle, and an import
/// that violates the order.
#[test]
fn an_import_against_the_order_and_a_cycle_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // a function may have the name of its module
    write("lib.rs", "mod low; mod high; pub use high::high;");
    write("low/mod.rs", "mod a; mod b; pub use a::A;");
    write(
        "low/a.rs",
        "use super::b::B; pub struct A(B); fn f() { println!(\"{}\", crate::high::High) }",
    );
    write(
        "low/b.rs",
        "use super::a::A; pub struct B; #[cfg(test)] mod tests { use crate::high::High; }",
    );
    write(
        "high/mod.rs",
        "use crate::low; pub struct High(low::A); pub fn high() {}",
    );
    let imports = imports(folder.path());
    let order = BTreeMap::from([("high".to_owned(), 0), ("low".to_owned(), 1)]);
    assert_eq!(
        imports_against_order(&imports, &order),
        ["low → high: low/a.rs imports High from high/mod.rs"]
    );
    let cycle = "high/mod.rs imports A from low/a.rs\n  low/a.rs imports High from high/mod.rs";
    assert_eq!(import_cycles(&imports), [cycle]);
}
