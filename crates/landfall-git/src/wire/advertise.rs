//! The answers of a server that are not packs: its capabilities, its refs and errors.

use super::packet::{push_data, push_flush, push_text};
use super::server_request::RefsRequest;
use crate::object::ObjectId;

/// A ref that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedRef {
    /// The full name: `HEAD` or `refs/…`.
    pub name: String,
    /// The object that the ref points to.
    pub id: ObjectId,
    /// The object that an annotated tag names in the end.
    pub peeled: Option<ObjectId>,
    /// For `HEAD`: the ref that it points to, if any. `None` for every other ref.
    pub target: Option<String>,
}

/// The capabilities of a server that speaks version 2.
pub fn advertise_version_2() -> Vec<u8> {
    let mut message = service_line();
    for line in [
        "version 2",
        "agent=landfall",
        "ls-refs",
        "fetch=shallow filter",
        "object-format=sha1",
    ] {
        push_text(&mut message, line);
    }
    push_flush(&mut message);
    message
}

/// The refs and capabilities of a server that speaks version 0, and the commits at which its
/// history ends.
pub fn advertise_version_0(refs: &[OfferedRef], shallow: &[ObjectId]) -> Vec<u8> {
    let mut capabilities =
        "side-band-64k ofs-delta shallow no-progress include-tag object-format=sha1 agent=landfall"
            .to_owned();
    for one in refs {
        if let Some(target) = &one.target {
            capabilities.push_str(&format!(" symref={}:{target}", one.name));
        }
    }
    let mut message = service_line();
    let mut capabilities = Some(capabilities);
    for one in refs {
        let mut line = format!("{} {}", one.id, one.name);
        if let Some(capabilities) = capabilities.take() {
            line.push_str(&format!("\0{capabilities}"));
        }
        push_text(&mut message, &line);
        if let Some(peeled) = one.peeled {
            push_text(&mut message, &format!("{peeled} {}^{{}}", one.name));
        }
    }
    for id in shallow {
        push_text(&mut message, &format!("shallow {id}"));
    }
    push_flush(&mut message);
    message
}

/// The answer to `ls-refs`.
pub fn list_refs_answer(refs: &[OfferedRef], request: &RefsRequest) -> Vec<u8> {
    let is_wanted = |name: &str| {
        let mut prefixes = request.prefixes.iter();
        request.prefixes.is_empty() || prefixes.any(|prefix| name.starts_with(prefix))
    };
    let mut message = Vec::new();
    for one in refs.iter().filter(|one| is_wanted(&one.name)) {
        let mut line = format!("{} {}", one.id, one.name);
        if let Some(target) = one.target.as_ref().filter(|_| request.symrefs) {
            line.push_str(&format!(" symref-target:{target}"));
        }
        if let Some(peeled) = one.peeled.filter(|_| request.peel) {
            line.push_str(&format!(" peeled:{peeled}"));
        }
        push_text(&mut message, &line);
    }
    push_flush(&mut message);
    message
}

/// An answer that reports an error to the client.
pub fn error_answer(why: &str) -> Vec<u8> {
    let mut message = Vec::new();
    push_data(&mut message, format!("ERR {why}\n").as_bytes());
    message
}

/// The line with which every answer to `info/refs` begins (gitprotocol-http).
fn service_line() -> Vec<u8> {
    let mut message = Vec::new();
    push_text(&mut message, "# service=git-upload-pack");
    push_flush(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::super::server_request::UploadPackRequest;
    use super::super::{RefListStream, check_advertisement, ls_refs_request};
    use super::*;

    #[test]
    fn landfall_reads_what_landfall_offers() {
        assert!(check_advertisement(&advertise_version_2()).is_ok());
        let id = ObjectId::ZERO;
        let head = OfferedRef {
            name: "HEAD".into(),
            id,
            peeled: None,
            target: Some("refs/heads/main".into()),
        };
        let tag = OfferedRef {
            name: "refs/tags/v1".into(),
            peeled: Some(id),
            target: None,
            ..head.clone()
        };
        let UploadPackRequest::ListRefs(request) =
            UploadPackRequest::parse(&ls_refs_request()).unwrap()
        else {
            panic!("not a list")
        };
        let mut stream = RefListStream::new(9);
        let answer = list_refs_answer(&[head.clone(), tag.clone()], &request);
        stream.push(&answer).unwrap();
        let found = stream.finish().unwrap();
        assert_eq!(found[0].target, head.target);
        assert_eq!((found[1].peeled, found.len()), (Some(id), 2));
        let old = String::from_utf8(advertise_version_0(&[head, tag], &[id])).unwrap();
        assert!(
            old.contains("HEAD\0side-band-64k") && old.contains("refs/tags/v1^{}\n0035shallow 0"),
            "{old}"
        );
    }
}
