//! Explains failed connections: what failed (the proxy, the host, the sign-in, the certificate),
//! and how to fix it.

use crate::clients::TlsProfile;
use crate::connect;
use crate::error::{ErrorKind, HttpError, TunnelError, describe, find, host_port, redacted_url};
use crate::proxy::ProxyUrl;
use crate::verifier::{DistrustCause, UntrustedCertificate, error_words};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION, PROXY_AUTHENTICATE};
use rustls::{AlertDescription, CertificateError};
use url::Url;

/// The header in which squid names the error. It marks a response as the proxy's own.
const SQUID_ERROR: &str = "x-squid-error";

/// Returns the error for a 407 response. It is final: another attempt may lock the account.
pub(super) fn proxy_sign_in_error(url: &Url, proxy: &ProxyUrl, headers: &HeaderMap) -> HttpError {
    // RFC 9110, 11.7.1: a header may contain several challenges, each a scheme with parameters. The
    // pieces between commas that do not begin with a scheme are parameters.
    let mut offered: Vec<String> = Vec::new();
    for value in headers.get_all(PROXY_AUTHENTICATE) {
        for challenge in String::from_utf8_lossy(value.as_bytes()).split(',') {
            let scheme = challenge.split_whitespace().next().unwrap_or_default();
            let is_scheme =
                !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
            if is_scheme
                && !offered
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(scheme))
            {
                offered.push(scheme.to_owned());
            }
        }
    }
    let basic = offered.is_empty()
        || offered
            .iter()
            .any(|scheme| scheme.eq_ignore_ascii_case("basic"));
    let name = proxy.address();
    let schemes = offered.join(", ");
    let words = match (&proxy.account, basic) {
        (Some(account), true) => format!(
            "the proxy {name} refused {account} (407); it is not tried again, so that the account \
             does not get locked"
        ),
        (_, false) => format!(
            "the proxy {name} requires authentication that landfall does not support (407; \
             offered: {schemes}; supported: Basic); run a local proxy such as cntlm or px that \
             signs in, and name it as the proxy"
        ),
        (None, true) => format!(
            "the proxy {name} requires authentication (407; offered: {}), and there is no account \
             for it; put user and password into {}, or name them in the site under \
             proxy.credentials",
            if schemes.is_empty() {
                "nothing"
            } else {
                &schemes
            },
            proxy.source
        ),
    };
    HttpError::new(ErrorKind::Proxy(407), words).at(url)
}

/// Returns the error for a response of the proxy itself; `None` if it may be the target's response.
pub(super) fn refusal_in_answer(
    url: &Url,
    proxy: &ProxyUrl,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<HttpError> {
    let own =
        status == StatusCode::PROXY_AUTHENTICATION_REQUIRED || headers.contains_key(SQUID_ERROR);
    own.then(|| refusal(url, proxy, status, headers))
}

/// Returns the error for a refusal of the proxy. Every response to CONNECT except a success is a
/// refusal.
pub(super) fn refusal(
    url: &Url,
    proxy: &ProxyUrl,
    status: StatusCode,
    headers: &HeaderMap,
) -> HttpError {
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return proxy_sign_in_error(url, proxy, headers);
    }
    let squid = headers
        .get(SQUID_ERROR)
        .and_then(|value| value.to_str().ok());
    let name = proxy.address();
    let target = host_port(url);
    let code = match squid {
        Some(squid) => format!("{status}, {squid}"),
        None => status.to_string(),
    };
    let words = match status.as_u16() {
        // the usual answers of proxies to a host that their rules do not allow
        403 | 405 => format!(
            "the proxy {name} refuses {target} ({code}): it is not on the proxy's allow-list; ask \
             its operator to allow {target}"
        ),
        500 | 502..=504 => {
            let why = match squid {
                Some(code) if code.starts_with("ERR_DNS_FAIL") => ": it cannot resolve that name",
                // 111 is `ECONNREFUSED` on Linux, on which most proxies run
                Some(code) if code.starts_with("ERR_CONNECT_FAIL 111") => {
                    ": the target refuses the connection"
                }
                _ => "",
            };
            format!("the proxy {name} cannot reach {target} ({code}){why}")
        }
        _ => {
            let page = headers.get(LOCATION).and_then(|page| page.to_str().ok());
            let page = page.and_then(|page| Url::parse(page).ok());
            let hint = page.map_or_else(String::new, |page| {
                format!(
                    ": it redirects to {}, perhaps a page to sign in or to confirm in a browser",
                    redacted_url(&page)
                )
            });
            format!("the proxy {name} does not connect to {target} ({code}){hint}")
        }
    };
    HttpError::new(ErrorKind::Proxy(status.as_u16()), words).at(url)
}

/// Returns the error for a request that got no response. reqwest drops a proxy's answer to CONNECT,
/// so landfall requests the tunnel once more to get the status and headers of the answer. That
/// request omits an account that the proxy has refused.
pub(super) async fn connection_error(
    url: &Url,
    route: Option<&ProxyUrl>,
    tls: &TlsProfile,
    error: reqwest::Error,
) -> HttpError {
    if let Some(explained) = certificate_error(url, route, &error) {
        return explained.caused_by(error.without_url());
    }
    let refused_account = match find::<TunnelError>(&error) {
        Some(TunnelError::ProxyAuthRequired) => Some(true),
        Some(TunnelError::TunnelUnsuccessful) => Some(false),
        _ => None,
    };
    if let Some((proxy, refused_account)) = route.zip(refused_account) {
        let answer = connect::open_tunnel(proxy, tls, &host_port(url), !refused_account).await;
        let answer = answer.ok().and_then(Result::err);
        return match answer {
            Some((status, headers)) => refusal(url, proxy, status, &headers),
            None if refused_account => proxy_sign_in_error(url, proxy, &HeaderMap::new()),
            None => {
                let words = format!("the proxy {} refused the connection", proxy.address());
                HttpError::new(ErrorKind::Network, words).at(url)
            }
        };
    }
    let words = describe(&error);
    unreachable_error(url, route, &words, &error, error.is_connect()).caused_by(error.without_url())
}

/// Returns the error for a host that cannot be reached. `words` describe the `cause`, and
/// `is_connecting` says whether the connection failed while it was being opened.
pub(super) fn unreachable_error(
    url: &Url,
    route: Option<&ProxyUrl>,
    words: &str,
    cause: &(dyn std::error::Error + 'static),
    is_connecting: bool,
) -> HttpError {
    let words = match route {
        Some(proxy) if is_connecting && is_to_proxy(url, cause) => {
            no_proxy_connection(proxy, words)
        }
        Some(proxy) => format!("through the proxy {}: {words}", proxy.address()),
        None => words.to_owned(),
    };
    match find::<rustls::Error>(cause) {
        // the usual sign of a server without TLS; retrying does not help
        Some(rustls::Error::InvalidMessage(_)) => {
            let host = host_port(url);
            let hint = format!("; if http is meant, use --plain-http {host}");
            HttpError::new(ErrorKind::Local, words + &hint).at(url)
        }
        // every answer of such a server has these headers
        _ if find::<hyper::Error>(cause).is_some_and(hyper::Error::is_parse_too_large) => {
            HttpError::new(ErrorKind::Invalid, words).at(url)
        }
        _ => HttpError::new(ErrorKind::Network, words + &advice(url, route, cause)).at(url),
    }
}

/// Whether the failed connection of a request through a proxy is the one to the proxy itself. For
/// http URLs there is no other; for https URLs, it is opened before the tunnel.
fn is_to_proxy(url: &Url, cause: &(dyn std::error::Error + 'static)) -> bool {
    let before_tunnel = matches!(
        find::<TunnelError>(cause),
        Some(TunnelError::ConnectFailed(_))
    );
    url.scheme() == "http" || before_tunnel
}

/// Returns the advice that the cause of a failure suggests; empty if it suggests none.
fn advice(
    url: &Url,
    route: Option<&ProxyUrl>,
    cause: &(dyn std::error::Error + 'static),
) -> String {
    let host = host_port(url);
    let is_refused = find::<std::io::Error>(cause)
        .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
    // through a proxy, it is the proxy that refused the connection
    if route.is_none() && is_refused {
        return format!("; nothing listens at {host}: is the port right, and does the server run?");
    }
    if url.scheme() == "http" && find::<hyper::Error>(cause).is_some_and(hyper::Error::is_parse) {
        return format!(
            "; if {host} speaks TLS, leave out --plain-http, and plainHTTP of the site"
        );
    }
    String::new()
}

/// Returns the message for a proxy that cannot be reached.
pub(super) fn no_proxy_connection(proxy: &ProxyUrl, why: &str) -> String {
    format!(
        "cannot connect to the proxy {} (from {}): {why}",
        proxy.address(),
        proxy.source
    )
}

/// Returns the error for a rejected certificate, the server's or the client's; `None` if the
/// failure has another cause.
pub(super) fn certificate_error(
    url: &Url,
    route: Option<&ProxyUrl>,
    error: &(dyn std::error::Error + 'static),
) -> Option<HttpError> {
    let host = host_port(url);
    let at_proxy = route.filter(|_| is_to_proxy(url, error));
    let error = find::<rustls::Error>(error)?;
    let words = match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            let untrusted = other.0.downcast_ref::<UntrustedCertificate>()?;
            match (&untrusted.cause, route) {
                // behind a proxy, an unknown issuer is most likely the proxy's own
                (DistrustCause::Issuer { .. }, Some(proxy)) => format!(
                    "{untrusted}; {}save its certificate authority as a file, and add to the \
                     site, under proxy: `ca: FILE.pem`{}",
                    match at_proxy {
                        Some(_) => String::new(),
                        None => format!("if the proxy {} intercepts TLS, ", proxy.address()),
                    },
                    // a `proxy` with only `ca` would disable the proxy of the environment
                    if proxy.source.starts_with("proxy.") {
                        ""
                    } else {
                        " (together with http, https and noProxy, because a site's proxy replaces \
                         the variables)"
                    }
                ),
                (DistrustCause::Issuer { .. }, None) => format!(
                    "{untrusted}; save that authority's certificate as a file, and add \
                     `ca: FILE.pem` to the site, under registry or upstreams, or put it at \
                     /etc/containers/certs.d/{host}/ca.crt"
                ),
                _ => untrusted.to_string(),
            }
        }
        rustls::Error::InvalidCertificate(error) => {
            format!("its certificate is refused: {}", error_words(error))
        }
        // servers use different alerts for a missing or rejected client certificate
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::UnknownCA),
        ) => format!(
            "it requires a client certificate, or rejects ours ({alert:?}); name clientCert and \
             clientKey under registry or upstreams of the site, or put client.cert and client.key into \
             /etc/containers/certs.d/{host}"
        ),
        _ => return None,
    };
    let words = match at_proxy {
        Some(proxy) => no_proxy_connection(proxy, &words),
        None => words,
    };
    Some(HttpError::new(ErrorKind::Local, words).at(url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::HttpRequest;
    use crate::ledger::RequestPurpose;
    use crate::proxy::ProxyRules;
    use crate::transport::{Transport, TransportConfig};
    use reqwest::Method;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    fn printed(proxy: &str, challenges: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for value in challenges {
            headers.append(
                PROXY_AUTHENTICATE,
                reqwest::header::HeaderValue::from_static(value),
            );
        }
        let proxy = ProxyUrl::parse(proxy, "HTTPS_PROXY").unwrap();
        proxy_sign_in_error(
            &Url::parse("https://quay.io/v2/").unwrap(),
            &proxy,
            &headers,
        )
        .to_string()
    }

    #[tokio::test]
    async fn a_proxy_may_close_the_connection_instead_of_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                assert!(lines.take_while(|line| !line.is_empty()).count() > 0);
            }
        });
        let variable = |name: &str| (name == "HTTPS_PROXY").then(|| proxy.clone());
        let transport = Transport::new(TransportConfig {
            proxies: ProxyRules::from_env(variable).unwrap(),
            ..TransportConfig::default()
        });
        let url = Url::parse("https://quay.test/v2/").unwrap();
        let mut request = HttpRequest::new(Method::GET, url, RequestPurpose::Registry);
        request.retried = false;
        let error = transport.send(&request).await.err().unwrap().to_string();
        let words = format!(
            "through the proxy {proxy}: it closed the connection without an answer to CONNECT"
        );
        assert!(error.contains(&words), "{error}");
    }

    #[test]
    fn the_error_for_a_407_says_what_to_do() {
        let message = printed("p:1", &["Negotiate", "NTLM"]);
        assert!(
            message.contains("offered: Negotiate, NTLM;") && message.contains("cntlm or px"),
            "{message}"
        );
        let message = printed("u:pw@p:1", &["Negotiate, Basic realm=\"a, b\""]);
        assert!(
            message.contains("refused account 'u' from HTTPS_PROXY"),
            "{message}"
        );
        assert!(!message.contains("pw"), "{message}");
        let message = printed("p:1", &["Basic realm=\"x\""]);
        assert!(
            message.contains("offered: Basic") && message.contains("into HTTPS_PROXY"),
            "{message}"
        );
    }

    #[test]
    fn a_refusal_of_the_proxy_differs_from_one_of_the_target() {
        let url = Url::parse("http://quay.io/x").unwrap();
        let proxy = ProxyUrl::parse("p:1", "X").unwrap();
        let mut headers = HeaderMap::new();
        assert!(refusal_in_answer(&url, &proxy, StatusCode::FORBIDDEN, &headers).is_none());
        let denied = refusal(&url, &proxy, StatusCode::FORBIDDEN, &headers);
        assert!(
            denied.kind == ErrorKind::Proxy(403)
                && denied.to_string().contains("refuses quay.io:80"),
            "{denied}"
        );
        let page = "https://p.test/coach?ticket=secret";
        headers.insert(LOCATION, page.parse().unwrap());
        let redirected = refusal(&url, &proxy, StatusCode::FOUND, &headers).to_string();
        assert!(
            redirected.contains("redirects to https://p.test/coach?…, perhaps"),
            "{redirected}"
        );
        headers.insert(
            "x-squid-error",
            reqwest::header::HeaderValue::from_static("ERR_DNS_FAIL 0"),
        );
        let unknown =
            refusal_in_answer(&url, &proxy, StatusCode::SERVICE_UNAVAILABLE, &headers).unwrap();
        assert!(
            unknown.is_transient() && unknown.to_string().contains("cannot resolve that name"),
            "{unknown}"
        );
    }
}
