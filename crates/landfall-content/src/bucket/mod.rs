//! A folder of an object store: S3 and compatible stores, Google Cloud Storage, and Azure Blob
//! Storage. The crate `object_store` implements the protocols and signs requests; all its requests
//! go through landfall's transport.

mod aws_profile;
mod block_on;
mod bucket_object;
mod cloud_store;
#[cfg(any(test, feature = "testkit"))]
pub mod emulator;
mod error;
mod http_client;
mod location;
mod multipart;
mod object_changes;
mod object_writer;
mod objects;
mod open_object;
mod protocol_fixes;

pub use block_on::{BlockingReader, block_on};
pub use bucket_object::{BucketObject, ConditionalGet, ObjectVersion, PutCondition, PutOutcome};
pub use location::BucketLocation;
pub use multipart::MAX_OBJECT_SIZE;
pub use object_writer::{ObjectWriter, UploadGuard};
pub use objects::Bucket;
pub use open_object::OpenObject;
