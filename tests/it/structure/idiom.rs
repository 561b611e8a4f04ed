//! Rules that neither the compiler nor clippy checks: `# Errors` is only on public functions, one
//! crate has the code for one system, and every file is a module.

use super::{crates, root};
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// The folders with the sources of all crates.
fn source_folders() -> Vec<PathBuf> {
    let mut folders = vec![root().join("src")];
    folders.extend(
        crates()
            .iter()
            .map(|name| root().join("crates").join(name).join("src")),
    );
    folders
}

/// The Rust files in these folders and below them.
fn rust_files(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The source files of all crates, including files of unit tests, but without `testkit` folders.
fn sources() -> Vec<PathBuf> {
    let mut files = rust_files(source_folders());
    files.retain(|path| {
        let mut parts = path.strip_prefix(root()).unwrap().iter();
        parts.all(|part| part != "testkit")
    });
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let condition = list.tokens.to_string();
                condition.contains("test") && !condition.contains("not")
            })
    })
}

/// Collects the private functions whose docs have `# Errors`.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn function(&mut self, name: &syn::Ident, is_public: bool, attributes: &[syn::Attribute]) {
        let has_section = attributes.iter().any(|attribute| {
            attribute.path().is_ident("doc")
                && attribute
                    .meta
                    .require_name_value()
                    .is_ok_and(|doc| doc_text(doc).trim() == "# Errors")
        });
        if has_section && !is_public {
            self.0.push(name.to_string());
        }
    }
}

fn doc_text(doc: &syn::MetaNameValue) -> String {
    match &doc.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) => text.value(),
        _ => String::new(),
    }
}

impl<'ast> Visit<'ast> for Findings {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    // the methods of a trait are as public as the trait
    fn visit_item_trait(&mut self, _: &'ast syn::ItemTrait) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        self.function(&item.sig.ident, is_public, &item.attrs);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        self.function(&item.sig.ident, is_public, &item.attrs);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

fn findings(path: &Path) -> Findings {
    let text = std::fs::read_to_string(path).unwrap();
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", shown(path)));
    let mut findings = Findings::default();
    findings.visit_file(&file);
    findings
}

fn is_test_file(path: &Path) -> bool {
    let name = path.file_name().unwrap();
    name == "tests.rs"
        || name == "testing.rs"
        || path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn errors_are_documented_on_public_functions_only() {
    let mut found = Vec::new();
    for path in sources() {
        let names = findings(&path).0;
        found.extend(names.iter().map(|name| format!("{}: {name}", shown(&path))));
    }
    assert!(
        found.is_empty(),
        "`# Errors` on private functions: {found:#?}"
    );
}

/// What only code for one operating system contains.
const SYSTEM_CODE: [&str; 8] = [
    "std::os::",
    "rustix::",
    "winapi_util::",
    "signal::unix",
    "cfg(unix)",
    "cfg(windows)",
    "cfg!(windows)",
    "target_os =",
];

/// Returns the code for one operating system in a file, without its unit tests at the end.
fn system_code(text: &str) -> Option<&'static str> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
    SYSTEM_CODE.into_iter().find(|mark| code.contains(mark))
}

#[test]
fn only_one_crate_has_code_for_one_system() {
    let os = root().join("crates/landfall-os");
    let mut found = Vec::new();
    for path in sources() {
        if path.starts_with(&os) || is_test_file(&path) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        found.extend(system_code(&text).map(|code| format!("{}: {code}", shown(&path))));
    }
    assert!(found.is_empty(), "write this in landfall-os: {found:#?}");
    assert_eq!(system_code("#[cfg(unix)]\nfn f() {}"), Some("cfg(unix)"));
    let tests = "#[cfg(test)]\nmod tests { use std::os::unix::fs::FileExt; }";
    assert_eq!(system_code(tests), None);
}

/// The compiler ignores a file that no `mod` names, and with it the tests in it.
#[test]
fn every_file_is_a_module() {
    let mut folders = source_folders();
    folders.push(root().join("tests/it"));
    let mut modules = 0;
    let mut ignored = Vec::new();
    for path in rust_files(folders) {
        let folder = path.parent().unwrap();
        let file = path.file_name().unwrap();
        if file == "lib.rs" || file == "main.rs" || folder.ends_with("bin") {
            continue;
        }
        // `a/mod.rs` is the module `a` of the folder above
        let (name, above) = match file == "mod.rs" {
            true => (folder.file_name().unwrap(), folder.parent().unwrap()),
            false => (path.file_stem().unwrap(), folder),
        };
        let declaration = format!("mod {};", name.to_str().unwrap());
        let is_declared = |parent: &PathBuf| {
            std::fs::read_to_string(parent)
                .is_ok_and(|text| text.lines().any(|line| line.ends_with(&declaration)))
        };
        let mut parents = ["mod.rs", "lib.rs", "main.rs"]
            .map(|file| above.join(file))
            .to_vec();
        parents.push(above.with_extension("rs"));
        modules += 1;
        if !parents.iter().any(is_declared) {
            ignored.push(shown(&path));
        }
    }
    assert!(ignored.is_empty(), "no `mod` names {ignored:#?}");
    assert!(modules > 1000, "only {modules} files were read");
}
