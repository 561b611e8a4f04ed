//! Verifies signatures and attestations of images in the formats of Sigstore, without network
//! access, and signs images for a site.
//!
//! 1. [`SignaturePolicy`]: the rules of `verify:` in manifests and sites, with their keys;
//! 2. [`SignatureDocument`]: a signature as a registry stores it: cosign's payload with
//!    annotations, a DSSE envelope, or a Sigstore bundle;
//! 3. `signed_content`: converts these formats into one, and checks that a signature is about the
//!    right digest;
//! 4. `requirement`: verifies signatures by keys, and by identities with `sigstore-verify`;
//! 5. [`VerifiedSignature`]: the result, as locks and reports contain it;
//! 6. [`ImageSigningKey`]: signs images as `cosign sign --key` does.
//!
//! Begin with `policy.rs`.

mod crypto;
mod document;
mod fuzz;
mod pattern;
mod policy;
mod requirement;
mod signed_content;
mod signer_key;
mod signing_key;
mod statement;
mod trust_root;
mod verified;

pub use document::{SIMPLE_SIGNING, SignatureDocument, SignatureFormat};
pub use fuzz::image_signature as fuzz;
pub use policy::{SignaturePolicy, SignatureRuleError, SiteRuleError};
pub use requirement::SignatureFailure;
pub use signing_key::{BUNDLE_TYPE, ImageSigningKey, SigningKeyError};
pub use verified::{SignerKind, VerifiedSignature, read_verified};
