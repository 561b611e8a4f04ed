//! Signatures of images: rules of manifests and sites, signatures by keys and identities, and
//! cosign's verdicts on the same images.

mod charts;
mod cosign;
mod keyless;
mod kyverno;
mod rules;
