//! The HTTP client that the crate `object_store` uses: landfall's transport, with its proxies,
//! trust, limits per host, retries and ledger of hosts.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use landfall_http::{ByteStream, RequestBody, RequestPurpose, SlotClass, Transport};
use landfall_model::unpoisoned;
use object_store::client::{
    HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use url::Url;

/// The transport as an HTTP client of `object_store`.
#[derive(Clone, derive_more::Debug)]
#[debug("TransportClient")]
pub(super) struct TransportClient(pub Transport);

/// Marks a request whose response may be read slowly while its reader sends other requests to the
/// same host: it must not hold a slot that those requests need.
#[derive(Clone)]
pub(super) struct SlowReader;

impl HttpService for TransportClient {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            // the transport sets the length too, and strict servers refuse a request that has it
            // twice
            head.headers.remove(http::header::CONTENT_LENGTH);
            let url = Url::parse(&head.uri.to_string())
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            // the user has named this host, so a private address is allowed
            self.0.add_own_host(&url);
            // collected, so that the transport can send it again; uploads are sent in parts of
            // bounded size
            let bytes = body.collect().await?.to_bytes();
            let body = if bytes.is_empty() {
                RequestBody::Empty
            } else {
                RequestBody::Bytes(bytes)
            };
            let is_slow = head.extensions.get::<SlowReader>().is_some();
            let class = if is_slow {
                SlotClass::UploadSource
            } else {
                SlotClass::Ordinary
            };
            let request = landfall_http::HttpRequest {
                class,
                headers: head.headers,
                body,
                // a signature is valid for this host only, so redirects must not carry it
                secret: true,
                ..landfall_http::HttpRequest::new(head.method, url, RequestPurpose::ObjectStore)
            };
            let response = self.0.send(&request).await.map_err(final_error)?;
            let mut answer = http::Response::builder().status(response.status);
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(&response.headers);
            }
            let body =
                HttpResponseBody::new(ReceivedBody(Mutex::new(response.stream().fuse().boxed())));
            answer
                .body(body)
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
        })
    }
}

/// Wraps an error of the transport in a kind that `object_store` does not retry, because the
/// transport has made all attempts.
fn final_error(error: landfall_http::HttpError) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, error)
}

/// The body of a response. The mutex makes it `Sync`, which `object_store` requires.
struct ReceivedBody(Mutex<ByteStream>);

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let stream = unpoisoned(self.0.get_mut());
        stream
            .as_mut()
            .poll_next(cx)
            .map(|next| next.map(|piece| piece.map(Frame::data).map_err(final_error)))
    }
}
