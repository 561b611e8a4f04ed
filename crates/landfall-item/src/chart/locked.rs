//! A chart in the lock, and its signatures.

use super::name::ChartName;
use super::{parts, provenance};
use crate::file::{LockedSidecar, ensure_stored, read_sidecar};
use crate::image::{
    ItemSignatureError, LockedImage, LockedReferrer, blob_lines, contradictions, download_locked,
    find_signatures,
};
use crate::{PinPolicy, ResolveError, ResolveOutcome, Resolver, verified_signatures};
use landfall_content::BlobRead;
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, ImageRef, MediaType};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature, verified_list};
use serde::{Deserialize, Serialize};

/// A chart in the lock: an artifact of a registry, with `mediaType` and `blobs`, or an archive at a
/// `url`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedChart {
    /// The name, with repository and version.
    pub name: ChartName,
    /// The digest that the landfall manifest requires.
    pub pin: Option<Digest>,
    /// Digest of the artifact's manifest, or of the archive.
    pub digest: Digest,
    /// The media type of the artifact's manifest; `None` for an archive.
    pub media_type: Option<MediaType>,
    /// Size of the manifest or of the archive, in bytes.
    pub size: u64,
    /// The signatures that met the rules of `verify:`, sorted; empty if the chart needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "verified_list")]
    pub verified: Vec<VerifiedSignature>,
    /// Config and layers of the artifact, in the manifest's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob_lines")]
    pub blobs: Vec<Descriptor>,
    /// Signatures and other manifests that refer to the artifact. `None` if they were not looked
    /// up, because no rule of `verify:` matches the chart.
    pub referrers: Option<Vec<LockedReferrer>>,
    /// Configs and layers of the referrers that are not among `blobs`, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob_lines")]
    pub referrer_blobs: Vec<Descriptor>,
    /// The URL of the archive; or the reference of the artifact, if the index of an HTTP repository
    /// points to a registry.
    pub url: Option<String>,
    /// The path of a local chart, relative to the folder of the lock. `None` if it is not below
    /// that folder.
    pub path: Option<String>,
    /// The digest that the index of the repository lists, if it is not that of the chart. The
    /// manifest then requires `pin`.
    pub listed: Option<Digest>,
    /// The provenance file next to an archive.
    pub provenance: Option<LockedSidecar>,
    /// The fingerprint of the key that signed the provenance, if the manifest requires one.
    pub signed_by: Option<String>,
    /// The `apiVersion` in Chart.yaml: `v1` or `v2`.
    pub api_version: String,
    /// The `appVersion` in Chart.yaml, the version of the packaged software.
    pub app_version: Option<String>,
    /// The charts that it depends on and does not bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<ChartName>,
    /// The settings with which its images were discovered; `None` if they were not.
    pub discovered: Option<String>,
    /// The images that were discovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ChartImage>,
    /// Texts that may be an image reference; a person has to decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenReference>,
}

/// An image that was found in a chart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartImage {
    /// The image reference, with a tag or digest.
    pub name: ImageRef,
    /// The position in the chart that names the image.
    pub at: String,
}

/// A text in a chart that may be an image reference.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct OpenReference {
    /// The text as the chart writes it.
    pub reference: String,
    /// The position of the text in the chart.
    pub at: String,
    /// The reason why it may not be an image.
    pub why: String,
}

impl LockedChart {
    /// The reference of the artifact at its registry; `None` for an archive of an HTTP server.
    pub(super) fn source(&self) -> Option<ImageRef> {
        self.media_type.as_ref()?;
        let named = self
            .url
            .as_ref()
            .and_then(|url| url.strip_prefix("oci://")?.parse().ok());
        Some(named.unwrap_or_else(|| self.name.reference.clone()))
    }
}

// The signatures of a chart, by the rules of `verify:`. The signatures of a chart in a registry
// are referrers, which are looked up if a rule matches the chart. A chart in an HTTP repository is
// signed by its provenance file.

impl LockedChart {
    /// The chart as an artifact of a registry; `None` for an archive of an HTTP server.
    pub(super) fn artifact(&self) -> Option<LockedImage> {
        let name = self.source()?;
        let mut blobs = self.blobs.clone();
        blobs.sort_by(|a, b| a.digest.cmp(&b.digest));
        Some(LockedImage {
            blobs,
            verified: self.verified.clone(),
            referrers: self.referrers.clone(),
            referrer_blobs: self.referrer_blobs.clone(),
            ..LockedImage::new(name, parts::manifest(self))
        })
    }

    /// Verifies the signatures of the chart, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the chart needs none. OpenPGP signatures must be valid at `time`.
    ///
    /// # Errors
    /// If the chart does not meet the policy, or a signature cannot be read.
    pub fn verified_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &dyn BlobRead,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, ItemSignatureError> {
        match self.artifact() {
            Some(artifact) => verified_signatures(&artifact, policy, blobs),
            None => self.verified_provenance(policy, blobs, time),
        }
    }

    /// Verifies the provenance of an archive.
    fn verified_provenance(
        &self,
        policy: &SignaturePolicy,
        blobs: &dyn BlobRead,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, ItemSignatureError> {
        if !policy.applies_to(self.rule_subject()) {
            return Ok(Vec::new());
        }
        let bytes = match &self.provenance {
            Some(sidecar) => Some(read_sidecar(sidecar, blobs)?),
            None => None,
        };
        Ok(
            policy.verify_clear_signed(self.rule_subject(), |keys| match &bytes {
                Some(bytes) => provenance::check(bytes, &self.digest, &self.name, keys, time),
                None => Err("no provenance".into()),
            })?,
        )
    }

    /// The names by which rules match the chart.
    pub fn rule_subject(&self) -> RuleSubject {
        match self.source() {
            Some(source) => RuleSubject::Image(source),
            None => self.name.rule_subject(),
        }
    }

    /// The contradictions between the chart's referrers and the lock.
    pub(super) fn referrer_contradictions(&self, blobs: &dyn BlobRead) -> Vec<String> {
        match self.artifact().filter(|_| self.referrers.is_some()) {
            Some(artifact) => contradictions(&artifact, blobs),
            None => Vec::new(),
        }
    }

    /// Downloads the signatures that the lock lists for the chart.
    pub(crate) async fn download_signatures(
        &self,
        resolver: &Resolver,
    ) -> Result<(), ResolveError> {
        match (self.artifact(), &self.provenance) {
            (Some(artifact), _) => download_locked(resolver, &artifact).await,
            (None, Some(provenance)) => Ok(ensure_stored(resolver, provenance).await?),
            (None, None) => Ok(()),
        }
    }

    /// Whether the verified signatures in the lock meet the rules of `resolver`.
    fn is_verified_for(&self, resolver: &Resolver) -> bool {
        let policy = &resolver.signatures;
        policy.accepts(self.rule_subject(), &self.verified)
    }

    /// Whether the lock has the records that the rules require. If a rule matches the chart, these
    /// are the referrers of an artifact, or the verified signatures of an archive. Otherwise, the
    /// lock must have none.
    fn has_records_for(&self, resolver: &Resolver) -> bool {
        let has_records = match self.source() {
            Some(_) => self.referrers.is_some(),
            None => !self.verified.is_empty(),
        };
        has_records == resolver.signatures.applies_to(self.rule_subject())
    }
}

/// Looks up and verifies the signatures of the chart that `outcome` locks, if a rule matches it.
/// `old` is the chart in the old lock.
pub(super) async fn verify_outcome(
    resolver: &Resolver,
    outcome: ResolveOutcome<LockedChart>,
    old: Option<&LockedChart>,
    pins: PinPolicy,
) -> ResolveOutcome<LockedChart> {
    let accepted = |chart: &LockedChart| chart.is_verified_for(resolver);
    let chart = match outcome.item_to_verify(accepted) {
        Ok((chart, _)) => chart,
        Err(outcome) => return outcome,
    };
    // `--refresh` and `--check` verify again; otherwise the record in the lock is enough
    let is_recorded = accepted(&chart)
        && chart.has_records_for(resolver)
        && !resolver.lost_referrers.must_retry(&chart.name.to_string());
    if is_recorded && pins == PinPolicy::Keep && old == Some(&chart) {
        return ResolveOutcome::Kept(chart);
    }
    match verify(resolver, &chart).await {
        Ok(chart) if old == Some(&chart) => ResolveOutcome::Kept(chart),
        Ok(chart) => ResolveOutcome::New(chart),
        Err(cause) => ResolveOutcome::unverified(old, accepted, &chart.digest, cause),
    }
}

/// Looks up and verifies the signatures of `chart`. Returns the chart with these signatures.
async fn verify(resolver: &Resolver, chart: &LockedChart) -> Result<LockedChart, ResolveError> {
    let unsigned = LockedChart {
        verified: Vec::new(),
        referrers: None,
        referrer_blobs: Vec::new(),
        ..chart.clone()
    };
    let Some(artifact) = chart.artifact() else {
        let verified = verify_provenance(resolver, chart).await?;
        return Ok(LockedChart {
            verified,
            ..unsigned
        });
    };
    let item = chart.name.to_string();
    Ok(match find_signatures(resolver, &item, artifact).await? {
        Some(artifact) => LockedChart {
            verified: artifact.verified,
            referrers: artifact.referrers,
            referrer_blobs: artifact.referrer_blobs,
            ..unsigned
        },
        None => unsigned,
    })
}

/// Verifies the provenance of an archive. The provenance is downloaded again if the store lacks it.
async fn verify_provenance(
    resolver: &Resolver,
    chart: &LockedChart,
) -> Result<Vec<VerifiedSignature>, ResolveError> {
    let policy = &resolver.signatures;
    let needed = chart.provenance.as_ref();
    let needed = needed.filter(|_| policy.applies_to(chart.rule_subject()));
    if let Some(sidecar) = needed {
        ensure_stored(resolver, sidecar)
            .await
            .map_err(|error| ResolveError::from(error).about("its provenance"))?;
    }
    let verified = chart.verified_provenance(policy, &resolver.disk, SignatureTime::Now);
    verified.map_err(|error| error.into_resolve_error(""))
}
