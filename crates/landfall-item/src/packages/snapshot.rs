//! Finds snapshots of apt repositories, by the field `Snapshots` of a Release file.

use super::locked::PackageIndex;
use crate::file::is_file_url;
use crate::resolver::Resolver;
use jiff::{SignedDuration, Timestamp};
use landfall_packages::apt::AptRelease;
use landfall_packages::file_url;
use std::time::Duration;

/// The placeholder for the time in the URL of a snapshot.
const ID: &str = "@SNAPSHOTID@";
/// The time after which a new release has usually reached every mirror.
const SETTLED: SignedDuration = SignedDuration::from_mins(30);
/// The time that `lock` waits for a snapshot service. A snapshot is optional.
const PATIENCE: Duration = Duration::from_secs(20);

/// The URL of the snapshot that contains exactly `metadata`, the signed file of `release`. `None`
/// if the release names no snapshot service, or the file cannot be fetched from it.
pub(super) async fn snapshot(
    resolver: &Resolver,
    release: &AptRelease,
    metadata: &PackageIndex,
) -> Option<String> {
    let template = release
        .snapshots
        .as_deref()
        .filter(|url| url.contains(ID) && is_file_url(url))?;
    resolver
        .sessions
        .check_named_target(template, &metadata.url)
        .await
        .ok()?;
    let now = Timestamp::now();
    let settled = release
        .date
        .and_then(|date| date.checked_add(SETTLED).ok())
        .filter(|at| *at < now);
    // A snapshot URL contains a time, and has the state of the repository at that time. The first
    // attempt uses a time shortly after the date of the release; the second uses the current time,
    // in case the service received the release later.
    let looking = async {
        for at in settled.into_iter().chain([now]) {
            let id = at.strftime("%Y%m%dT%H%M%SZ").to_string();
            let url = template.trim_end_matches('/').replace(ID, &id);
            let file = file_url(&url, &metadata.path);
            if resolver
                .small_file(&file, metadata.size as usize, Some(&metadata.digest))
                .await
                .is_ok()
            {
                return Some(url);
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, looking).await.ok().flatten()
}
