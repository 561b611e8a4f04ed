//! Updates the trust roots of signature rules from TUF repositories.

use super::outcome::VersionMove;
use super::state::{UpdateRun, failed};
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{expect_file, get_file};
use landfall_item::ResolveError;
use landfall_item::manifest::{LoadManifestError, TrustRootSource, text_of, trust_root_sources};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;
use landfall_signature::{NewestTrustRoot, TufError, TufFetch, TufRepository, newest_trust_root};
use std::path::Path;
use std::sync::Arc;

impl UpdateRun<'_> {
    /// Replaces each trust root if its TUF repository has a newer one.
    pub(super) async fn replace_trust_roots(&mut self) -> Result<(), LoadManifestError> {
        for source in trust_root_sources(self.request.paths, &self.outcome.edited)? {
            let name = source.path.display().to_string();
            if !self.is_selected(&[&name, &source.url]) {
                continue;
            }
            let old = text_of(&source.path, &self.outcome.edited)?;
            let tuf_root = text_of(&source.tuf_root, &self.outcome.edited)?;
            let newest = match self.fetch_trust_root(&source, &tuf_root).await {
                Ok(newest) => newest,
                Err(cause) => {
                    let failed = failed(EntryKind::File, source.url, &cause);
                    self.outcome.failed.push(failed);
                    continue;
                }
            };
            self.replace(&source.path, &old, newest.trusted_root);
            self.replace(&source.tuf_root, &tuf_root, newest.tuf_root);
        }
        Ok(())
    }

    async fn fetch_trust_root(
        &self,
        source: &TrustRootSource,
        tuf_root: &str,
    ) -> Result<NewestTrustRoot, ResolveError> {
        let repository = HttpTufRepository {
            sessions: self.lookups.resolver.shared_sessions(),
            url: source.url.clone(),
        };
        let newest = newest_trust_root(repository, tuf_root, jiff::Timestamp::now()).await;
        newest.map_err(|why| ResolveError::from(format!("no newer trust root: {why}")))
    }

    /// Edits the file at `path` from `old` to `new`, and reports the move, unless both are equal.
    fn replace(&mut self, path: &Path, old: &str, new: String) {
        if old == new {
            return;
        }
        let digest = |text: &str| Digest::sha256(text.as_bytes()).to_string();
        let name = path.display().to_string();
        self.outcome.moves.push(VersionMove {
            at: SourceLocation {
                file: name.clone(),
                line: 1,
                column: 1,
            },
            name,
            policy: "tuf".into(),
            from: digest(old),
            to: Some(digest(&new)),
            source: None,
            items: Vec::new(),
            held: Vec::new(),
            waiting: Vec::new(),
        });
        self.outcome.edited.insert(path.to_owned(), new);
    }
}

/// A TUF repository on a web server.
struct HttpTufRepository {
    sessions: Arc<RegistrySessions>,
    url: String,
}

impl HttpTufRepository {
    async fn fetch(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, TufError> {
        let url = format!("{}/{path}", self.url);
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let file = async {
            let response = get_file(&self.sessions, &url, None).await?;
            expect_file(response, &url).await?.bytes(most).await
        };
        match file.await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            // some object stores answer 403 for missing files
            Err(error) if error.may_be_missing() => Ok(None),
            Err(error) => Err(TufError::transport(error.to_string())),
        }
    }
}

impl TufRepository for HttpTufRepository {
    fn fetch_metadata<'a>(&'a self, name: &'a str, max_length: u64) -> TufFetch<'a> {
        Box::pin(self.fetch(name, max_length))
    }

    fn fetch_target<'a>(&'a self, path: &'a str, max_length: u64) -> TufFetch<'a> {
        Box::pin(async move { self.fetch(&format!("targets/{path}"), max_length).await })
    }
}
