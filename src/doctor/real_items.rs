//! Looks up real items of a lock at their source and at their destination: a host that answers may
//! still refuse the items.

use super::rights::{PrivateRegistry, check_rights};
use super::steps::DiagnosisSteps;
use landfall_content::PartOrigin;
use landfall_content::registry::RegistrySessions;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};
use std::collections::BTreeMap;

/// An item of a lock for each registry.
#[derive(Debug, Default)]
pub(crate) struct RealItems {
    /// A repository and a manifest in it, by registry.
    manifests: BTreeMap<String, (String, Digest)>,
    private: Option<PrivateRegistry>,
}

impl RealItems {
    /// One item of `lock` for each registry.
    pub(crate) fn from_lock(lock: &Lock) -> RealItems {
        let mut manifests = BTreeMap::new();
        for entry in lock.each_entry() {
            // The last part is the manifest of the whole item.
            let Some(PartOrigin::Manifest {
                registry,
                repository,
            }) = entry.parts.last().map(|part| &part.origin)
            else {
                continue;
            };
            manifests
                .entry(registry.to_string())
                .or_insert_with(|| (repository.to_string(), entry.top.digest.clone()));
        }
        RealItems {
            manifests,
            private: None,
        }
    }

    /// Adds the private registry of `mapping`, the destination of the items of `lock`. Without a
    /// lock, no repository is known there.
    #[must_use]
    pub(crate) fn with_private_registry(
        self,
        lock: Option<&Lock>,
        mapping: &DestinationMap,
        is_read_only: bool,
    ) -> RealItems {
        RealItems {
            private: Some(PrivateRegistry::new(lock, mapping, is_read_only)),
            ..self
        }
    }

    /// The registries of the lock.
    pub(crate) fn registries(&self) -> impl Iterator<Item = &str> {
        self.manifests.keys().map(String::as_str)
    }

    /// Adds the steps about the items at the registry `host`.
    pub(super) async fn check(
        &self,
        sessions: &RegistrySessions,
        host: &str,
        steps: &mut DiagnosisSteps,
    ) {
        if let Some(private) = self.private.as_ref().filter(|private| private.is_at(host)) {
            return match sessions.destination(host).await {
                Ok(session) => check_rights(&session, private, steps).await,
                Err(error) => steps.no("push", error.to_string()),
            };
        }
        let Some((repository, digest)) = self.manifests.get(host) else {
            return;
        };
        let name = format!("{host}/{repository}@{digest}");
        let found = match sessions.upstream(host).await {
            Ok(session) => {
                session
                    .head_manifest(repository, &digest.to_string(), false)
                    .await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(_)) => steps.ok("item", format!("{name} of the lock exists")),
            Ok(None) => {
                steps.no("item", format!("{name} of the lock does not exist"));
                steps.fix("lock it again, or remove it from the manifest");
            }
            Err(error) => {
                steps.no(
                    "item",
                    format!("{name} of the lock cannot be read: {error}"),
                );
                steps.fix("use an account that may read there");
            }
        }
    }
}
