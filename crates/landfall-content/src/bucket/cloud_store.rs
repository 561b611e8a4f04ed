//! Opens an object store, with the credentials that the tools of its cloud would find.

use super::aws_profile::{AwsProfile, load_profile};
use super::http_client::TransportClient;
use super::location::{BucketLocation, BucketProtocol};
use super::protocol_fixes::ProtocolFixes;
use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::Uri;
use landfall_http::{ByteStream, ErrorKind, HttpError, Transport};
use landfall_model::redact_urls;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{ObjectStore, RetryConfig};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use url::Url;

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
            let mut builder = s3_settings(settings(std::env::vars_os(), "AWS_"))
                .and_then(with_profile)
                .and_then(checked_endpoint)
                .map_err(|why| setting_error(location, why))?;
            // the crate refuses http unless it is allowed, although the user has written the scheme
            if is_plain(&builder, AmazonS3ConfigKey::Endpoint)
                || is_plain(&builder, AmazonS3ConfigKey::S3Endpoint)
            {
                builder = builder.with_allow_http(true);
            }
            let builder = builder
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_http_connector(service);
            builder.build().map(shared)
        }
        BucketProtocol::Google => {
            let builder = google_settings().map_err(|why| setting_error(location, why))?;
            let builder = builder.with_bucket_name(bucket).with_retry(retry);
            builder.with_http_connector(service).build().map(shared)
        }
        BucketProtocol::Azure => {
            let builder = azure_settings(settings(std::env::vars_os(), "AZURE_"))
                .map_err(|why| setting_error(location, why))?;
            let builder = builder.with_container_name(bucket).with_retry(retry);
            builder.with_http_connector(service).build().map(shared)
        }
    };
    opened.map_err(|error| {
        let why = error.to_string();
        if why.contains(NO_ACCOUNT) {
            let why = "no storage account is named; set AZURE_STORAGE_ACCOUNT \
                       (AZURE_STORAGE_CONNECTION_STRING is not read)";
            return setting_error(location, why.to_owned());
        }
        setting_error(location, why)
    })
}

/// The message of the crate if the settings for Azure name no account.
const NO_ACCOUNT: &str = "Account must be specified";

fn shared(store: impl CloudStore) -> Arc<dyn CloudStore> {
    Arc::new(store)
}

fn setting_error(location: &BucketLocation, why: String) -> HttpError {
    HttpError::new(ErrorKind::Local, why).about(location.to_string())
}

/// Whether the user has set an endpoint with plain http.
fn is_plain(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> bool {
    builder
        .get_config_value(&key)
        .and_then(|endpoint| Some(endpoint.split_once("://")?.0.eq_ignore_ascii_case("http")))
        .unwrap_or_default()
}

// The settings in the environment. `from_env` of the builders takes them as they are, and later
// requests panic if a header or URL is not valid: an empty endpoint, a secret with a line break.

/// Returns the variables whose names begin with `prefix`, with their names as keys of the builders.
/// As for the tools of the clouds, an empty variable counts as unset. The line break at the end of
/// a mounted secret is not a part of it.
fn settings(
    environment: impl Iterator<Item = (OsString, OsString)>,
    prefix: &'static str,
) -> impl Iterator<Item = (String, String)> {
    environment.filter_map(move |(name, value)| {
        let name = name.to_str().filter(|name| name.starts_with(prefix))?;
        let value = value.to_str()?.trim();
        (!value.is_empty()).then(|| (name.to_ascii_lowercase(), value.to_owned()))
    })
}

fn s3_settings(
    mut settings: impl Iterator<Item = (String, String)>,
) -> Result<AmazonS3Builder, String> {
    settings.try_fold(AmazonS3Builder::new(), |builder, (name, value)| {
        let Ok(key) = name.parse::<AmazonS3ConfigKey>() else {
            return Ok(builder);
        };
        if value.contains(char::is_control) {
            let name = name.to_ascii_uppercase();
            return Err(format!("{name} contains a control character"));
        }
        Ok(builder.with_config(key, value))
    })
}

fn checked_endpoint(builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
    for key in [
        AmazonS3ConfigKey::Endpoint,
        AmazonS3ConfigKey::S3Endpoint,
        AmazonS3ConfigKey::StsEndpoint,
        AmazonS3ConfigKey::MetadataEndpoint,
    ] {
        check_endpoint(builder.get_config_value(&key))?;
    }
    Ok(builder)
}

fn google_settings() -> Result<GoogleCloudStorageBuilder, String> {
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Some(path) = non_empty_variable("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (name, value) in settings(std::env::vars_os(), "GOOGLE_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    check_endpoint(builder.get_config_value(&GoogleConfigKey::BaseUrl))?;
    Ok(builder)
}

/// The variables of the Azure CLI that the crate does not know.
const AZURE_CLI: [(&str, AzureConfigKey); 2] = [
    ("azure_storage_account", AzureConfigKey::AccountName),
    ("azure_storage_key", AzureConfigKey::AccessKey),
];

fn azure_settings(
    settings: impl Iterator<Item = (String, String)>,
) -> Result<MicrosoftAzureBuilder, String> {
    let settings: BTreeMap<String, String> = settings.collect();
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in &settings {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    for (name, key) in AZURE_CLI {
        if let Some(value) = settings.get(name)
            && builder.get_config_value(&key).is_none()
        {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = non_empty_variable("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    for key in [
        AzureConfigKey::Endpoint,
        AzureConfigKey::AuthorityHost,
        AzureConfigKey::MsiEndpoint,
    ] {
        check_endpoint(builder.get_config_value(&key))?;
    }
    Ok(builder)
}

/// Fails if an endpoint is not an http or https URL.
fn check_endpoint(endpoint: Option<String>) -> Result<(), String> {
    let Some(endpoint) = endpoint else {
        return Ok(());
    };
    let is_http = |url: Url| matches!(url.scheme(), "http" | "https");
    let has_host = |uri: Uri| uri.authority().is_some();
    // as both crates, because either may refuse what the other accepts
    if Url::parse(&endpoint).is_ok_and(is_http) && endpoint.parse::<Uri>().is_ok_and(has_host) {
        return Ok(());
    }
    let endpoint = redact_urls(&endpoint);
    Err(format!(
        "the endpoint '{endpoint}' is not a URL; write http://… or https://…"
    ))
}

fn non_empty_variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

/// The settings that the environment does not have, and that are read from the profile.
struct MissingSettings {
    account: bool,
    region: bool,
    endpoint: bool,
}

/// Adds credentials, region and endpoint of the user's AWS profile, if the environment does not set
/// them.
fn with_profile(builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
    let has = |key| builder.get_config_value(&key).is_some();
    // if the environment has an account, the profile must not replace it
    let has_account = has(AmazonS3ConfigKey::AccessKeyId)
        || has(AmazonS3ConfigKey::WebIdentityTokenFile)
        || has(AmazonS3ConfigKey::ContainerCredentialsRelativeUri)
        || has(AmazonS3ConfigKey::ContainerCredentialsFullUri);
    let has_region = has(AmazonS3ConfigKey::Region) || has(AmazonS3ConfigKey::DefaultRegion);
    let has_endpoint = has(AmazonS3ConfigKey::Endpoint)
        || has(AmazonS3ConfigKey::S3Endpoint)
        || non_empty_variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if has_account && has_region && has_endpoint {
        return Ok(builder);
    }
    let profile = match load_profile(non_empty_variable, !has_account) {
        // a broken profile does not matter if the account is known
        Err(_) if has_account => return Ok(builder),
        profile => profile?,
    };
    let missing = MissingSettings {
        account: !has_account,
        region: !has_region,
        endpoint: !has_endpoint,
    };
    Ok(with_settings(builder, &profile, &missing))
}

/// Adds the missing settings that the profile has.
fn with_settings(
    builder: AmazonS3Builder,
    profile: &AwsProfile,
    missing: &MissingSettings,
) -> AmazonS3Builder {
    let settings = [
        (
            missing.account,
            "aws_access_key_id",
            AmazonS3ConfigKey::AccessKeyId,
        ),
        (
            missing.account,
            "aws_secret_access_key",
            AmazonS3ConfigKey::SecretAccessKey,
        ),
        (
            missing.account,
            "aws_session_token",
            AmazonS3ConfigKey::Token,
        ),
        (missing.region, "region", AmazonS3ConfigKey::Region),
        // without it, requests for another service would be sent to Amazon
        (
            missing.endpoint,
            "endpoint_url",
            AmazonS3ConfigKey::Endpoint,
        ),
    ];
    let wanted = settings.into_iter().filter(|(is_missing, ..)| *is_missing);
    wanted.fold(builder, |builder, (_, name, key)| match profile.get(name) {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}

/// The runtime for requests to object stores, which lives as long as the process.
// started at the first request: most runs use no object store
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        // the threads only wait for the network; the bytes are processed by the callers
        .worker_threads(2)
        .thread_name("object store")
        .enable_all()
        .build()
});

fn runtime() -> Result<&'static Runtime, HttpError> {
    RUNTIME.as_ref().map_err(|error| {
        HttpError::new(
            ErrorKind::Local,
            format!("cannot start threads for the object store: {error}"),
        )
    })
}

/// Runs `work` and blocks until it has ended.
///
/// # Errors
/// If `work` fails, or the runtime cannot start.
pub fn block_on<T: Send + 'static>(
    work: impl Future<Output = Result<T, HttpError>> + Send + 'static,
) -> Result<T, HttpError> {
    // boxed, so that the runtime's code for a task is compiled once per `T`, not per request
    let work: BoxFuture<'static, Result<T, HttpError>> = work.boxed();
    // not `Runtime::block_on`, which panics on a thread of another runtime
    let (done, result) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // the receiver may be gone
        let _ = done.send(work.await);
    });
    result.recv().unwrap_or_else(|_| {
        Err(HttpError::new(
            ErrorKind::Local,
            "a request to the object store ended without a result",
        ))
    })
}

/// How many pieces are received ahead of the reader.
const READ_AHEAD: usize = 8;

type Pieces = mpsc::Receiver<Result<Bytes, HttpError>>;

/// A blocking reader for a stream of an object store. It receives a few pieces ahead, and stops
/// when it is dropped.
pub struct BlockingReader {
    /// The received pieces; `None` after the end or an error.
    pieces: Option<Pieces>,
    piece: Bytes,
}

impl BlockingReader {
    /// Returns a reader for the stream that `open` returns.
    ///
    /// # Errors
    /// If `open` fails, or the runtime cannot start.
    pub fn open(
        open: impl Future<Output = Result<ByteStream, HttpError>> + Send + 'static,
    ) -> Result<BlockingReader, HttpError> {
        let pieces = block_on(async move {
            let mut stream = open.await?;
            let (sender, pieces) = mpsc::channel(READ_AHEAD);
            tokio::spawn(async move {
                while let Some(piece) = stream.next().await {
                    let is_over = piece.is_err();
                    // a dropped reader closes the channel, which ends the request
                    if sender.send(piece).await.is_err() || is_over {
                        return;
                    }
                }
            });
            Ok(pieces)
        })?;
        Ok(BlockingReader {
            pieces: Some(pieces),
            piece: Bytes::new(),
        })
    }

    /// Receives the next piece; `None` at the end.
    fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(mut pieces) = self.pieces.take() else {
            return Ok(None);
        };
        let next = match pieces.try_recv() {
            Ok(piece) => Some(piece),
            // not `blocking_recv`, which panics if the caller is a thread of a runtime
            Err(_) => {
                let (piece, back) = block_on(async move { Ok((pieces.recv().await, pieces)) })?;
                pieces = back;
                piece
            }
        };
        let next = next.transpose()?;
        self.pieces = next.is_some().then_some(pieces);
        Ok(next)
    }
}

impl Read for BlockingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.next().map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_are_unset_and_secrets_have_no_line_break() {
        let read = |variables: &[(&str, &str)]| {
            let variables = variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            s3_settings(settings(variables, "AWS_"))
        };
        let builder = read(&[
            ("AWS_ACCESS_KEY_ID", "a\n"),
            ("AWS_SECRET_ACCESS_KEY", " b\r\n"),
            ("AWS_SESSION_TOKEN", ""),
            ("AWS_ENDPOINT_URL", "\n"),
            ("AWS_REGION", ""),
            ("AWS_PAGER", "less"),
            ("MY_AWS_REGION", "r"),
        ])
        .unwrap();
        let values = [
            AmazonS3ConfigKey::AccessKeyId,
            AmazonS3ConfigKey::SecretAccessKey,
            AmazonS3ConfigKey::Token,
            AmazonS3ConfigKey::Endpoint,
            AmazonS3ConfigKey::Region,
        ]
        .map(|key| builder.get_config_value(&key));
        let [a, b] = ["a", "b"].map(|value| Some(value.to_owned()));
        assert_eq!(values, [a, b, None, None, None]);
        let error = read(&[("AWS_SESSION_TOKEN", "x\ny")]).unwrap_err();
        assert_eq!(error, "AWS_SESSION_TOKEN contains a control character");
    }

    #[test]
    fn the_variables_of_the_azure_cli_are_read_unless_others_are_set() {
        let values = |variables: &[(&str, &str)]| {
            let variables = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let builder = azure_settings(variables).unwrap();
            [AzureConfigKey::AccountName, AzureConfigKey::AccessKey]
                .map(|key| builder.get_config_value(&key).unwrap_or_default())
        };
        let of_cli = [
            ("azure_storage_account", "one"),
            ("azure_storage_key", "a2V5"),
        ];
        assert_eq!(values(&of_cli), ["one", "a2V5"]);
        let both = [of_cli[0], of_cli[1], ("azure_storage_account_name", "two")];
        assert_eq!(values(&both), ["two", "a2V5"]);
        assert_eq!(values(&[]), ["", ""]);
    }

    #[test]
    fn an_endpoint_is_a_url() {
        for good in [
            "http://127.0.0.1:9000",
            "HTTPS://minio.test/s3/",
            "http://[::1]:9",
        ] {
            assert_eq!(check_endpoint(Some(good.to_owned())), Ok(()));
        }
        for bad in [
            "",
            "minio:9000",
            "127.0.0.1:9000",
            "http://",
            "http://h/a b",
            "ftp://h",
        ] {
            let error = check_endpoint(Some(bad.to_owned())).unwrap_err();
            assert!(
                error.starts_with(&format!("the endpoint '{bad}' is not")),
                "{error}"
            );
        }
        assert_eq!(check_endpoint(None), Ok(()));
    }

    #[test]
    fn the_endpoint_of_a_profile_is_used_unless_the_environment_names_one() {
        let profile = AwsProfile::from([
            (
                "endpoint_url".to_owned(),
                "http://minio.test:9000".to_owned(),
            ),
            ("region".to_owned(), "r".to_owned()),
        ]);
        let values = |endpoint| {
            let missing = MissingSettings {
                account: true,
                region: true,
                endpoint,
            };
            let builder = with_settings(AmazonS3Builder::new(), &profile, &missing);
            let value = |key| builder.get_config_value(&key);
            (
                value(AmazonS3ConfigKey::Endpoint),
                value(AmazonS3ConfigKey::Region),
            )
        };
        let region = Some("r".to_owned());
        let endpoint = Some("http://minio.test:9000".to_owned());
        assert_eq!(values(true), (endpoint, region.clone()));
        assert_eq!(values(false), (None, region));
    }
}
