//! What a machine has already: the output of `rpm -qa`, plain or in the form that
//! `docs/how-to/packages.md` names, which says what packages provide and need too.

use super::error::YumError;
use super::pool::{NewPackage, Pool, RpmRelationKind, StoredPackage};
use super::primary::kind_of;
use super::relation::{RpmRelation, VersionSense};
use super::version::Evr;

const WHAT: &str = "list of installed packages";
/// How RPM lists the keys that it checks packages with. They are no packages, and what they provide
/// is no relation.
const KEY: &str = "gpg-pubkey";

/// Whether `text` is plain output of `rpm -qa`, which does not say what packages provide.
pub fn is_plain_list(text: &str) -> bool {
    !text.lines().any(|line| line.starts_with("package "))
}

/// Adds the packages that `text` lists to `pool`, as installed ones. The sources are there already:
/// what a plain list does not say of a package, the same package of a source says.
///
/// # Errors
/// When a line is none of such a list.
pub fn read_base(text: &str, pool: &mut Pool) -> Result<(), YumError> {
    let mut new = NewPackage::default();
    let mut is_key = false;
    for (number, line) in text.lines().enumerate() {
        let bad = || {
            let line: String = line.chars().take(80).collect();
            YumError::malformed(
                WHAT,
                format!("line {} is '{}'", number + 1, line.escape_default()),
            )
        };
        let line = line.trim();
        let Some((word, rest)) = line.split_once(' ') else {
            if !(line.is_empty() || line.starts_with(&format!("{KEY}-"))) {
                pool.take(&mut new, None);
                plain(line, pool).ok_or_else(bad)?;
            }
            continue;
        };
        let kind = match word {
            "package" => {
                pool.take(&mut new, None);
                let [name, evr, arch] = rest.split(' ').collect::<Vec<_>>()[..] else {
                    return Err(bad());
                };
                is_key = name == KEY;
                if !is_key {
                    begin(
                        &mut new,
                        pool,
                        name,
                        evr.strip_prefix("0:").unwrap_or(evr),
                        arch,
                    );
                }
                continue;
            }
            _ if is_key => continue,
            "file" => RpmRelationKind::Files,
            word => kind_of(word).ok_or_else(bad)?,
        };
        if new.name.is_none() {
            return Err(bad());
        }
        let is_plain = kind == RpmRelationKind::Files || rest.starts_with('(');
        let relation = if is_plain {
            RpmRelation::any(rest)
        } else {
            RpmRelation::parse(rest).ok_or_else(bad)?
        };
        let (name, evr) = (
            pool.strings().add(relation.name),
            pool.strings().add(relation.evr),
        );
        new.relations[kind as usize].push(StoredPackage {
            name,
            sense: relation.sense,
            evr,
        });
    }
    pool.take(&mut new, None);
    Ok(())
}

fn begin(new: &mut NewPackage, pool: &mut Pool, name: &str, evr: &str, arch: &str) {
    let [name, evr, arch] = [name, evr, arch].map(|text| pool.strings().add(text));
    (new.name, new.evr, new.arch) = (Some(name), Some(evr), Some(arch));
    new.relations[RpmRelationKind::Provides as usize].push(StoredPackage {
        name,
        sense: VersionSense::SAME,
        evr,
    });
}

/// A line of plain `rpm -qa`: `name-version-release.arch`.
fn plain(line: &str, pool: &mut Pool) -> Option<()> {
    let (rest, arch) = line.rsplit_once('.')?;
    let (rest, release) = rest.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let is_same = |evr: &str| {
        let evr = Evr::parse(evr);
        evr.version == version && evr.release == Some(release)
    };
    let same = pool
        .ids()
        .find(|id| pool.name(*id) == name && pool.arch(*id) == arch && is_same(pool.evr(*id)));
    let mut new = NewPackage::default();
    match same {
        Some(same) => pool.copy_relations(same, &mut new),
        None => begin(&mut new, pool, name, &format!("{version}-{release}"), arch),
    }
    pool.take(&mut new, None);
    if let Some(same) = same {
        pool.copy_listed_files(same);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yum::strings::StringPool;

    #[test]
    fn both_forms_are_read() {
        let mut pool = Pool::default();
        let text = "package bash 0:5.1-2.el9 x86_64\nprovides bash = 5.1-2.el9\nprovides config(bash) = 5.1\n\
                    requires /bin/sh\nrequires (a if b)\nfile /usr/bin/a file\npackage x 1:2-3 noarch\n\nplain-name-2.0-1.el9.x86_64\n";
        read_base(text, &mut pool).unwrap();
        pool.index();
        let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
        assert_eq!(
            all,
            [
                "bash-5.1-2.el9.x86_64",
                "x-1:2-3.noarch",
                "plain-name-2.0-1.el9.x86_64"
            ]
        );
        let first = pool.ids().next().unwrap();
        let requires: Vec<String> = pool
            .relations(first, RpmRelationKind::Requires)
            .map(|one| one.to_string())
            .collect();
        assert_eq!(requires, ["/bin/sh", "(a if b)"]);
        assert_eq!(pool.named("/usr/bin/a file"), [first]);
        assert_eq!(pool.named("plain-name").len(), 1);
        assert_eq!(
            pool.providers(RpmRelation::parse("x > 9").unwrap()).len(),
            1,
            "the epoch counts"
        );
    }

    #[test]
    fn a_plain_list_learns_from_the_sources_what_a_package_provides() {
        let mut pool = Pool::default();
        let mut new = NewPackage::default();
        begin(&mut new, &mut pool, "a", "1:1-1", "x86_64");
        let name = pool.strings().add("liba.so");
        new.relations[RpmRelationKind::Provides as usize].push(StoredPackage {
            name,
            sense: VersionSense::ANY,
            evr: StringPool::EMPTY,
        });
        pool.take(&mut new, Some(0));
        read_base("a-1-1.x86_64\n", &mut pool).unwrap();
        pool.index();
        assert_eq!(pool.named("liba.so").len(), 2);
        let base = pool.ids().last().unwrap();
        assert_eq!((pool.evr(base), pool.package(base).source), ("1:1-1", None));
    }

    #[test]
    fn the_keys_of_rpm_are_no_packages() {
        let text = "package gpg-pubkey 0:54db67d5-6b02c7f0 (none)\nprovides gpg(R, Inc. (key 2) <s@x.test>) = 4:75-6b\n\
                    package a 0:1-1 noarch\nprovides b\ngpg-pubkey-54db67d5-6b02c7f0\nc-1-1.noarch\n";
        let mut pool = Pool::default();
        read_base(text, &mut pool).unwrap();
        let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
        assert_eq!(all, ["a-1-1.noarch", "c-1-1.noarch"]);
        assert!(!is_plain_list(text) && is_plain_list("c-1-1.noarch\n"));
    }

    #[test]
    fn what_is_no_such_list_names_its_line() {
        for text in [
            "ii  bash 5.1 amd64",
            "requires x",
            "package a",
            "word",
            "package a 1-1 x86_64\nprovides a = 1 2",
        ] {
            let error = read_base(text, &mut Pool::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains("line"), "{text}: {error}");
        }
    }
}
