//! Pointers of Git LFS: small files in a repository that refer to large files elsewhere (git-lfs,
//! docs/spec.md).

use landfall_model::Digest;

/// The large file to which a pointer refers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsPointer {
    /// SHA-256 of the large file.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl LfsPointer {
    /// Files of this size or more are not pointers.
    pub const MAX_BYTES: u64 = 1024;

    /// Reads the content of a file. `None` if it is not a pointer.
    pub fn parse(content: &[u8]) -> Option<LfsPointer> {
        if content.len() as u64 >= LfsPointer::MAX_BYTES {
            return None;
        }
        let mut lines = std::str::from_utf8(content).ok()?.lines();
        (lines.next()? == "version https://git-lfs.github.com/spec/v1").then_some(())?;
        let mut digest = None;
        let mut size = None;
        for line in lines {
            match line.split_once(' ')? {
                ("oid", text) => digest = text.parse::<Digest>().ok(),
                ("size", text) => size = text.parse().ok(),
                _ => {}
            }
        }
        let digest =
            digest.filter(|digest| digest.algorithm() == landfall_model::Algorithm::Sha256);
        Some(LfsPointer {
            digest: digest?,
            size: size?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_name_a_digest_and_a_size() {
        let digest = Digest::sha256(b"large");
        let text = format!("version https://git-lfs.github.com/spec/v1\noid {digest}\nsize 5\n");
        let pointer = LfsPointer::parse(text.as_bytes()).unwrap();
        assert_eq!((pointer.digest, pointer.size), (digest, 5));
        for other in [
            text.replace("oid", "id"),
            text.replace("size 5", "size -5"),
            text.replace("/v1", "/v2"),
            text.replace("sha256", "md5"),
            format!("\n{text}"),
            text.clone() + &" x".repeat(600),
        ] {
            assert_eq!(LfsPointer::parse(other.as_bytes()), None, "{other}");
        }
    }
}
