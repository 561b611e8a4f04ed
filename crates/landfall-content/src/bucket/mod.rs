//! A folder of an object store: objects by key, in S3 and what speaks its protocol, Google Cloud
//! Storage and Azure Blob Storage. The crate `object_store` knows the protocols and signs; all its
//! requests go through landfall's transport.

#[allow(dead_code, reason = "bundles by ranges come next")]
mod cloud;
#[cfg(any(test, feature = "testkit"))]
pub mod emulator;
mod error;
#[allow(dead_code, reason = "bundles by ranges come next")]
mod folder;
mod layer;
#[allow(dead_code, reason = "bundles by ranges come next")]
mod location;
mod object_writer;
mod open_object;
mod parts;
mod profile;
mod service;
mod waiting;

pub use folder::{Bucket, Changed, Condition, Object, Put, Version};
pub use location::Location;
pub use object_writer::{ObjectWriter, UploadGuard};
pub use open_object::OpenObject;
pub use waiting::{Reader, wait};
