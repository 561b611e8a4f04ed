//! What a failed connection means, in words that name who failed and what to do: the proxy or the
//! target, the sign-in, the certificate.

use super::body::causes;
use super::error::{Error, ErrorKind, shown_url};
use super::proxy::ProxyUrl;
use super::tls::TlsProfile;
use super::trust::{Cause, Untrusted};
use super::tunnel;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, PROXY_AUTHENTICATE};
use rustls::{AlertDescription, CertificateError};
use url::Url;

/// `host:port` with the scheme's default port filled in.
pub(super) fn host_port(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or("?"), url.port_or_known_default().unwrap_or(0))
}

/// The error for a 407. It is final: trying again would only lock the account.
pub(super) fn sign_in(url: &Url, proxy: &ProxyUrl, headers: &HeaderMap) -> Error {
    let mut offered: Vec<String> = Vec::new();
    for value in headers.get_all(PROXY_AUTHENTICATE) {
        for challenge in String::from_utf8_lossy(value.as_bytes()).split(',') {
            let scheme = challenge.split_whitespace().next().unwrap_or_default();
            let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
            if is_scheme && !offered.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
                offered.push(scheme.to_owned());
            }
        }
    }
    let basic = offered.is_empty() || offered.iter().any(|scheme| scheme.eq_ignore_ascii_case("basic"));
    let (name, schemes) = (proxy.shown(), offered.join(", "));
    let words = match (&proxy.account, basic) {
        (Some(account), true) => format!(
            "the proxy {name} refused {account} (407); it is not tried again, so that the account does not get locked"
        ),
        (_, false) => format!(
            "the proxy {name} wants a sign-in that landfall cannot do (407; offered: {schemes}; known: Basic); a \
             local helper such as cntlm or px can stand in front: let it sign in, and name it as the proxy"
        ),
        (None, true) => format!(
            "the proxy {name} wants a sign-in (407; offered: {}), and there is no account for it; put user and \
             password into {}, or name them in the site under proxy.credentials",
            if schemes.is_empty() { "nothing" } else { &schemes },
            proxy.source
        ),
    };
    Error::new(ErrorKind::Proxy(407), format!("{}: {words}", shown_url(url)))
}

/// The error for an answer that is the proxy's own; `None` where it may be the target's. `tunnel` says
/// that it is the answer to a CONNECT, which nobody else can give.
pub(super) fn refusal(
    url: &Url,
    proxy: &ProxyUrl,
    status: StatusCode,
    headers: &HeaderMap,
    tunnel: bool,
) -> Option<Error> {
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Some(sign_in(url, proxy, headers));
    }
    let squid = headers.get("x-squid-error").and_then(|value| value.to_str().ok());
    if !tunnel && squid.is_none() {
        return None;
    }
    let (name, target) = (proxy.shown(), host_port(url));
    let code = match squid {
        Some(squid) => format!("{status}, {squid}"),
        None => status.to_string(),
    };
    let words = match status.as_u16() {
        403 | 405 => format!(
            "the proxy {name} refuses {target} ({code}): it is not on the proxy's allow-list; have {target} allowed \
             there"
        ),
        500 | 502..=504 => {
            let why = match squid {
                Some(code) if code.starts_with("ERR_DNS_FAIL") => ": it does not know that name",
                Some(code) if code.starts_with("ERR_CONNECT_FAIL 111") => {
                    ": the target refuses the connection"
                }
                _ => "",
            };
            format!("the proxy {name} cannot reach {target} ({code}){why}")
        }
        _ => format!("the proxy {name} opens no connection to {target} ({code})"),
    };
    Some(Error::new(ErrorKind::Proxy(status.as_u16()), format!("{}: {words}", shown_url(url))))
}

/// The error for a request that got no answer. After a refused CONNECT the proxy is asked once more, for
/// its words; an account that it refused is not sent along.
pub(super) async fn failure(
    url: &Url,
    route: Option<&ProxyUrl>,
    tls: &TlsProfile,
    error: &reqwest::Error,
) -> Error {
    let words = causes(error);
    if let Some(explained) = certificate(url, route, error) {
        return explained;
    }
    let unsigned = words.contains("tunnel error: proxy authorization required");
    if let Some(proxy) = route.filter(|_| unsigned || words.contains("tunnel error: unsuccessful")) {
        let target = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
        let answer = match tunnel::connect(proxy, tls, target, !unsigned).await {
            Ok(Err(answer)) => Some(answer),
            _ => None,
        };
        let again = answer.and_then(|answer| {
            let status = StatusCode::from_u16(answer.status).ok()?;
            refusal(url, proxy, status, &answer.headers, true)
        });
        return match again {
            Some(error) => error,
            None if unsigned => sign_in(url, proxy, &HeaderMap::new()),
            None => {
                let message =
                    format!("{}: the proxy {} refused the connection", shown_url(url), proxy.shown());
                Error::new(ErrorKind::Network, message)
            }
        };
    }
    unreachable(url, route, &words, error.is_connect())
}

/// The error for a connection that failed with these words.
pub(super) fn unreachable(url: &Url, route: Option<&ProxyUrl>, words: &str, connecting: bool) -> Error {
    let shown = shown_url(url);
    let at_proxy = url.scheme() == "http" || words.contains("failed to create underlying connection");
    let mut message = match route {
        Some(proxy) if connecting && at_proxy => {
            format!("{shown}: cannot connect to the proxy {} (from {}): {words}", proxy.shown(), proxy.source)
        }
        Some(proxy) => format!("{shown} through the proxy {}: {words}", proxy.shown()),
        None => format!("{shown}: {words}"),
    };
    let mut kind = ErrorKind::Network;
    if words.contains("InvalidContentType") || words.contains("InvalidMessage") {
        kind = ErrorKind::Local;
        message += &format!("; it does not speak TLS: if http is meant, say --plain-http {}", host_port(url));
    }
    Error::new(kind, message)
}

/// The error for a certificate that is refused, theirs or ours; `None` where it is about something else.
pub(super) fn certificate(
    url: &Url,
    route: Option<&ProxyUrl>,
    error: &(dyn std::error::Error + 'static),
) -> Option<Error> {
    let shown = shown_url(url);
    let host = host_port(url);
    let error = find::<rustls::Error>(error)?;
    let words = match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            let untrusted = other.0.downcast_ref::<Untrusted>()?;
            match (&untrusted.cause, route) {
                (Cause::Issuer { .. }, Some(proxy)) => format!(
                    "{untrusted}; if the proxy {} opens TLS, have its certificate authority as a file, and add to \
                     the site, under proxy: `ca: FILE.pem`{}",
                    proxy.shown(),
                    if proxy.source.starts_with("proxy.") {
                        ""
                    } else {
                        " (beside http, https and noProxy: a site's proxy takes the place of the variables)"
                    }
                ),
                (Cause::Issuer { .. }, None) => format!(
                    "{untrusted}; have that authority's certificate as a file, and add `ca: FILE.pem` to the site, \
                     under registry or upstreams, or put it at /etc/containers/certs.d/{host}/ca.crt"
                ),
                _ => untrusted.to_string(),
            }
        }
        rustls::Error::InvalidCertificate(error) => format!("its certificate is refused: {error}"),
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::UnknownCA),
        ) => format!(
            "it wants a client certificate, or refuses ours ({alert:?}); name clientCert and clientKey under \
             registry of the site, or put client.cert and client.key into /etc/containers/certs.d/{host}"
        ),
        _ => return None,
    };
    Some(Error::new(ErrorKind::Local, format!("{shown}: {words}")))
}

/// The first cause of this type, looked for inside I/O errors too.
fn find<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(proxy: &str, challenges: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for value in challenges {
            headers.append(PROXY_AUTHENTICATE, reqwest::header::HeaderValue::from_static(value));
        }
        let proxy = ProxyUrl::parse(proxy, "HTTPS_PROXY").unwrap();
        sign_in(&Url::parse("https://quay.io/v2/").unwrap(), &proxy, &headers).message
    }

    #[test]
    fn a_407_says_whose_turn_it_is() {
        let message = said("p:1", &["Negotiate", "NTLM"]);
        assert!(
            message.contains("offered: Negotiate, NTLM;") && message.contains("cntlm or px"),
            "{message}"
        );
        let message = said("u:pw@p:1", &["Negotiate, Basic realm=\"a, b\""]);
        assert!(message.contains("refused account 'u' from HTTPS_PROXY"), "{message}");
        assert!(!message.contains("pw"), "{message}");
        let message = said("p:1", &["Basic realm=\"x\""]);
        assert!(message.contains("offered: Basic") && message.contains("into HTTPS_PROXY"), "{message}");
    }

    #[test]
    fn a_proxys_own_answer_is_told_from_the_targets() {
        let (url, proxy) = (Url::parse("http://quay.io/x").unwrap(), ProxyUrl::parse("p:1", "X").unwrap());
        let mut headers = HeaderMap::new();
        assert!(refusal(&url, &proxy, StatusCode::FORBIDDEN, &headers, false).is_none());
        let denied = refusal(&url, &proxy, StatusCode::FORBIDDEN, &headers, true).unwrap();
        assert!(
            denied.kind == ErrorKind::Proxy(403) && denied.message.contains("refuses quay.io:80"),
            "{denied}"
        );
        headers.insert("x-squid-error", reqwest::header::HeaderValue::from_static("ERR_DNS_FAIL 0"));
        let unknown = refusal(&url, &proxy, StatusCode::SERVICE_UNAVAILABLE, &headers, false).unwrap();
        assert!(unknown.is_transient() && unknown.message.contains("does not know that name"), "{unknown}");
    }
}
