//! The fields of a package that are needed to select packages, from an index or a dpkg status file.

use super::offer::RelationKind;
use super::paragraph::Paragraph;

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

/// The names of the fields that are needed, in their usual case.
const NAMES: [&str; 23] = [
    "Package",
    "Version",
    "Architecture",
    "Multi-Arch",
    "Priority",
    "Essential",
    "Important",
    "Protected",
    "Pre-Depends",
    "Depends",
    "Conflicts",
    "Breaks",
    "Recommends",
    "Suggests",
    "Replaces",
    "Enhances",
    "Provides",
    "Filename",
    "SHA256",
    "SHA512",
    "Size",
    "Status",
    "Source",
];

impl<'t> PackageFields<'t> {
    pub(super) fn parse(paragraph: Paragraph<'t>) -> PackageFields<'t> {
        let mut fields = PackageFields::default();
        for (name, value) in paragraph.fields() {
            // field names are case-insensitive (deb822(5)), but nearly all have their usual case
            let field = match fields.field_mut(name) {
                Some(field) => Some(field),
                None => NAMES
                    .iter()
                    .find(|usual| usual.eq_ignore_ascii_case(name))
                    .and_then(|usual| fields.field_mut(usual)),
            };
            if let Some(field) = field {
                *field = value;
            }
        }
        fields
    }

    /// The field with this name; `None` if it is not one of [`NAMES`].
    fn field_mut(&mut self, name: &str) -> Option<&mut &'t str> {
        Some(match name {
            "Package" => &mut self.package,
            "Version" => &mut self.version,
            "Architecture" => &mut self.arch,
            "Multi-Arch" => &mut self.multi_arch,
            "Priority" => &mut self.priority,
            "Essential" => &mut self.essential,
            // `Important` is the earlier name of `Protected`
            "Important" | "Protected" => &mut self.important,
            "Pre-Depends" => &mut self.relations[0],
            "Depends" => &mut self.relations[1],
            "Conflicts" => &mut self.relations[2],
            "Breaks" => &mut self.relations[3],
            "Recommends" => &mut self.relations[4],
            "Suggests" => &mut self.relations[5],
            "Replaces" => &mut self.relations[6],
            "Enhances" => &mut self.relations[7],
            "Provides" => &mut self.provides,
            "Filename" => &mut self.path,
            "SHA256" => &mut self.sha256,
            "SHA512" => &mut self.sha512,
            "Size" => &mut self.size,
            "Status" => &mut self.status,
            "Source" => &mut self.built_from,
            _ => return None,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_a_field() {
        let mut fields = PackageFields::default();
        for name in NAMES {
            assert!(fields.field_mut(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_of_fields_ignore_case() {
        let text = "package: a\nPre-depends: b\nMULTI-ARCH: foreign\nsha256: c\n";
        let paragraph = crate::apt::paragraph::paragraphs(text).next().unwrap();
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
}
