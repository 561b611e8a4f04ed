//! What the compiler does not see of the structure: within a crate imports run one way between
//! folders, as `docs/explanation/architecture.md` states, and no two files import each other,
//! directly or around.

mod imports;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

/// Those of all crates, read once. A file is called by its folder in the order, as in
/// `registry/sink.rs`.
static OURS: LazyLock<Imports> = LazyLock::new(|| {
    let mut all = imports(&root().join("src"));
    for name in crates() {
        let short = name.strip_prefix("landfall-").unwrap();
        let rooms = rooms(&name);
        let placed = |file: String| match file.split_once('/') {
            Some((folder, _)) if rooms.contains(folder) => file,
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

/// The library crates.
fn crates() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|folder| folder.unwrap());
    let libraries = folders.filter(|folder| folder.path().join("src/lib.rs").exists());
    libraries
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect()
}

/// The lines of the order in `docs/explanation/architecture.md`: a crate, and folders of it.
fn lines() -> Vec<(String, Vec<String>)> {
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

/// The folders of a crate that have a place in the order.
fn rooms(name: &str) -> BTreeSet<String> {
    lines()
        .into_iter()
        .filter(|(of, _)| of == name)
        .flat_map(|(_, folders)| folders)
        .collect()
}

/// Each folder, and the number of its line.
fn order() -> BTreeMap<String, usize> {
    let lines = lines().into_iter().enumerate();
    lines
        .flat_map(|(number, (_, folders))| folders.into_iter().map(move |name| (name, number)))
        .collect()
}

/// The folder of a file; nothing for a file beside `lib.rs`.
fn folder(file: &str) -> Option<&str> {
    Some(file.split_once('/')?.0)
}

fn shown(imports: &Imports, from: &str, to: &str) -> String {
    let names = &imports[&(from.to_owned(), to.to_owned())];
    format!(
        "{from} imports {} from {to}",
        names.iter().cloned().collect::<Vec<_>>().join(", ")
    )
}

/// The imports that run against the order.
fn arrows_back(imports: &Imports, order: &BTreeMap<String, usize>) -> Vec<String> {
    let line = |file| folder(file).map(|name| (name, order.get(name)));
    let back = imports.keys().filter_map(|(from, to)| {
        let ((from_folder, from_line), (to_folder, to_line)) = (line(from)?, line(to)?);
        let allowed = from_folder == to_folder || from_line? < to_line?;
        (!allowed).then(|| format!("{from_folder} → {to_folder}: {}", shown(imports, from, to)))
    });
    back.collect()
}

/// The shortest circle through each file that stands on one, each circle once.
fn circles(imports: &Imports) -> Vec<String> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    imports
        .keys()
        .for_each(|(from, to)| next.entry(from).or_default().push(to));
    let mut found: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for &start in next.keys() {
        let (mut came_from, mut edge) = (BTreeMap::from([(start, start)]), vec![start]);
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
        let mut circle = vec![at];
        while at != start {
            at = came_from[at];
            circle.push(at);
        }
        circle.reverse();
        found
            .entry(circle.iter().copied().collect())
            .or_insert(circle);
    }
    let told = |circle: Vec<&str>| {
        let pairs = circle.iter().zip(circle.iter().cycle().skip(1));
        pairs
            .map(|(from, to)| shown(imports, from, to))
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    found.into_values().map(told).collect()
}

#[test]
fn imports_between_folders_follow_the_order_of_the_architecture() {
    let (imports, order) = (&*OURS, order());
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
        "docs/explanation/architecture.md gives no place to {unlisted:?}"
    );
    let gone: Vec<_> = order
        .keys()
        .filter(|name| !folders.contains(name.as_str()))
        .collect();
    assert!(
        gone.is_empty(),
        "docs/explanation/architecture.md gives a place to {gone:?}, and there is no such folder"
    );
    let back = arrows_back(imports, &order);
    assert!(
        back.is_empty(),
        "{} imports run back:\n{}",
        back.len(),
        back.join("\n")
    );
}

/// The compiler forbids circles of crates; the page says which way they run.
#[test]
fn crates_depend_on_those_below_them_in_the_order_of_the_architecture() {
    let mut below: Vec<String> = Vec::new();
    for (name, _) in lines().into_iter().rev() {
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
fn no_two_files_import_each_other() {
    let circles = circles(&OURS);
    assert!(
        circles.is_empty(),
        "{} circles:\n\n  {}",
        circles.len(),
        circles.join("\n\n  ")
    );
}

/// A crate of three files with an arrow that runs back and a circle, so that the two tests above
/// can fail.
#[test]
fn an_arrow_back_and_a_circle_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // a function may be called as its module is
    write("lib.rs", "mod low; mod high; pub use high::high;");
    write("low/mod.rs", "mod a; mod b; pub use a::A;");
    write(
        "low/a.rs",
        "use super::b::B; pub struct A(B); #[cfg(test)] mod tests { use crate::high::High; }",
    );
    write(
        "low/b.rs",
        "pub struct B; fn f() { println!(\"{}\", crate::high::High) }",
    );
    write(
        "high/mod.rs",
        "use crate::low; pub struct High(low::A); pub fn high() {}",
    );
    let imports = imports(folder.path());
    let order = BTreeMap::from([("high".to_owned(), 0), ("low".to_owned(), 1)]);
    assert_eq!(
        arrows_back(&imports, &order),
        ["low → high: low/b.rs imports High from high/mod.rs"]
    );
    let circle = "high/mod.rs imports A from low/a.rs\n  low/a.rs imports B from low/b.rs\n  \
                  low/b.rs imports High from high/mod.rs";
    assert_eq!(circles(&imports), [circle]);
}
