//! The primary index of a repository: its packages with their relations.
//!
//! The format is that of createrepo, defined by its `xml_dump_primary.c`.

use super::metadata::malformed;
use super::pool::{NewPackage, PackageId, Pool, RpmRelationKind, StoredRelation, StringPool};
use super::relation::{RichDependency, VersionSense};
use super::repomd::element_location;
use super::xml::{XmlElement, XmlEvent, walk};
use landfall_model::{Digest, Failure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;

const WHAT: &str = "primary index";

/// The maximum number of packages in the primary indexes of all sources of a machine. Each takes up
/// to 150 bytes of memory, besides its texts. Fedora has 70,000 packages for one architecture.
const MAX_PACKAGES: usize = 1_000_000;

/// Reads a `primary.xml`, and adds its packages for one of `architectures` to `pool`, as packages
/// of `source`.
pub(super) fn read_primary(
    reader: impl BufRead,
    source: u16,
    architectures: &[&str],
    pool: &mut Pool,
) -> Result<(), Failure> {
    let mut primary = PrimaryReader {
        pool,
        new: NewPackage::default(),
        kind: None,
        checksum: String::new(),
        evr: String::new(),
        is_wanted: false,
    };
    walk(reader, WHAT, &mut |step| match step {
        XmlEvent::Start(element) => primary.start(element),
        XmlEvent::End(name, text) => primary.end(name, text, source, architectures),
    })
}

struct PrimaryReader<'p> {
    pool: &'p mut Pool,
    new: NewPackage,
    /// The kind of the relations that are being read.
    kind: Option<RpmRelationKind>,
    /// The algorithm of the checksum that is being read.
    checksum: String,
    /// A buffer for epoch, version and release.
    evr: String,
    /// Whether the package is a binary package for one of the architectures.
    is_wanted: bool,
}

impl PrimaryReader<'_> {
    fn start(&mut self, element: &XmlElement<'_>) -> Result<(), Failure> {
        match element.name() {
            "package" => {
                self.is_wanted = element.attribute("type")?.is_none_or(|kind| kind == "rpm")
            }
            "version" => {
                self.read_evr(element)?;
                self.new.evr = Some(self.pool.strings.add(&self.evr));
            }
            "checksum" => self.checksum = element.attribute("type")?.unwrap_or_default(),
            // without a size, a package is refused only if it is chosen
            "size" => {
                let size = element.attribute("package")?;
                self.new.size = size.and_then(|size| size.parse().ok()).unwrap_or(0);
            }
            "location" => {
                if let Some(path) = element_location(element)? {
                    self.new.path = Some(self.pool.strings.add(&path));
                }
            }
            "entry" => self.entry(element)?,
            name => {
                if let Some(kind) = kind_of(name) {
                    self.kind = Some(kind);
                }
            }
        }
        Ok(())
    }

    fn end(
        &mut self,
        name: &str,
        text: &str,
        source: u16,
        architectures: &[&str],
    ) -> Result<(), Failure> {
        match name {
            "name" => self.new.name = Some(self.pool.strings.add(text)),
            "arch" => {
                // packages for other architectures are dropped at once to save memory
                self.is_wanted &= architectures.contains(&text);
                self.new.arch = Some(self.pool.strings.add(text));
            }
            "checksum" => self.new.digest = digest(&self.checksum, text),
            "file" if self.is_wanted => {
                let name = self.pool.strings.add(text);
                let stored = StoredRelation {
                    name,
                    sense: VersionSense::ANY,
                    evr: StringPool::EMPTY,
                };
                self.new.relations[RpmRelationKind::Files as usize].push(stored);
            }
            "package" => {
                // like for dnf; one without a name or version cannot be locked and is not offered
                if self.new.arch.is_none() {
                    self.new.arch = Some(self.pool.strings.add("noarch"));
                }
                if self.is_wanted && self.pool.count() >= MAX_PACKAGES {
                    let why = format!("there are more than {MAX_PACKAGES} packages");
                    return Err(malformed(WHAT, why));
                }
                if self.is_wanted {
                    self.pool.add(&mut self.new, Some(source));
                } else {
                    self.new.clear();
                }
            }
            name if kind_of(name).is_some() => self.kind = None,
            _ => {}
        }
        Ok(())
    }

    /// Adds a relation to the package.
    fn entry(&mut self, element: &XmlElement<'_>) -> Result<(), Failure> {
        let Some(kind) = self.kind.filter(|_| self.is_wanted) else {
            return Ok(());
        };
        let mut name = None;
        let mut sense = VersionSense::ANY;
        let strings = &mut self.pool.strings;
        element.attributes(|key, value| match key {
            "name" => name = Some(strings.add(&value)),
            "flags" => sense = VersionSense::parse(&value).unwrap_or(VersionSense::ANY),
            _ => {}
        })?;
        // dnf ignores such a relation, too
        let Some(name) = name else { return Ok(()) };
        // the version attributes of an `entry` without flags are ignored
        let mut evr = StringPool::EMPTY;
        if sense != VersionSense::ANY {
            self.read_evr(element)?;
            evr = self.pool.strings.add(&self.evr);
        }
        self.new.relations[kind as usize].push(StoredRelation { name, sense, evr });
        Ok(())
    }

    /// Reads epoch, version and release from the attributes of `element` into `evr`.
    fn read_evr(&mut self, element: &XmlElement<'_>) -> Result<(), Failure> {
        let evr = &mut self.evr;
        evr.clear();
        // the attributes may have any order
        let mut release = String::new();
        element.attributes(|key, value| match key {
            "epoch" if value != "0" && !value.is_empty() => evr.insert_str(0, &format!("{value}:")),
            "ver" => evr.push_str(&value),
            "rel" if !value.is_empty() => release = format!("-{value}"),
            _ => {}
        })?;
        evr.push_str(&release);
        Ok(())
    }
}

/// Returns the kind of relation that RPM calls `name`.
pub(super) fn kind_of(name: &str) -> Option<RpmRelationKind> {
    Some(match name {
        "provides" => RpmRelationKind::Provides,
        "requires" => RpmRelationKind::Requires,
        "conflicts" => RpmRelationKind::Conflicts,
        "obsoletes" => RpmRelationKind::Obsoletes,
        "recommends" => RpmRelationKind::Recommends,
        "suggests" => RpmRelationKind::Suggests,
        "supplements" => RpmRelationKind::Supplements,
        "enhances" => RpmRelationKind::Enhances,
        _ => return None,
    })
}

/// Returns the digest of a checksum of `kind`; `None` if the checksum is malformed, or can be
/// forged.
pub(super) fn digest(kind: &str, hex: &str) -> Option<Digest> {
    let text = format!("{kind}:{hex}").to_ascii_lowercase();
    text.parse().ok().filter(|_| is_strong(kind))
}

/// Whether checksums of `kind` cannot be forged, unlike those of SHA-1 and MD5.
pub(super) fn is_strong(kind: &str) -> bool {
    ["sha256", "sha512"]
        .iter()
        .any(|strong| strong.eq_ignore_ascii_case(kind))
}

const FILELISTS: &str = "filelists index";

/// Whether createrepo lists `path` in the primary index: configuration and programs. Every other
/// file is only in the list of all files.
pub(super) fn is_in_primary(path: &str) -> bool {
    path.starts_with("/etc/") || path.contains("bin/") || path == "/usr/lib/sendmail"
}

/// The kinds of relations that may name files.
pub(super) const FILE_RELATIONS: [RpmRelationKind; 6] = [
    RpmRelationKind::Requires,
    RpmRelationKind::Conflicts,
    RpmRelationKind::Recommends,
    RpmRelationKind::Suggests,
    RpmRelationKind::Supplements,
    RpmRelationKind::Enhances,
];

/// Returns the paths that relations of the packages in `pool` name. Only these files and requested
/// files affect the selection.
pub(super) fn related_paths(pool: &Pool) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for id in pool.ids() {
        for relation in FILE_RELATIONS
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind))
        {
            // most relations name no file: this check is much faster than parsing them all
            if !relation.name.contains('/') {
                continue;
            }
            let Some(rich) = RichDependency::parse_relation(&relation) else {
                continue;
            };
            rich.each_relation(&mut |one| {
                if one.name.starts_with('/') && !paths.contains(one.name) {
                    paths.insert(one.name.to_owned());
                }
            });
        }
    }
    paths
}

/// Records in `pool` which packages of `source` contain one of the paths `wanted`, according to the
/// `filelists.xml` in `reader`.
pub(super) fn read_filelists(
    reader: impl BufRead,
    source: u16,
    wanted: &BTreeSet<String>,
    pool: &mut Pool,
) -> Result<(), Failure> {
    let own = pool
        .ids()
        .filter(|id| pool.package(*id).source == Some(source));
    // `pkgid` is the checksum of the package in the primary index
    let by_digest: HashMap<String, PackageId> = own
        .filter_map(|id| Some((pool.package(id).digest.as_ref()?.hex(), id)))
        .collect();
    let mut package = None;
    walk(reader, FILELISTS, &mut |step| {
        match step {
            XmlEvent::Start(element) if element.name() == "package" => {
                package = element
                    .attribute("pkgid")?
                    .and_then(|id| by_digest.get(&id.to_ascii_lowercase()).copied());
            }
            // millions of files: only those of interest are kept
            XmlEvent::End("file", path) => {
                if let Some(package) = package.filter(|_| wanted.contains(path)) {
                    pool.add_file(package, path);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

// The licences and vendors of packages in the primary index, for SBOMs. The solver does not need
// them, so they are not in the pool.

/// The licence and the vendor of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageLabels {
    /// The licence: an expression of SPDX identifiers or of Fedora's older names.
    pub license: Option<String>,
    /// The vendor, such as `Fedora Project`.
    pub vendor: Option<String>,
}

/// Reads the primary index in `reader`. Returns the labels of each package whose digest
/// (hexadecimal) is in `digests`, by digest.
pub(super) fn read_labels(
    reader: impl BufRead,
    digests: &BTreeSet<String>,
) -> Result<BTreeMap<String, PackageLabels>, Failure> {
    let mut found = BTreeMap::new();
    let mut labels = PackageLabels::default();
    let mut digest = String::new();
    walk(reader, "primary index", &mut |step| {
        let XmlEvent::End(name, text) = step else {
            return Ok(());
        };
        match name {
            // `rpm:license` and `rpm:vendor`: the reader removes the prefix
            "license" => labels.license = non_empty(text),
            "vendor" => labels.vendor = non_empty(text),
            "checksum" => digest = text.to_ascii_lowercase(),
            "package" => {
                let labels = std::mem::take(&mut labels);
                if digests.contains(&digest) {
                    found.insert(std::mem::take(&mut digest), labels);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_given_packages_are_read() {
        let package = |digest: &str, format: &str| {
            format!(
                "<package type=\"rpm\"><checksum type=\"sha256\" pkgid=\"YES\">{digest}</checksum>\
             <format>{format}</format></package>"
            )
        };
        let text = format!(
            "<metadata>{}{}{}</metadata>",
            package(
                "AA",
                "<rpm:license>MIT AND X&amp;Y</rpm:license><rpm:vendor>V</rpm:vendor>"
            ),
            package("bb", "<rpm:license>GPL</rpm:license>"),
            package("cc", "<rpm:license></rpm:license>"),
        );
        let wanted = BTreeSet::from(["aa".to_owned(), "cc".to_owned()]);
        let found = read_labels(text.as_bytes(), &wanted).unwrap();
        let label = |text: &str| Some(text.to_owned());
        let first = PackageLabels {
            license: label("MIT AND X&Y"),
            vendor: label("V"),
        };
        assert_eq!(
            found,
            BTreeMap::from([
                ("aa".into(), first),
                ("cc".into(), PackageLabels::default())
            ])
        );
    }
}
