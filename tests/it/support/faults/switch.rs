//! The switches.

use std::time::Duration;

/// Which requests a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// GET of a manifest.
    Manifest,
    ManifestHead,
    /// GET of a blob at the registry.
    Blob,
    BlobHead,
    /// POST that begins an upload, or mounts.
    Begin,
    /// PUT that ends an upload.
    Upload,
    /// PATCH of an upload.
    Patch,
    PutManifest,
    /// The list of a repository's tags.
    Tags,
    /// The list of what refers to a manifest.
    Referrers,
    /// A token realm.
    Token,
    /// A plain file.
    File,
    /// GET at the second host, where redirects lead.
    Second,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// So many bytes of the body, then the end of the connection.
    Cut(usize),
    /// So many bytes of the body, then nothing for as long as the other side waits.
    Stall(usize),
    /// A body in pieces of so many bytes with a pause after each.
    Drip(usize, Duration),
    /// Nothing at all for so long, then the answer.
    Hold(Duration),
    /// The connection ends without an answer.
    HangUp,
    /// The connection ends after so many bytes of the request's body.
    CutUpload(usize),
    /// 413 for bodies of requests with more bytes.
    TooLarge(usize),
    /// The body compressed, as `Content-Encoding` says.
    Gzip,
    /// One byte is another; the length is right.
    Corrupt,
    /// 200 with an HTML page of this title.
    Page(&'static str),
    /// `Range` is not looked at: 200 with the whole.
    RangeDropped,
    /// 206 with another part than was asked for, and a `Content-Range` that says so.
    RangeShifted,
    /// 206 that says it is the part asked for, with the bytes of another.
    RangeLies,
    /// This status for any `Range`, with a length in the header that never comes.
    RangeRefused(u16),
    /// This status with the errors of the distribution API.
    Status(u16),
    /// This status with this code of the distribution API.
    Refusal(u16, &'static str),
    /// 429, or 503, and what it says of when to come back.
    Busy(u16, Later),
    /// 401 as for a token that ran out.
    Unauthorized,
    /// HEAD without `Docker-Content-Digest`.
    NoDigest,
    /// HEAD without `Content-Length`.
    NoLength,
    /// 307 to the second host, by a URL that is good or has run out.
    Redirect { expired: bool },
    /// How `Location` of an upload is written.
    Location(Location),
    /// The answer to a mount.
    Mount(u16),
    /// 201 without `Location`.
    NoLocation,
    /// The status of a good PATCH in place of 202.
    PatchStatus(u16),
    /// A PATCH's `Range` says that nothing has come.
    StaleRange,
    /// A token of this JSON, `TOKEN` standing for a good one.
    TokenAnswer(&'static str),
    /// A manifest with a subject is taken without `OCI-Subject`.
    NoSubject,
    /// Lists come in answers of so many entries, with `Link`.
    Pages(usize),
    /// `"tags": null`.
    NullTags,
    /// The tag moves to the other image before each answer.
    Moving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    Seconds(u64),
    Date(u64),
    Unsaid,
    /// Nothing is left of a quota for so many seconds.
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
}

impl What {
    /// It is about requests with `Range` alone.
    pub(super) fn is_of_ranges(&self) -> bool {
        matches!(
            self,
            What::RangeDropped | What::RangeShifted | What::RangeLies | What::RangeRefused(_)
        )
    }
}

/// A fault, armed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub on: On,
    pub what: What,
    /// Only where this stands in the path.
    pub at: String,
    /// So many requests of the kind pass before it.
    pub skip: usize,
    /// So many requests of the kind meet it.
    pub times: usize,
}

/// More often than any test asks.
pub const ALWAYS: usize = usize::MAX;

impl Fault {
    /// Once, at the first request of the kind.
    pub fn once(on: On, what: What) -> Fault {
        Fault {
            on,
            what,
            at: String::new(),
            skip: 0,
            times: 1,
        }
    }

    /// At every request of the kind.
    pub fn always(on: On, what: What) -> Fault {
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
