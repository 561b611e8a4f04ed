//! The packages that are installed on a machine: the output of `rpm -qa`, either plain or in the
//! format of `docs/how-to/packages.md`, which contains their relations too.

use super::metadata::malformed;
use super::pool::{NewPackage, Pool, RpmRelationKind, StoredRelation};
use super::primary::kind_of;
use super::relation::{RpmRelation, VersionSense};
use super::version::Evr;
use landfall_model::Failure;

const WHAT: &str = "list of installed packages";
/// The name under which RPM lists the keys of its keyring. They are not packages, and their
/// `provides` are not relations.
const KEY: &str = "gpg-pubkey";

/// Whether `text` is plain output of `rpm -qa`, which has no relations.
pub fn is_plain_list(text: &str) -> bool {
    !text.lines().any(|line| line.starts_with("package "))
}

/// Adds the packages in `text` to `pool` as installed packages. A plain list has no relations, so
/// the relations of each package are copied from the same package of a source. The packages of the
/// sources must therefore be added to the pool first.
///
/// # Errors
/// If a line has neither of the two formats.
pub fn read_base(text: &str, pool: &mut Pool) -> Result<(), Failure> {
    let mut new = NewPackage::default();
    let mut is_key = false;
    for (number, line) in text.lines().enumerate() {
        let bad = || {
            // the list is a file of the user: it may contain anything, and lines of any length
            let line: String = line.chars().take(80).collect();
            malformed(
                WHAT,
                format!("line {} is '{}'", number + 1, line.escape_default()),
            )
        };
        let line = line.trim();
        let Some((word, rest)) = line.split_once(' ') else {
            if !(line.is_empty() || line.starts_with(&format!("{KEY}-"))) {
                pool.add(&mut new, None);
                add_plain_line(line, pool).ok_or_else(bad)?;
            }
            continue;
        };
        let kind = match word {
            "package" => {
                pool.add(&mut new, None);
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
        // paths and rich dependencies contain blanks that do not separate a version
        let is_whole_line = kind == RpmRelationKind::Files || rest.starts_with('(');
        let relation = if is_whole_line {
            RpmRelation::any(rest)
        } else {
            RpmRelation::parse(rest).ok_or_else(bad)?
        };
        let name = pool.strings().add(relation.name);
        let evr = pool.strings().add(relation.evr);
        new.relations[kind as usize].push(StoredRelation {
            name,
            sense: relation.sense,
            evr,
        });
    }
    pool.add(&mut new, None);
    Ok(())
}

/// Starts a package in `new`. Every package provides its own name with its own version.
fn begin(new: &mut NewPackage, pool: &mut Pool, name: &str, evr: &str, arch: &str) {
    let [name, evr, arch] = [name, evr, arch].map(|text| pool.strings().add(text));
    (new.name, new.evr, new.arch) = (Some(name), Some(evr), Some(arch));
    new.relations[RpmRelationKind::Provides as usize].push(StoredRelation {
        name,
        sense: VersionSense::SAME,
        evr,
    });
}

/// Adds the package of a line of plain `rpm -qa`: `name-version-release.arch`. Returns `None` if
/// the line has another format.
fn add_plain_line(line: &str, pool: &mut Pool) -> Option<()> {
    let (rest, arch) = line.rsplit_once('.')?;
    let (rest, release) = rest.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let same = pool.ids().find(|id| {
        // the line has no epoch
        let evr = Evr::parse(pool.evr(*id));
        pool.name(*id) == name
            && pool.arch(*id) == arch
            && evr.version == version
            && evr.release == Some(release)
    });
    let mut new = NewPackage::default();
    match same {
        Some(same) => pool.copy_relations(same, &mut new),
        None => begin(&mut new, pool, name, &format!("{version}-{release}"), arch),
    }
    pool.add(&mut new, None);
    if let Some(same) = same {
        pool.copy_listed_files(same);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::pool::StringPool;
    use super::*;

    #[test]
    fn both_formats_are_read() {
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
    fn packages_of_a_plain_list_get_their_relations_from_the_sources() {
        let mut pool = Pool::default();
        let mut new = NewPackage::default();
        begin(&mut new, &mut pool, "a", "1:1-1", "x86_64");
        let name = pool.strings().add("liba.so");
        new.relations[RpmRelationKind::Provides as usize].push(StoredRelation {
            name,
            sense: VersionSense::ANY,
            evr: StringPool::EMPTY,
        });
        pool.add(&mut new, Some(0));
        read_base("a-1-1.x86_64\n", &mut pool).unwrap();
        pool.index();
        assert_eq!(pool.named("liba.so").len(), 2);
        let base = pool.ids().last().unwrap();
        assert_eq!((pool.evr(base), pool.package(base).source), ("1:1-1", None));
    }

    #[test]
    fn keys_of_rpm_are_skipped() {
        let text = "package gpg-pubkey 0:54db67d5-6b02c7f0 (none)\nprovides gpg(R, Inc. (key 2) <s@x.test>) = 4:75-6b\n\
                    package a 0:1-1 noarch\nprovides b\ngpg-pubkey-54db67d5-6b02c7f0\nc-1-1.noarch\n";
        let mut pool = Pool::default();
        read_base(text, &mut pool).unwrap();
        let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
        assert_eq!(all, ["a-1-1.noarch", "c-1-1.noarch"]);
        assert!(!is_plain_list(text) && is_plain_list("c-1-1.noarch\n"));
    }

    #[test]
    fn a_malformed_list_is_an_error_with_its_line() {
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
