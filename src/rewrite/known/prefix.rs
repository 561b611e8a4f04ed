//! What several references have in common: `imageRepository: registry.k8s.io`, `global.imageRegistry`.

use super::{Known, LISTED, Meant, Repository, Verdict, other_hosts};
use crate::model::Destination;
use crate::model::ImageRef;
use std::collections::{BTreeMap, BTreeSet};

impl Known {
    /// What `text` means as the beginning of every locked repository below it; of those alone whose rest is
    /// in `only`, where that is not empty. It is known if all of them keep their rest and go to one place.
    pub(in crate::rewrite) fn lookup_prefix(&self, text: &str, only: &[&str]) -> Verdict {
        let Some(prefix) = normal(text) else { return Verdict::Unknown };
        let (host, path) = prefix.split_once('/').map_or((&*prefix, ""), |(host, path)| (host, path));
        let aliases = other_hosts(host).map(|host| format!("{host}/{path}").trim_end_matches('/').to_owned());
        let prefixes: Vec<String> = std::iter::once(prefix.clone()).chain(aliases).collect();
        let mut places: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (rest, repository) in prefixes.iter().flat_map(|prefix| below(&self.repositories, prefix)) {
            if !only.is_empty() && !only.contains(&rest) {
                continue;
            }
            for image in &repository.images {
                let place = image.to.first().map(Destination::to_string).unwrap_or_default();
                let base = place.strip_suffix(rest).and_then(|base| base.strip_suffix('/'));
                places.entry(base.unwrap_or_default().to_owned()).or_default().insert(&repository.name);
            }
        }
        let mut found = places.iter();
        match (found.next(), found.next()) {
            (Some((base, _)), None) if *base == prefix => Verdict::Settled(None),
            (Some((base, _)), None) if !base.is_empty() => match place(base) {
                Some(to) => Verdict::Known(Meant { item: prefix, to: Some(to), digest: None }),
                None => Verdict::Unknown,
            },
            (Some(_), _) => {
                let names: Vec<&str> = places.values().flatten().copied().take(LISTED).collect();
                Verdict::Left(format!(
                    "what the lock has below it does not go to one place under its own name: {}",
                    names.join(", ")
                ))
            }
            (None, _) if below(&self.settled, &prefix).next().is_some() => Verdict::Settled(None),
            (None, _) => Verdict::Unknown,
        }
    }

    /// Whether the repository `name` goes to `place`, among others; `None` where it is not locked.
    pub(in crate::rewrite) fn goes_to(&self, name: &str, place: &str) -> Option<bool> {
        let images = &self.repositories.get(name)?.images;
        Some(images.iter().all(|image| image.to.iter().any(|to| to.to_string() == place)))
    }
}

/// The repositories below `prefix`, each with the rest of its name.
fn below<'k>(
    names: &'k BTreeMap<String, Repository>,
    prefix: &str,
) -> impl Iterator<Item = (&'k str, &'k Repository)> {
    let start = format!("{prefix}/");
    let from = names.range(start.clone()..).take_while({
        let start = start.clone();
        move |(name, _)| name.starts_with(&start)
    });
    from.map(move |(name, repository)| (&name[start.len()..], repository))
}

/// `docker.io/istio` for `istio`, `quay.io` for `Quay.IO/`.
fn normal(text: &str) -> Option<String> {
    let below: ImageRef = format!("{}/x/x", text.trim_end_matches('/')).parse().ok()?;
    below.name().strip_suffix("/x/x").map(str::to_owned)
}

/// A registry and a path, which may be empty.
fn place(base: &str) -> Option<Destination> {
    let (registry, repository) = base.split_once('/').unwrap_or((base, ""));
    (!registry.is_empty()).then(|| Destination { registry: registry.into(), repository: repository.into() })
}
