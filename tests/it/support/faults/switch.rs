//! The faults, and the requests that they apply to.

use std::time::Duration;

/// The kinds of requests that a fault can apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// GET of a manifest.
    Manifest,
    ManifestHead,
    /// GET of a blob at the registry.
    Blob,
    BlobHead,
    /// POST that begins an upload or mounts a blob.
    Begin,
    /// PUT that ends an upload.
    Upload,
    /// PATCH of an upload.
    Patch,
    PutManifest,
    /// The list of a repository's tags.
    Tags,
    /// The list of the referrers of a manifest.
    Referrers,
    /// A request for a token.
    Token,
    /// A plain file.
    File,
    /// Any request to the second host, the target of redirects and of some uploads.
    Second,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// Sends this many bytes of the body, then closes the connection.
    Cut(usize),
    /// Sends this many bytes of the body, then nothing until the client gives up.
    Stall(usize),
    /// Sends the body in pieces of this many bytes, with a pause after each.
    Drip(usize, Duration),
    /// Waits for this time, then answers.
    Hold(Duration),
    /// Closes the connection without a response.
    HangUp,
    /// Closes the connection after this many bytes of the request body.
    CutUpload(usize),
    /// Answers 413 to request bodies of more than this many bytes.
    TooLarge(usize),
    /// Compresses the body and sets `Content-Encoding`.
    Gzip,
    /// Changes one byte of the body, and not its length.
    Corrupt,
    /// Answers 200 with an HTML page of this title.
    Page(&'static str),
    /// Ignores `Range`: answers 200 with the whole content.
    RangeDropped,
    /// Answers 206 with another range than the requested one. `Content-Range` is that of the sent
    /// range.
    RangeShifted,
    /// Answers 206 with the requested `Content-Range`, but with the bytes in reverse order.
    RangeLies,
    /// Answers this status to a `Range` that begins after byte 0, with the `Content-Length` of the
    /// whole content but with a short body.
    RangeRefused(u16),
    /// Answers this status with errors in the format of the distribution API.
    Status(u16),
    /// Answers this status with this error code of the distribution API.
    Refusal(u16, &'static str),
    /// Answers 429 or 503, with this `Retry-After`.
    Busy(u16, RetryAfter),
    /// Answers 401, as if the token had expired.
    Unauthorized,
    /// Omits `Docker-Content-Digest`.
    NoDigest,
    /// Sets this header, in which `VALUE` is replaced by the value that the response has.
    Header(&'static str, String),
    /// Omits `Content-Length` in the response to HEAD.
    NoLength,
    /// Redirects (307) to the second host, with a valid or an expired URL.
    Redirect { expired: bool },
    /// The form of `Location` in the response to a request that begins an upload.
    Location(Location),
    /// The status of the response to a mount.
    Mount(u16),
    /// Answers 201 without `Location`.
    NoLocation,
    /// The status of a successful PATCH, instead of 202.
    PatchStatus(u16),
    /// The `Range` header of the response to PATCH says that no bytes were received.
    StaleRange,
    /// The token response, in which `TOKEN` is replaced by a valid token.
    TokenAnswer(&'static str),
    /// Accepts a manifest with a subject without answering `OCI-Subject`.
    NoSubject,
    /// Accepts a manifest, but the tag is not changed.
    Lost,
    /// Splits lists into pages of this many entries, with `Link`.
    Pages(usize),
    /// Answers with `"tags": null`.
    NullTags,
    /// Swaps the images of the requested tag and of the tag `other` before each response.
    Moving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    /// The date that is this many seconds in the future.
    Date(u64),
    /// The value as it is.
    Text(&'static str),
    /// No header says when to retry.
    Unsaid,
    /// The pull quota is exhausted for this many seconds.
    Quota(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Relative,
    /// `http://host/…` without the port.
    NoPort,
    /// Without a scheme.
    NoScheme,
    OtherHost,
    /// On another host, where nothing listens.
    Silent,
}

impl FaultKind {
    /// Whether the fault applies only to requests with `Range`.
    pub(super) fn is_of_ranges(&self) -> bool {
        matches!(
            self,
            FaultKind::RangeDropped
                | FaultKind::RangeShifted
                | FaultKind::RangeLies
                | FaultKind::RangeRefused(_)
        )
    }
}

/// A fault, and the requests that it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub on: RequestKind,
    pub what: FaultKind,
    /// Applies only to paths that contain this text, which may close with `$` for the end.
    pub at: String,
    /// The number of matching requests that pass before the fault applies.
    pub skip: usize,
    /// The number of matching requests that the fault applies to.
    pub times: usize,
}

/// More requests than any test sends.
pub const ALWAYS: usize = usize::MAX;

impl Fault {
    /// Applies once, to the first request of the kind.
    pub fn once(on: RequestKind, what: FaultKind) -> Fault {
        Fault {
            on,
            what,
            at: String::new(),
            skip: 0,
            times: 1,
        }
    }

    /// Applies to every request of the kind.
    pub fn always(on: RequestKind, what: FaultKind) -> Fault {
        Fault {
            on,
            what,
            at: String::new(),
            skip: 0,
            times: ALWAYS,
        }
    }

    pub fn at(self, part: &str) -> Fault {
        Fault {
            at: part.into(),
            ..self
        }
    }

    pub fn skip(self, skip: usize) -> Fault {
        Fault { skip, ..self }
    }

    pub fn times(self, times: usize) -> Fault {
        Fault { times, ..self }
    }
}
