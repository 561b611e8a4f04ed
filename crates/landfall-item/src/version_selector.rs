//! Where the versions of an item are listed, and `select` in a manifest: an entry that names no
//! version, but a rule by which `landfall update` selects versions and writes them into the entry.

use crate::item_kind::{EntryReader, ManifestResult};
use crate::{ChartName, PackageSetRequest, ProviderAddress};
use landfall_model::document::{ChartVersions, SourceSpan, UpdateRule, VersionsFrom};
use landfall_model::{Failure, ImageRef, VersionSelection};
use std::num::NonZeroUsize;

/// Where `landfall update` finds the versions of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// The tags of a repository.
    Tags {
        /// An image of the repository.
        image: ImageRef,
        /// The text before the version in a tag.
        before: String,
        /// The text after the version in a tag.
        after: String,
    },
    /// The index of an HTTP repository of charts.
    Chart(ChartVersions),
    /// The tags of the git repository at this URL.
    GitTags(String),
    /// The versions that a provider registry lists.
    Provider(ProviderAddress),
    /// The package repositories of a machine.
    Packages(Box<PackageVersions>),
    /// The `from:` of a variable: a text, a JSON document or the index of a chart repository.
    Document(VersionsFrom),
}

impl VersionSource {
    /// All tags of the repository of `image`.
    pub(crate) fn tags(image: ImageRef) -> VersionSource {
        VersionSource::Tags {
            image,
            before: String::new(),
            after: String::new(),
        }
    }

    /// The versions of a chart: the index of its HTTP repository, or else the tags of its
    /// repository in a registry.
    pub(crate) fn of_chart(name: &ChartName) -> VersionSource {
        let Some(repo) = &name.repository else {
            return VersionSource::tags(name.reference.clone());
        };
        VersionSource::Chart(ChartVersions {
            repo: repo.clone(),
            chart: name.chart.clone(),
        })
    }

    /// The package repositories of `machine`. The package is filled in for each pinned version.
    pub(crate) fn machine(machine: PackageSetRequest) -> VersionSource {
        VersionSource::Packages(Box::new(PackageVersions {
            machine,
            package: String::new(),
            before: String::new(),
            after: String::new(),
        }))
    }
}

/// A package whose versions are listed in the repositories of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVersions {
    /// The machine whose repositories have the package.
    pub machine: PackageSetRequest,
    /// The name of the package, with the architecture if it is written.
    pub package: String,
    /// The text in the package's version before the part that moves.
    pub before: String,
    /// The text in the package's version after the part that moves.
    pub after: String,
}

/// The keys of entries of one kind that have to do with `select`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectKeys {
    /// The key of the list to which the versions are written.
    pub(crate) versions: &'static str,
    /// The keys that cannot be combined with `select`.
    pub(crate) others: &'static [&'static str],
}

/// Checks that the keys of an entry fit together. `rule` is the value of `select`.
pub(crate) fn check_select(
    rule: Option<&UpdateRule>,
    keys: SelectKeys,
    reader: EntryReader<'_>,
) -> ManifestResult<()> {
    let has = |key: &&str| reader.node.key_span(key).is_some();
    let Some(rule) = rule else {
        let keys = ["newest", "except", keys.versions];
        let lone = keys.into_iter().find(has);
        return match lone {
            Some(key) => Err(reader.at(key).fault(
                format!("`{key}` has no effect without `select`"),
                Some(&format!("add `select: \">=1.2 <2\"`, or remove `{key}`")),
            )),
            None => Ok(()),
        };
    };
    if let Some(key) = keys.others.iter().find(|key| has(key)) {
        return Err(reader.at(key).fault(
            format!("`{key}` cannot be combined with `select`"),
            Some("remove one of the two"),
        ));
    }
    if rule.keep.is_some() {
        return Err(reader.at("select").fault(
            "`keep` cannot be combined with `select`",
            Some("write `newest` beside `select`"),
        ));
    }
    Ok(())
}

/// The values of an entry with `select`, with variables filled in.
pub(crate) struct SelectRule<'e> {
    pub(crate) rule: &'e UpdateRule,
    pub(crate) newest: Option<NonZeroUsize>,
    pub(crate) except: &'e [String],
    pub(crate) versions: &'e [String],
}

impl SelectRule<'_> {
    /// The selector of the item `name`, whose versions are listed by `source` and written to the
    /// list `key`.
    pub(crate) fn selector(
        &self,
        name: String,
        source: VersionSource,
        key: &'static str,
        reader: EntryReader<'_>,
    ) -> ManifestResult<VersionSelector> {
        let at = reader.at("select");
        let fault =
            |error: Failure, at: &SourceSpan| at.fault(error.to_string(), error.help.as_deref());
        let mut selection =
            VersionSelection::new(&self.rule.policy).map_err(|error| fault(error, &at))?;
        for (index, text) in self.except.iter().enumerate() {
            let at = reader.item_at("except", index);
            selection.exclude(text).map_err(|error| fault(error, &at))?;
        }
        Ok(VersionSelector {
            name,
            rule: self.rule.completed(reader.context.min_age.as_ref()),
            selection,
            count: self.newest.map_or(usize::MAX, NonZeroUsize::get),
            source,
            key,
            versions: self.versions.to_vec(),
            at,
        })
    }
}

/// An entry that selects the versions of an item by a rule.
#[derive(Debug, Clone)]
pub struct VersionSelector {
    /// The item without a version, as messages name it.
    pub name: String,
    /// The rule as it is written. The manifest's minimum age is filled in.
    pub rule: UpdateRule,
    /// The versions that the rule selects.
    pub selection: VersionSelection,
    /// How many of the newest are selected at most.
    pub count: usize,
    /// Where the versions are listed.
    pub source: VersionSource,
    /// The key of the entry's list of versions.
    pub key: &'static str,
    /// The versions that the entry has now.
    pub versions: Vec<String>,
    /// The position of the rule.
    pub at: SourceSpan,
}
