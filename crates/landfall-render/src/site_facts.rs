//! The facts of the site that `--into` may write over existing values.

use super::error::RenderError;
use super::request::RenderRequest;
use landfall_model::document::SiteFacts;
use url::Url;

/// Returns the facts of the site in `request`: the addresses of the registry, the file server and
/// the proxy, and the account at the registry. An account of the proxy is a part of its URL.
///
/// # Errors
/// If a certificate or credentials of the site cannot be read.
pub fn site_facts(request: &RenderRequest<'_>) -> Result<SiteFacts, RenderError> {
    let mut facts = SiteFacts::default();
    if request.target.is_some() {
        let registry = request.registry()?;
        let account = registry.account(&request.mapping.target().prefix)?;
        facts.parts.push(registry.target.registry);
        facts.wholes.extend(account.into_iter().flat_map(|account| {
            let encoded = account.encoded();
            [account.username, account.password, encoded]
        }));
    }
    let proxy = request.proxy()?.unwrap_or_default();
    let proxies = [proxy.http, proxy.https].into_iter().flatten();
    let urls = proxies.map(|proxy| proxy.url());
    let urls = urls.chain(request.file_server().map(str::to_owned));
    facts.parts.extend(
        urls.filter_map(|url| authority(&url))
            .collect::<Vec<String>>(),
    );
    Ok(facts)
}

/// Returns `host[:port]` of a URL.
fn authority(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(
        url.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
    )
}
