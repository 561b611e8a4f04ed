//! A folder of an object store: objects by key, in S3 and what speaks its protocol, Google Cloud
//! Storage and Azure Blob Storage. The crate `object_store` knows the protocols and signs; all its
//! requests go through landfall's transport.

mod aws_profile;
mod block_on;
#[allow(dead_code, reason = "bundles by ranges come next")]
mod cloud_store;
#[cfg(any(test, feature = "testkit"))]
pub mod emulator;
mod error;
mod http_client;
#[allow(dead_code, reason = "bundles by ranges come next")]
mod location;
mod multipart;
mod object_writer;
#[allow(dead_code, reason = "bundles by ranges come next")]
mod objects;
mod open_object;
mod protocol_fixes;

pub use block_on::{BlockingReader, block_on};
pub use location::BucketLocation;
pub use object_writer::{ObjectWriter, UploadGuard};
pub use objects::{Bucket, BucketObject, ConditionalGet, ObjectVersion, PutCondition, PutOutcome};
pub use open_object::OpenObject;
