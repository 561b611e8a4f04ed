//! How a bundle with patches carries the blobs of each item: whole, as patches, or not at all.

use landfall_bundle::{PackPlan, PatchedBlob, RecipeSummary, UnpatchedReason};
use landfall_content::{EntryPart, LockEntry};
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, count_of, markdown_code, one_line};
use landfall_model::{Descriptor, Digest, human_size};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The member `patches` of a report.
#[derive(Debug, Serialize)]
pub(crate) struct PatchReport {
    /// Whether the sizes of patches are estimated.
    estimated: bool,
    /// The sums of all blobs, each counted once.
    #[serde(flatten)]
    sums: CarriedBytes,
    items: Vec<ItemPatches>,
    /// The number and size of the blobs that have no patch although making one was tried, by
    /// reason.
    #[serde(skip)]
    reasons: BTreeMap<UnpatchedReason, (usize, u64)>,
    /// The number of patched blobs.
    #[serde(skip)]
    patched: usize,
}

/// Sizes in bytes by how blobs are carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct CarriedBytes {
    /// Blobs that the bundle contains whole.
    #[serde(rename = "whole_bytes")]
    whole: u64,
    /// Blobs that the bundle omits.
    #[serde(rename = "omitted_bytes")]
    omitted: u64,
    /// Blobs for which the bundle contains patches.
    #[serde(rename = "patched_bytes")]
    patched: u64,
    /// The patches for the patched blobs.
    #[serde(rename = "patch_bytes")]
    patches: u64,
}

/// The blobs of an item.
#[derive(Debug, Serialize)]
struct ItemPatches {
    kind: EntryKind,
    name: String,
    #[serde(flatten)]
    sums: CarriedBytes,
    blobs: Vec<CarriedBlob>,
}

/// How a bundle carries a blob.
#[derive(Debug, Serialize)]
struct CarriedBlob {
    #[serde(flatten)]
    blob: Descriptor,
    #[serde(flatten)]
    form: CarriedForm,
}

#[derive(Debug, Serialize)]
#[serde(tag = "carried", rename_all = "lowercase")]
enum CarriedForm {
    Omitted,
    Patched {
        patch_bytes: u64,
        from: Vec<Digest>,
    },
    Whole {
        /// The reason why the blob has no patch, if making one was tried.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    },
}

impl CarriedBytes {
    fn add(&mut self, blob: &CarriedBlob) {
        let sum = match &blob.form {
            CarriedForm::Omitted => &mut self.omitted,
            CarriedForm::Whole { .. } => &mut self.whole,
            CarriedForm::Patched { patch_bytes, .. } => {
                self.patches = self.patches.saturating_add(*patch_bytes);
                &mut self.patched
            }
        };
        *sum = sum.saturating_add(blob.blob.size);
    }

    /// The size of the bundle's content.
    fn carried(&self) -> u64 {
        self.whole.saturating_add(self.patches)
    }

    /// `4.1 kB whole, 150 kB patched in 7 kB, 40 kB left out`, without parts that are 0.
    fn text(&self) -> String {
        let parts = [
            (self.whole, format!("{} whole", human_size(self.whole))),
            (
                self.patched,
                format!(
                    "{} patched in {}",
                    human_size(self.patched),
                    human_size(self.patches)
                ),
            ),
            (
                self.omitted,
                format!("{} left out", human_size(self.omitted)),
            ),
        ];
        let shown = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
        shown.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    }
}

impl PatchReport {
    /// Describes the bundle of `plan`, which is packed from `lock`.
    pub(crate) fn new(
        plan: &PackPlan,
        lock: &Lock,
        summary: &RecipeSummary,
        estimated: bool,
    ) -> PatchReport {
        let omitted: HashSet<&Digest> = plan.omitted.iter().map(|blob| &blob.digest).collect();
        let patched: HashMap<&Digest, &PatchedBlob> = summary
            .patched
            .iter()
            .map(|one| (&one.blob.digest, one))
            .collect();
        let unpatched: HashMap<&Digest, UnpatchedReason> = summary
            .unpatched
            .iter()
            .map(|one| (&one.blob.digest, one.reason))
            .collect();
        let form = |digest: &Digest| match patched.get(digest) {
            Some(one) => CarriedForm::Patched {
                patch_bytes: one.recipe_bytes,
                from: one.from.clone(),
            },
            None if omitted.contains(digest) => CarriedForm::Omitted,
            None => CarriedForm::Whole {
                reason: unpatched.get(digest).map(|reason| reason.text()),
            },
        };
        let mut sums = CarriedBytes::default();
        let mut counted = HashSet::new();
        let item = |entry: LockEntry| {
            let mut listed = BTreeSet::new();
            let mut item = ItemPatches {
                kind: entry.kind,
                name: entry.name,
                sums: CarriedBytes::default(),
                blobs: Vec::new(),
            };
            for EntryPart { descriptor, .. } in entry.parts {
                if !listed.insert(descriptor.digest.clone()) {
                    continue;
                }
                let blob = CarriedBlob {
                    form: form(&descriptor.digest),
                    blob: descriptor,
                };
                item.sums.add(&blob);
                if counted.insert(blob.blob.digest.clone()) {
                    sums.add(&blob);
                }
                item.blobs.push(blob);
            }
            item
        };
        let items = plan.included_entries(lock).map(item).collect();
        let mut reasons: BTreeMap<UnpatchedReason, (usize, u64)> = BTreeMap::new();
        for one in &summary.unpatched {
            let (count, bytes) = reasons.entry(one.reason).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(one.blob.size);
        }
        PatchReport {
            estimated,
            sums,
            items,
            reasons,
            patched: summary.patched.len(),
        }
    }

    /// The lines about the blobs that are carried as patches, and about the reasons why other blobs
    /// have no patch. With `per_item`, a line for each item follows.
    pub(crate) fn lines(&self, per_item: bool) -> String {
        let mut text = match self.patched {
            0 => "  patched           nothing\n".to_owned(),
            count => format!(
                "  patched           {} of {} in {}\n",
                count_of(count, "blob"),
                human_size(self.sums.patched),
                human_size(self.sums.patches)
            ),
        };
        for (reason, (count, bytes)) in &self.reasons {
            text += &format!(
                "  not patched       {} ({}): {}\n",
                count_of(*count, "blob"),
                human_size(*bytes),
                reason.text()
            );
        }
        for item in self.items.iter().filter(|_| per_item) {
            text += &format!("    {}: {}\n", one_line(&item.name), item.sums.text());
        }
        text
    }

    /// `about 20 kB instead of 240 kB`: the size of the bundle's content, and its size without
    /// patches.
    pub(crate) fn summary(&self) -> String {
        let without = self.sums.whole.saturating_add(self.sums.patched);
        format!(
            "about {} instead of {}",
            human_size(self.sums.carried()),
            human_size(without)
        )
    }

    /// The rows of a table: each item that has patches, and how its blobs are carried.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        let patched = self.items.iter().filter(|item| item.sums.patched > 0);
        patched.map(|item| {
            let CarriedBytes {
                whole,
                omitted,
                patched,
                patches,
            } = item.sums;
            let sizes = [whole, omitted, patched, patches].map(human_size);
            [vec![markdown_code(&item.name)], sizes.into()].concat()
        })
    }
}
