//! A folder of an object store: S3 and compatible stores, Google Cloud Storage, and Azure Blob
//! Storage. The crate `object_store` implements the protocols and signs requests; all its requests
//! go through landfall's transport.

mod aws_profile;
mod cloud_store;
#[cfg(any(test, feature = "testkit"))]
pub mod emulator;
mod http_client;
mod location;
mod object_changes;
mod object_writer;
mod objects;
mod protocol_fixes;

pub use self::cloud_store::{BlockingReader, block_on};
pub use self::location::BucketLocation;
pub use self::object_writer::{MAX_OBJECT_SIZE, ObjectWriter, UploadGuard};
pub use self::objects::{Bucket, BucketObject, ConditionalGet, OpenObject, PutOutcome};
pub use object_store::{PutMode, UpdateVersion};
