//! Blob uploads: mount where it helps, else one POST and one PUT.

use super::auth::Scope;
use super::session::Session;
use crate::http::{Body, Error, ErrorKind, Request, Why};
use crate::model::Descriptor;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

/// How a blob came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// Its bytes were sent.
    Sent,
    /// The registry linked it from another repository.
    Mounted,
    /// It was there already.
    There,
}

impl Session {
    /// Puts a blob into `repository`: mounted from `from` where one is named and the registry agrees, else
    /// sent. `body` gives its bytes from the beginning, as often as attempts need them.
    ///
    /// # Errors
    /// The registry's refusal with its own words; an error of the source as it was.
    pub async fn upload(
        &self,
        repository: &str,
        blob: &Descriptor,
        from: Option<&str>,
        body: Body,
    ) -> Result<Uploaded, Error> {
        let attempts = self.transport.limits().attempts;
        let mut from = from;
        for attempt in 1.. {
            let result = self.upload_once(repository, blob, from, body.clone()).await;
            match result {
                // a refused mount is no refused upload
                Err(error) if from.is_some() && refuses_mount(&error) => from = None,
                // an upload session may be gone or broken: begin a new one
                Err(error) if attempt < attempts && begins_again(&error) => {
                    self.transport.pause(attempt).await
                }
                other => return other,
            }
        }
        unreachable!("the last attempt returns")
    }

    async fn upload_once(
        &self,
        repository: &str,
        blob: &Descriptor,
        from: Option<&str>,
        body: Body,
    ) -> Result<Uploaded, Error> {
        let what = || format!("blob {} to {}/{repository}", blob.digest, self.host());
        let scope = Scope { from: from.map(|from| self.full(from)), ..self.scope(repository, true) };
        let mut begin = self.url(repository, "blobs/uploads/")?;
        if let Some(from) = from {
            let digest = blob.digest.to_string();
            begin.query_pairs_mut().append_pair("mount", &digest).append_pair("from", &self.full(from));
        } else if blob.digest.algorithm() != crate::model::Algorithm::Sha256 {
            begin.query_pairs_mut().append_pair("digest-algorithm", blob.digest.algorithm().as_str());
        }
        let response = self.send(Request::new(Method::POST, begin.clone(), Why::Registry), &scope).await?;
        let good = |status| matches!(status, StatusCode::ACCEPTED | StatusCode::CREATED);
        let response = self.expect(response, &scope, what, good).await?;
        if response.status == StatusCode::CREATED && from.is_some() {
            response.discard().await;
            return Ok(Uploaded::Mounted);
        }
        let location = response.header(LOCATION.as_str()).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("{}: the registry opened an upload without a Location", what()),
            )
        })?;
        let mut target = upload_url(&response.url, location)
            .map_err(|why| Error::new(ErrorKind::Invalid, format!("{}: {why}", what())))?;
        response.discard().await;
        if from.is_some() && self.has_blob(repository, &blob.digest).await? {
            // an earlier run brought it; the session that was opened is given back, if the registry can
            let cancel = Request { retried: false, ..Request::new(Method::DELETE, target, Why::Registry) };
            if let Ok(response) = self.send(cancel, &Scope { from: None, ..scope }).await {
                response.discard().await;
            }
            return Ok(Uploaded::There);
        }
        target.query_pairs_mut().append_pair("digest", &blob.digest.to_string());
        let mut put =
            Request::new(Method::PUT, target, Why::Registry).header(CONTENT_TYPE, "application/octet-stream");
        put.retried = false;
        put.body = if blob.size == 0 { Body::Empty } else { body };
        let scope = Scope { from: None, ..scope };
        let response = self.send(put, &scope).await?;
        let good = |status| matches!(status, StatusCode::CREATED | StatusCode::NO_CONTENT | StatusCode::OK);
        self.expect(response, &scope, what, good).await?.discard().await;
        Ok(Uploaded::Sent)
    }
}

/// 401 and 403 for lack of rights at the other repository, 404 for a repository that is not known, and
/// whatever else a registry says that knows no mounts.
fn refuses_mount(error: &Error) -> bool {
    match error.kind {
        ErrorKind::Denied | ErrorKind::NotFound => true,
        ErrorKind::Status(status) => (400..500).contains(&status) && !error.is_transient(),
        _ => false,
    }
}

fn begins_again(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Status(416))
        || error.codes.iter().any(|code| code.starts_with("BLOB_UPLOAD_"))
        || error.is_transient()
}

/// Where an upload goes on: relative, absolute, without a scheme, or with the scheme or port that a
/// registry behind a TLS proxy believes it has; on the same host the connection's own are kept.
fn upload_url(request: &Url, location: &str) -> Result<Url, String> {
    let mut target = request.join(location).map_err(|_| "the upload's Location is no URL".to_owned())?;
    let same_host = target.host_str() == request.host_str();
    // a Location without a port leaves it out by mistake as well
    if same_host && (target.scheme() != request.scheme() || target.port().is_none()) {
        let port = request.port();
        let _ = target.set_scheme(request.scheme());
        let _ = target.set_port(port);
    }
    if request.scheme() == "https" && target.scheme() != "https" {
        return Err("the upload's Location leaves https".into());
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_in_all_their_forms() {
        let request = Url::parse("https://r.test:5000/v2/a/blobs/uploads/").unwrap();
        let target = |location: &str| upload_url(&request, location).map(|url| url.to_string());
        assert_eq!(
            target("/v2/a/blobs/uploads/1?_state=x"),
            Ok("https://r.test:5000/v2/a/blobs/uploads/1?_state=x".into())
        );
        assert_eq!(target("http://r.test/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("https://r.test/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("//r.test:5000/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("https://other.test/u"), Ok("https://other.test/u".into()));
        assert!(target("http://other.test/u").is_err());
    }
}
