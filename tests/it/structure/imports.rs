//! Reads the imports between the files of a crate.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// Maps each pair of an importing and an imported file to the imported names. The paths of files
/// are relative to `src/`.
pub type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// A path of identifiers, such as `crate::model::Digest`.
type Names = Vec<String>;

/// One module: its file, its definitions, and the paths that it uses.
#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    /// Imported names, and their paths.
    aliases: BTreeMap<String, Names>,
    globs: Vec<Names>,
    /// Paths that the module uses, without those that it only re-exports.
    used: BTreeSet<Names>,
}

/// The modules of a crate, by path.
#[derive(Default)]
struct Crate(BTreeMap<Names, Module>);

/// The imports between the files below the folder `src`, without tests and fuzz targets.
pub fn imports(src: &Path) -> Imports {
    let mut modules = Crate::default();
    modules.load(src, "lib.rs", src, Vec::new());
    let mut imports = Imports::new();
    for (path, module) in &modules.0 {
        for used in &module.used {
            let Some(to) = modules.resolve(path, used, 0) else {
                continue;
            };
            let to = &modules.0[&to].file;
            if *to != module.file {
                let names = imports
                    .entry((module.file.clone(), to.clone()))
                    .or_default();
                names.extend(used.last().cloned());
            }
        }
    }
    imports
}

impl Crate {
    fn load(&mut self, src: &Path, file: &str, folder: &Path, path: Names) {
        let text = std::fs::read_to_string(src.join(file)).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read(&parsed.items, src, file, folder, path);
    }

    fn read(&mut self, items: &[syn::Item], src: &Path, file: &str, folder: &Path, path: Names) {
        let mut module = Module {
            file: file.into(),
            ..Module::default()
        };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                syn::Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let inner = [&path[..], std::slice::from_ref(&name)].concat();
                    let below = folder.join(&name);
                    match &child.content {
                        Some((_, items)) => self.read(items, src, file, &below, inner),
                        None => {
                            let flat = folder.join(format!("{name}.rs"));
                            let found = if flat.exists() {
                                flat
                            } else {
                                below.join("mod.rs")
                            };
                            let found = found.strip_prefix(src).unwrap().to_str().unwrap();
                            self.load(src, found, &below, inner);
                        }
                    }
                }
                syn::Item::Use(item) => {
                    let is_exported = !matches!(item.vis, syn::Visibility::Inherited);
                    module.add_imports(&item.tree, Vec::new(), is_exported);
                }
                item => {
                    module.items.extend(name(item));
                    Paths(&mut module.used).visit_item(item);
                }
            }
        }
        self.0.insert(path, module);
    }

    /// Resolves `path`, as written in the module `from`, to the module that defines the item.
    /// Returns `None` if the item belongs to another crate.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Names> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            _ if depth > 12 => return None,
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                (from[..from.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            first => {
                let module = self.0.get(from)?;
                let is_child = self.0.contains_key(&[from, &[first.to_owned()]].concat());
                let is_known = module.items.contains(first) || module.aliases.contains_key(first);
                if !(is_child || is_known) {
                    return None;
                }
                (from.to_vec(), path)
            }
        };
        while let Some(name) = rest.first() {
            let module = self.0.get(&at)?;
            let child = [&at[..], std::slice::from_ref(name)].concat();
            // a name before another name is a module, even if a function has the same name
            if rest.len() > 1 && self.0.contains_key(&child) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            if module.items.contains(name) {
                return Some(at);
            }
            if let Some(meant) = module.aliases.get(name) {
                let full = [meant, &rest[1..]].concat();
                return if full == path && at == from {
                    None
                } else {
                    self.resolve(&at, &full, depth + 1)
                };
            }
            if self.0.contains_key(&child) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let through = |glob: &Names| self.resolve(&at, &[glob, rest].concat(), depth + 1);
            return module.globs.iter().find_map(through).or(Some(at));
        }
        Some(at)
    }
}

impl Module {
    /// Adds the names that a `use` declaration imports.
    fn add_imports(&mut self, tree: &syn::UseTree, mut path: Names, is_exported: bool) {
        let alias = match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                return self.add_imports(&inner.tree, path, is_exported);
            }
            syn::UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.add_imports(tree, path.clone(), is_exported));
            }
            syn::UseTree::Glob(_) => {
                self.globs.push(path);
                return;
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                None
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                Some(name.rename.to_string())
            }
        };
        path.pop_if(|last| last == "self");
        if !is_exported {
            self.used.insert(path.clone());
        }
        if let Some(alias) = alias.or_else(|| path.last().cloned()) {
            self.aliases.insert(alias, path);
        }
    }
}

/// Collects the paths in code.
struct Paths<'a>(&'a mut BTreeSet<Names>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }

    /// `pub(super)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// syn does not parse macro calls, so the paths are collected from their tokens.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut module = Module::default();
        module.add_imports(&item.tree, Vec::new(), false);
        self.0.extend(module.used);
    }
}

impl Paths<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.0.insert(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.0.insert(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.0.insert(path);
    }
}

/// Whether an item with these attributes is compiled only for tests or fuzzing.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .any(|attribute| {
            let syn::Meta::List(list) = &attribute.meta else {
                return false;
            };
            let mut words = BTreeSet::new();
            Paths(&mut words).tokens(list.tokens.clone());
            ["test", "fuzzing"]
                .iter()
                .any(|word| words.contains(&vec![(*word).to_owned()]))
        })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Const(item) => item.ident.to_string(),
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Fn(item) => item.sig.ident.to_string(),
        syn::Item::Static(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Trait(item) => item.ident.to_string(),
        syn::Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}
