//! Verifies signatures and attestations of images and files in the formats of Sigstore, without
//! network access, and signs images for a site.
//!
//! 1. [`SignaturePolicy`]: the rules of `verify:` in manifests and sites, with their keys;
//! 2. [`SignatureDocument`]: a signature as a registry stores it: cosign's payload with
//!    annotations, a DSSE envelope, or a Sigstore bundle;
//! 3. [`FileSignatures`]: a file and the signature files that are published next to it;
//! 4. `signed_content`: converts these formats into one, and checks that a signature is about the
//!    right digest;
//! 5. `requirement`: verifies signatures by keys, and by identities with `sigstore-verify`;
//! 6. [`VerifiedSignature`]: the result, as locks and reports contain it;
//! 7. [`ImageSigningKey`]: signs images as `cosign sign --key` does.
//!
//! [`LogQuery`] requests the log entry of a file's signature if it was published without the entry;
//! the caller sends the query. [`newest_trust_root`] verifies a newer trust root from a TUF
//! repository, which the caller reads.
//!
//! Begin with `policy.rs`.

mod file_signatures;
mod fuzz;
mod policy;
mod requirement;
mod signed_content;
mod signing_key;
mod trust_root;
mod verified;

pub use crate::file_signatures::{FileSignatures, SignedFile};
pub use crate::fuzz::image_signature as fuzz;
pub use crate::policy::{RuleSigners, RuleSubject, SignaturePolicy, SignatureRuleError};
pub use crate::requirement::SignatureFailure;
pub use crate::signed_content::{
    LogEntry, LogQuery, SIMPLE_SIGNING, SignatureDocument, SignatureFormat,
};
pub use crate::signing_key::{BUNDLE_TYPE, ImageSigningKey};
pub use crate::trust_root::{
    NewestTrustRoot, TufError, TufFetch, TufRepository, newest_trust_root,
};
pub use crate::verified::{SignerKind, VerifiedSignature, verified_list};
