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

/// The versions of the format: the current one, and those of the releases before 1.0, whose
/// pointers git-lfs still reads (git-lfs, `lfs/pointer.go`).
const VERSIONS: [&str; 3] = [
    "version https://git-lfs.github.com/spec/v1",
    "version https://hawser.github.com/spec/v1",
    "version http://git-media.io/v/2",
];

impl LfsPointer {
    /// Files of this size or more are not pointers.
    pub const MAX_BYTES: u64 = 1024;

    /// Reads the content of a file. `None` if it is not a pointer. Like git-lfs, ignores blank
    /// lines and white space around the text, which editors add.
    pub fn parse(content: &[u8]) -> Option<LfsPointer> {
        if content.len() as u64 >= LfsPointer::MAX_BYTES {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?.trim();
        let mut lines = text.lines().filter(|line| !line.is_empty());
        VERSIONS.contains(&lines.next()?).then_some(())?;
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
            text.clone() + &" x".repeat(600),
        ] {
            assert_eq!(LfsPointer::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn pointers_that_git_lfs_reads_are_pointers() {
        let oid = format!("oid {}", Digest::sha256(b"large"));
        for text in [
            format!("version https://git-lfs.github.com/spec/v1\n{oid}\nsize 5\n"),
            format!("version https://hawser.github.com/spec/v1\n{oid}\nsize 5\n"),
            format!("version http://git-media.io/v/2\n{oid}\nsize 5\n"),
            format!("\nversion https://git-lfs.github.com/spec/v1\r\n{oid}\r\nsize 5\r\n\r\n"),
            format!("version https://git-lfs.github.com/spec/v1\n\n{oid}\nsize 5"),
        ] {
            let pointer = LfsPointer::parse(text.as_bytes());
            assert_eq!(pointer.map(|pointer| pointer.size), Some(5), "{text}");
        }
        for text in [
            format!("version https://h.example/v1\n{oid}\nsize 5\n"),
            format!("version https://git-lfs.github.com/spec/v1\n{oid}\n"),
            String::new(),
        ] {
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{text}");
        }
    }
}
