//! The fields of a package that are needed to select packages, from an index or a dpkg status file.

use super::offer::RelationKind;
use super::paragraph::Paragraph;

/// The fields of a paragraph that are needed; empty if the paragraph lacks them.
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

impl<'t> PackageFields<'t> {
    pub(super) fn parse(paragraph: Paragraph<'t>) -> PackageFields<'t> {
        let mut fields = PackageFields::default();
        for (name, value) in paragraph.fields() {
            let field = match name {
                "Package" => &mut fields.package,
                "Version" => &mut fields.version,
                "Architecture" => &mut fields.arch,
                "Multi-Arch" => &mut fields.multi_arch,
                "Priority" => &mut fields.priority,
                "Essential" => &mut fields.essential,
                // `Important` is the earlier name of `Protected`
                "Important" | "Protected" => &mut fields.important,
                "Pre-Depends" => &mut fields.relations[0],
                "Depends" => &mut fields.relations[1],
                "Conflicts" => &mut fields.relations[2],
                "Breaks" => &mut fields.relations[3],
                "Recommends" => &mut fields.relations[4],
                "Suggests" => &mut fields.relations[5],
                "Replaces" => &mut fields.relations[6],
                "Enhances" => &mut fields.relations[7],
                "Provides" => &mut fields.provides,
                "Filename" => &mut fields.path,
                "SHA256" => &mut fields.sha256,
                "SHA512" => &mut fields.sha512,
                "Size" => &mut fields.size,
                "Status" => &mut fields.status,
                "Source" => &mut fields.built_from,
                _ => continue,
            };
            *field = value;
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
