//! The paragraphs of an index or a dpkg status file (deb822(5)), and their fields that are needed
//! to select packages.

use super::universe::RelationKind;
use landfall_model::Failure;
use std::collections::BTreeSet;

/// The needed fields of a paragraph. A field that the paragraph lacks is empty.
#[derive(Default)]
pub(super) struct PackageFields<'t> {
    pub(super) package: &'t str,
    pub(super) version: &'t str,
    pub(super) arch: &'t str,
    pub(super) multi_arch: &'t str,
    pub(super) priority: &'t str,
    pub(super) essential: &'t str,
    pub(super) important: &'t str,
    /// The relation fields, in the order in which apt reads them; [`KINDS`] has the kind of each.
    pub(super) relations: [&'t str; 8],
    pub(super) provides: &'t str,
    pub(super) path: &'t str,
    pub(super) sha256: &'t str,
    pub(super) sha512: &'t str,
    pub(super) size: &'t str,
    pub(super) status: &'t str,
    pub(super) built_from: &'t str,
}

/// Returns a field, to set it.
type PackageField = for<'f, 't> fn(&'f mut PackageFields<'t>) -> &'f mut &'t str;

/// The fields that are needed, by their names in the usual case.
const FIELDS: [(&str, PackageField); 23] = [
    ("Package", |fields| &mut fields.package),
    ("Version", |fields| &mut fields.version),
    ("Architecture", |fields| &mut fields.arch),
    ("Multi-Arch", |fields| &mut fields.multi_arch),
    ("Priority", |fields| &mut fields.priority),
    ("Essential", |fields| &mut fields.essential),
    // `Important` is the earlier name of `Protected`
    ("Important", |fields| &mut fields.important),
    ("Protected", |fields| &mut fields.important),
    ("Pre-Depends", |fields| &mut fields.relations[0]),
    ("Depends", |fields| &mut fields.relations[1]),
    ("Conflicts", |fields| &mut fields.relations[2]),
    ("Breaks", |fields| &mut fields.relations[3]),
    ("Recommends", |fields| &mut fields.relations[4]),
    ("Suggests", |fields| &mut fields.relations[5]),
    ("Replaces", |fields| &mut fields.relations[6]),
    ("Enhances", |fields| &mut fields.relations[7]),
    ("Provides", |fields| &mut fields.provides),
    ("Filename", |fields| &mut fields.path),
    ("SHA256", |fields| &mut fields.sha256),
    ("SHA512", |fields| &mut fields.sha512),
    ("Size", |fields| &mut fields.size),
    ("Status", |fields| &mut fields.status),
    ("Source", |fields| &mut fields.built_from),
];

impl<'t> PackageFields<'t> {
    pub(super) fn parse(paragraph: Paragraph<'t>) -> PackageFields<'t> {
        let mut fields = PackageFields::default();
        for (name, value) in paragraph.fields() {
            // field names are case-insensitive (deb822(5)), but nearly all have their usual case
            let known = FIELDS.iter().find(|(usual, _)| *usual == name);
            let known = known.or_else(|| {
                let mut all = FIELDS.iter();
                all.find(|(usual, _)| usual.eq_ignore_ascii_case(name))
            });
            if let Some((_, field)) = known {
                *field(&mut fields) = value;
            }
        }
        fields
    }

    /// Returns the name and version of the source package. `Source` is `name`, `name (version)`, or
    /// absent if both are equal to those of the package.
    pub(super) fn built_from(&self) -> (&'t str, &'t str) {
        match self.built_from.split_once('(') {
            // the version is present only if it differs, as after a rebuild without changes to the
            // source
            Some((name, version)) => (name.trim(), version.trim_end_matches(')').trim()),
            None if self.built_from.is_empty() => (self.package, self.version),
            None => (self.built_from, self.version),
        }
    }
}

/// The kinds of [`PackageFields::relations`]; `None` for fields whose relations are ignored. The
/// names in those fields still get ids, whose order decides between equal providers.
pub(super) const KINDS: [Option<RelationKind>; 8] = [
    Some(RelationKind::PreDepends),
    Some(RelationKind::Depends),
    Some(RelationKind::Conflicts),
    Some(RelationKind::Breaks),
    Some(RelationKind::Recommends),
    Some(RelationKind::Suggests),
    None,
    None,
];

// Paragraphs of fields (deb822(5)), parsed lazily and without copies: an index has millions of
// fields, and only a few of them are needed.

/// The text of a paragraph, without the empty line that ends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paragraph<'t>(&'t str);

pub(super) fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['\n', '\r']);
        if rest.is_empty() {
            return None;
        }
        let (one, left) = rest.split_at(paragraph_end(rest));
        rest = left;
        Some(Paragraph(one))
    })
}

/// The length of the paragraph at the start of `text`, without the empty line after it. As in apt,
/// a line that contains only carriage returns is empty.
fn paragraph_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut ends = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let is_before_empty_line = |end: &usize| {
        let next = bytes[*end..].iter().find(|byte| **byte != b'\r');
        next == Some(&b'\n')
    };
    ends.find(is_before_empty_line).unwrap_or(text.len())
}

impl<'t> Paragraph<'t> {
    /// Returns the unchanged text with exactly one newline at its end.
    pub(super) fn to_text(self) -> String {
        format!("{}\n", self.0.trim_end_matches('\n'))
    }

    /// Iterates over the names and values of the fields in their order. Values are trimmed;
    /// continuation lines are left unchanged.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'t str, &'t str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                // a line that begins with a blank continues the field
                let mut end = 0;
                loop {
                    let line = memchr::memchr(b'\n', &rest.as_bytes()[end..]);
                    end = line.map_or(rest.len(), |at| end + at + 1);
                    if !matches!(rest.as_bytes().get(end), Some(b' ' | b'\t')) {
                        break;
                    }
                }
                let (field, left) = rest.split_at(end);
                rest = left;
                // lines that begin with `#` are comments
                let colon =
                    memchr::memchr(b':', field.as_bytes()).filter(|_| field.as_bytes()[0] != b'#');
                if let Some(colon) = colon {
                    return Some((&field[..colon], field[colon + 1..].trim_ascii()));
                }
            }
            None
        })
    }

    /// Returns the value of the first field with this name, ignoring ASCII case.
    pub(super) fn field(self, field_name: &str) -> Option<&'t str> {
        self.fields()
            .find(|(name, _)| name.eq_ignore_ascii_case(field_name))
            .map(|(_, value)| value)
    }
}

/// The maximum number of packages in an index. Each takes up to 500 bytes of memory. Debian 12 has
/// 65,000 packages for one architecture.
const MAX_PACKAGES: usize = 500_000;

/// The maximum number of relations in an index: dependencies, conflicts and virtual packages. Each
/// takes up to 130 bytes of memory. Debian 12 has 470,000.
const MAX_RELATIONS: usize = 4_000_000;

/// Checks that `index`, the text of the file `name`, does not list too much.
///
/// # Errors
/// If it has more packages or relations than allowed.
pub fn check_index_size(name: &str, index: &str) -> Result<(), Failure> {
    check_counts(name, index, MAX_PACKAGES, MAX_RELATIONS)
}

fn check_counts(name: &str, index: &str, packages: usize, relations: usize) -> Result<(), Failure> {
    let too_many = |limit: usize, what: &'static str| {
        Err(Failure::failed(format!(
            "{name} lists more than {limit} {what}"
        )))
    };
    let mut count = 0;
    for (number, paragraph) in paragraphs(index).enumerate() {
        if number >= packages {
            return too_many(packages, "packages");
        }
        let fields = PackageFields::parse(paragraph);
        for text in fields.relations.iter().chain([&fields.provides]) {
            count += memchr::memchr2_iter(b',', b'|', text.as_bytes()).count();
            count += usize::from(!text.is_empty());
        }
        if count > relations {
            return too_many(relations, "dependencies and other relations");
        }
    }
    Ok(())
}

/// A version of a package in an index, without its relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedVersion<'t> {
    /// The name of the package.
    pub name: &'t str,
    /// The version as the index writes it.
    pub version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub arch: &'t str,
}

/// Returns the versions that `index` lists for the packages `names`.
pub fn listed_versions<'t>(index: &'t str, names: &BTreeSet<&str>) -> Vec<IndexedVersion<'t>> {
    let mut found = Vec::new();
    for paragraph in paragraphs(index) {
        let Some(name) = paragraph
            .field("Package")
            .filter(|name| names.contains(name))
        else {
            continue;
        };
        if let (Some(version), Some(arch)) =
            (paragraph.field("Version"), paragraph.field("Architecture"))
        {
            found.push(IndexedVersion {
                name,
                version,
                arch,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_a_field() {
        for (name, field) in FIELDS {
            let text = format!("{}: x\n", name.to_lowercase());
            let paragraph = paragraphs(&text).next().unwrap();
            let mut fields = PackageFields::parse(paragraph);
            assert_eq!(*field(&mut fields), "x", "{name}");
        }
    }

    #[test]
    fn names_of_fields_ignore_case() {
        let text = "package: a\nPre-depends: b\nMULTI-ARCH: foreign\nsha256: c\n";
        let paragraph = super::paragraphs(text).next().unwrap();
        let fields = PackageFields::parse(paragraph);
        assert_eq!(
            [
                fields.package,
                fields.relations[0],
                fields.multi_arch,
                fields.sha256
            ],
            ["a", "b", "foreign", "c"]
        );
    }

    #[test]
    fn fields_are_read_with_continuation_lines_and_without_comments() {
        let text = "\nA: 1\nB:  two\n three\n\tfour\n# no: field\nC:\n\n\nA: 2";
        let read: Vec<Vec<(&str, &str)>> =
            paragraphs(text).map(|one| one.fields().collect()).collect();
        assert_eq!(
            read,
            [
                vec![("A", "1"), ("B", "two\n three\n\tfour"), ("C", "")],
                vec![("A", "2")]
            ]
        );
        assert_eq!(
            paragraphs(text).next().and_then(|one| one.field("b")),
            Some("two\n three\n\tfour")
        );
        assert_eq!(paragraphs("").count() + paragraphs("\n\n").count(), 0);
        // apt 2.6 reads the same paragraphs from an index with these line endings
        let text = "A: 1\nB: two\n three\n\nA: 2\n\nA: 3\n";
        let expected = [
            vec![("A", "1"), ("B", "two\n three")],
            vec![("A", "2")],
            vec![("A", "3")],
        ];
        for empty_line in ["\n\r\n", "\r\n\n", "\n\r\r\n"] {
            let text = text.replace("\n\n", empty_line);
            let read: Vec<Vec<_>> = paragraphs(&text)
                .map(|one| one.fields().collect())
                .collect();
            assert_eq!(read, expected, "{empty_line:?}");
        }
        let windows = text.replace('\n', "\r\n");
        let read: Vec<&str> = paragraphs(&windows)
            .filter_map(|one| one.field("A"))
            .collect();
        assert_eq!(read, ["1", "2", "3"]);
    }

    #[test]
    fn packages_and_relations_are_counted() {
        let one = "Package: a\nVersion: 1\nDepends: b, c | d\nProvides: e\nTag: x, y, z\n\n";
        let check = |packages: usize, relations: usize| {
            let checked = check_counts("Packages", &one.repeat(3), packages, relations);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(3, 12), Ok(()));
        let error = check(2, 12).unwrap_err();
        assert_eq!(error, "Packages lists more than 2 packages");
        let error = check(3, 11).unwrap_err();
        assert!(error.contains("more than 11 dependencies"), "{error}");
        // the smallest packages and relations that there are
        let index = "Package: a\n\n".repeat(MAX_PACKAGES + 1);
        assert!(check_index_size("Packages", &index).is_err());
        let index = format!("Depends: {}\n", "a,".repeat(MAX_RELATIONS));
        assert!(check_index_size("Packages", &index).is_err());
    }
}
