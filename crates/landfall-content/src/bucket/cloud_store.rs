//! Opens an object store, with the credentials that the tools of its cloud would find.

use super::aws_profile::load_profile;
use super::http_client::TransportClient;
use super::location::{BucketLocation, BucketProtocol};
use super::protocol_fixes::ProtocolFixes;
use landfall_http::{ErrorKind, HttpError, Transport};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// The operations that landfall needs from an object store.
pub(super) trait CloudStore: ObjectStore + MultipartStore {
    /// Returns the signer for presigned URLs, if the store supports them.
    fn signer(&self) -> Option<&dyn Signer>;
}

macro_rules! signs {
    ($($store:ty),*) => {
        $(impl CloudStore for $store {
            fn signer(&self) -> Option<&dyn Signer> {
                Some(self)
            }
        })*
    };
}
signs!(
    object_store::aws::AmazonS3,
    object_store::gcp::GoogleCloudStorage,
    object_store::azure::MicrosoftAzure
);

#[cfg(any(test, feature = "testkit"))]
impl CloudStore for object_store::memory::InMemory {
    fn signer(&self) -> Option<&dyn Signer> {
        None
    }
}

/// Opens the object store of `location` without sending a request. Fails if a setting in the
/// environment or the user's configuration files is invalid.
pub(super) fn open(
    location: &BucketLocation,
    transport: &Transport,
) -> Result<Arc<dyn CloudStore>, HttpError> {
    let service = ProtocolFixes(TransportClient(transport.clone()));
    // the transport retries, so the crate must not retry on top of it
    let retry = RetryConfig {
        max_retries: 0,
        retry_timeout: Duration::MAX,
        ..RetryConfig::default()
    };
    let bucket = &location.bucket;
    let opened = match location.protocol {
        BucketProtocol::S3 => {
            let environment = AmazonS3Builder::from_env();
            let builder = with_profile(environment).map_err(|why| setting_error(location, why))?;
            // the crate refuses http unless it is allowed, although the user has written the scheme
            let allow_http = is_plain(&builder, AmazonS3ConfigKey::Endpoint)
                || is_plain(&builder, AmazonS3ConfigKey::S3Endpoint);
            let builder = if allow_http {
                builder.with_allow_http(true)
            } else {
                builder
            };
            let builder = builder
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_http_connector(service);
            builder
                .build()
                .map(|store| Arc::new(store) as Arc<dyn CloudStore>)
        }
        BucketProtocol::Google => {
            let builder = GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry);
            builder
                .with_http_connector(service)
                .build()
                .map(|store| Arc::new(store) as Arc<dyn CloudStore>)
        }
        BucketProtocol::Azure => {
            let builder = MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry);
            builder
                .with_http_connector(service)
                .build()
                .map(|store| Arc::new(store) as Arc<dyn CloudStore>)
        }
    };
    opened.map_err(|error| setting_error(location, error.to_string()))
}

fn setting_error(location: &BucketLocation, why: String) -> HttpError {
    HttpError::new(ErrorKind::Local, why).about(location.to_string())
}

/// Whether the user has set an endpoint with plain http.
fn is_plain(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> bool {
    builder
        .get_config_value(&key)
        .is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn non_empty_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Adds credentials and region of the user's AWS profile, if the environment does not set them.
fn with_profile(builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
    let has = |key| builder.get_config_value(&key).is_some();
    // the sources that `from_env` reads; if it has found one, the profile must not replace it
    let has_account = has(AmazonS3ConfigKey::AccessKeyId)
        || has(AmazonS3ConfigKey::WebIdentityTokenFile)
        || has(AmazonS3ConfigKey::ContainerCredentialsRelativeUri)
        || has(AmazonS3ConfigKey::ContainerCredentialsFullUri);
    let has_region = has(AmazonS3ConfigKey::Region) || has(AmazonS3ConfigKey::DefaultRegion);
    if has_account && has_region {
        return Ok(builder);
    }
    let profile = match load_profile(non_empty_variable, !has_account) {
        // a broken profile does not matter if only the region is missing
        Err(_) if has_account => return Ok(builder),
        profile => profile?,
    };
    let account = [
        ("aws_access_key_id", AmazonS3ConfigKey::AccessKeyId),
        ("aws_secret_access_key", AmazonS3ConfigKey::SecretAccessKey),
        ("aws_session_token", AmazonS3ConfigKey::Token),
    ];
    let region = [("region", AmazonS3ConfigKey::Region)];
    let account = account.into_iter().filter(|_| !has_account);
    let wanted = account.chain(region.into_iter().filter(|_| !has_region));
    Ok(
        wanted.fold(builder, |builder, (name, key)| match profile.get(name) {
            Some(value) => builder.with_config(key, value),
            None => builder,
        }),
    )
}
