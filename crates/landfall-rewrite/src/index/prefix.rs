//! Looks up prefixes that several references share: `imageRepository: registry.k8s.io`,
//! `global.imageRegistry`.

use super::lookup::{
    IndexedRepository, LISTED, ReferenceLookup, ReferenceReplacement, RepositoryMap,
};
use super::reference_index::ReferenceIndex;
use landfall_model::{Destination, ImageRef, alias_hosts};
use std::collections::{BTreeMap, BTreeSet};

impl ReferenceIndex {
    /// Looks up `text` as the prefix of the locked repositories below it. If `only` is not empty,
    /// repositories whose remaining path is not in `only` are ignored. The prefix is known if all
    /// repositories that are not ignored keep their remaining path below one common destination.
    pub fn lookup_prefix(&self, text: &str, only: &[&str]) -> ReferenceLookup {
        let Some(prefix) = canonical(text) else {
            return ReferenceLookup::Unknown;
        };
        let (host, path) = prefix
            .split_once('/')
            .map_or((&*prefix, ""), |(host, path)| (host, path));
        // `k8s.gcr.io` and `registry.k8s.io` are prefixes of the same images
        let aliases =
            alias_hosts(host).map(|host| format!("{host}/{path}").trim_end_matches('/').to_owned());
        let prefixes: Vec<String> = std::iter::once(prefix.clone()).chain(aliases).collect();
        let mut bases: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (rest, repository) in prefixes
            .iter()
            .flat_map(|prefix| below(&self.repositories, prefix))
        {
            if !only.is_empty() && !only.contains(&rest) {
                continue;
            }
            for image in &repository.images {
                let to = image
                    .to
                    .first()
                    .map(Destination::to_string)
                    .unwrap_or_default();
                let base = to
                    .strip_suffix(rest)
                    .and_then(|base| base.strip_suffix('/'));
                bases
                    .entry(base.unwrap_or_default().to_owned())
                    .or_default()
                    .insert(&repository.name);
            }
        }
        let mut found = bases.iter();
        match (found.next(), found.next()) {
            (Some((base, _)), None) if *base == prefix => ReferenceLookup::Settled(None),
            (Some((base, _)), None) if !base.is_empty() => match destination(base) {
                Some(to) => ReferenceLookup::Known(ReferenceReplacement {
                    item: prefix,
                    to: Some(to),
                    digest: None,
                }),
                None => ReferenceLookup::Unknown,
            },
            (Some(_), second) => {
                let why = match second {
                    Some(_) => "have different destinations",
                    None => "do not keep their path at their destination",
                };
                let names: Vec<&str> = bases.values().flatten().copied().take(LISTED).collect();
                let names = names.join(", ");
                ReferenceLookup::Left(format!(
                    "the locked images below this prefix {why}: {names}"
                ))
            }
            (None, _) if below(&self.settled, &prefix).next().is_some() => {
                ReferenceLookup::Settled(None)
            }
            (None, _) => ReferenceLookup::Unknown,
        }
    }

    /// Whether `to` is a destination of every image of the repository `name`. `None` if the lock
    /// does not contain the repository.
    pub fn is_delivered_to(&self, name: &str, to: &str) -> Option<bool> {
        let images = &self.repositories.get(name)?.images;
        Some(
            images
                .iter()
                .all(|image| image.to.iter().any(|one| one.to_string() == to)),
        )
    }
}

/// The repositories below `prefix`, each with its remaining path.
fn below<'k>(
    names: &'k RepositoryMap,
    prefix: &str,
) -> impl Iterator<Item = (&'k str, &'k IndexedRepository)> {
    let start = format!("{prefix}/");
    let from = names.range(start.clone()..).take_while({
        let start = start.clone();
        move |(name, _)| name.starts_with(&start)
    });
    from.map(move |(name, repository)| (&name[start.len()..], repository))
}

/// The canonical form of a prefix: `docker.io/istio` for `istio`, `quay.io` for `Quay.IO/`.
fn canonical(text: &str) -> Option<String> {
    let below: ImageRef = format!("{}/x/x", text.trim_end_matches('/')).parse().ok()?;
    below.name().strip_suffix("/x/x").map(str::to_owned)
}

/// Splits a prefix into registry and path, which may be empty.
fn destination(base: &str) -> Option<Destination> {
    let (registry, repository) = base.split_once('/').unwrap_or((base, ""));
    (!registry.is_empty()).then(|| Destination {
        registry: registry.into(),
        repository: repository.into(),
    })
}
