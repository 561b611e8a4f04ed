//! The rules about references in documents: a file for each subject, and a row of the table for
//! each function that the walk calls.
//!
//! The walk finds the rules in this table only. A value that is a reference as a whole, and texts
//! within values, need no rule.

mod charts;
mod encoded;
mod images;
mod not_references;
mod pipelines;
mod prefix;
mod sources;
mod split;

pub(crate) use prefix::KUSTOMIZE_NAME;

use crate::walk::ReferenceRules;

pub(super) use self::charts::{InstalledChart, add_helm_repositories};

/// Every rule. If several claim an entry of a mapping or a value, the first one gets it.
pub(super) static RULES: ReferenceRules = ReferenceRules {
    skips: not_references::skips,
    is_secret: encoded::is_secret,
    keeps: not_references::keeps,
    references: &[
        images::plan_references,
        prefix::kustomize_references,
        prefix::prefix_references,
        split::suffixed_references,
        sources::gitops_references,
        split::split_references,
    ],
    candidates: &[
        images::pod_status,
        images::node_images,
        images::package_without_host,
        images::plan_candidates,
        images::built_image,
        prefix::kustomize_candidates,
        prefix::kubeadm_candidates,
        charts::chart_candidates,
        charts::listed_charts,
        split::suffixed_candidates,
        sources::git_sources,
        sources::gitops_candidates,
        split::split_candidates,
    ],
    entry: &[
        not_references::mark_kept,
        images::mark_container_entry,
        images::mark_kubermatic_repository,
        images::mark_variable,
        images::mark_image_key,
        images::mark_listed_image,
        pipelines::mark_job_image,
        encoded::mark_secret,
        encoded::mark_encoded,
    ],
    item: &[
        images::mark_pod_status,
        images::mark_container,
        pipelines::mark_service,
        images::mark_flag_value,
    ],
    claim: &[
        pipelines::claim_step_image,
        images::claim_named_image,
        images::claim_flag,
        images::claim_assignment,
        images::claim_below_images,
        images::claim_full_name,
    ],
    decode: encoded::decode,
};
