//! Signatures of images, charts and files: rules of manifests and sites, signatures by keys and
//! identities, and cosign's verdicts on the same items.

mod charts;
mod cosign;
mod file_keys;
mod files;
mod keyless;
mod kyverno;
mod rules;
mod verdicts;

pub use cosign::COSIGN;
