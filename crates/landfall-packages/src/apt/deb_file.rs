//! Reads the identity and the changelog of a `.deb` file.
//!
//! deb(5): an ar(5) archive whose member `control.tar` contains the fields of the package, and
//! `data.tar` its files; both may be compressed. Debian Policy 12.7 specifies the path of a
//! changelog, and 4.4 its format. Nothing is extracted, so names in the archive cannot do harm.

use super::fields::paragraphs;
use crate::decompress::{Compression, decompressed};
use crate::{CHANGELOG_BYTES, PackageIdentity, first_lines};
use std::io::{self, BufReader, Read};

const MAGIC: &[u8; 8] = b"!<arch>\n";
/// The size of a member's header in bytes: its name, four fields that are not needed, its size, and
/// an end mark.
const HEADER: usize = 60;
const HEADER_END: &[u8; 2] = b"`\n";
/// The maximum unpacked size of a package in bytes. It is read as a stream, so a decompression bomb
/// costs time up to this limit, but no memory.
const MAX_BYTES: u64 = 64 << 30;
/// The maximum number of bytes that are read from a control file.
const CONTROL_BYTES: u64 = 1 << 20;

/// Returns the first lines of the newest changelog entry of the package `name`, or an empty list if
/// it has no changelog in Debian's format. Packages of other vendors often have none.
///
/// # Errors
/// If `package` is not a Debian package, or cannot be read.
pub fn changelog(package: &mut dyn Read, name: &str) -> io::Result<Vec<String>> {
    changelog_in_data(open_member(package, "data.tar")?, name)
}

/// Returns the name, version and architecture in the control file of `package`.
///
/// # Errors
/// If `package` is not a Debian package, or cannot be read.
pub fn package_identity(package: &mut dyn Read) -> io::Result<PackageIdentity> {
    let lacks = |what: &str| invalid(&format!("the package has no {what} in its control file"));
    // raw: extended headers with long names are skipped instead of read into memory
    for entry in tar::Archive::new(open_member(package, "control.tar")?)
        .entries()?
        .raw(true)
    {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        if path.trim_start_matches("./") != "control" {
            continue;
        }
        // names and versions are ASCII; other fields, such as descriptions, may have any encoding
        let mut text = Vec::new();
        (&mut entry).take(CONTROL_BYTES).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let paragraph = paragraphs(&text).next().ok_or_else(|| lacks("field"))?;
        let field = |name: &str| {
            paragraph
                .field(name)
                .map(str::to_owned)
                .ok_or_else(|| lacks(name))
        };
        return Ok(PackageIdentity {
            name: field("Package")?,
            version: field("Version")?,
            arch: field("Architecture")?,
        });
    }
    Err(invalid("the package has no control file"))
}

/// Returns the decompressed content of the first member of `package` whose name begins with
/// `start`.
fn open_member<'p>(mut package: &'p mut dyn Read, start: &str) -> io::Result<Box<dyn Read + 'p>> {
    let mut magic = [0; MAGIC.len()];
    package.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(invalid("it is not a Debian package"));
    }
    loop {
        let mut header = [0; HEADER];
        package.read_exact(&mut header)?;
        let (member, size) = parse_header(&header)
            .ok_or_else(|| invalid("it is not a Debian package, or it is damaged"))?;
        if member.starts_with(start) {
            let compression = Compression::of(member)
                .ok_or_else(|| invalid("its compression is not supported"))?;
            return decompressed(BufReader::new(package.take(size)), compression, MAX_BYTES);
        }
        // ar(5): members begin at even offsets
        let skipped = size + size % 2;
        if io::copy(&mut (&mut package).take(skipped), &mut io::sink())? != skipped {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Returns the name and the size of a member.
fn parse_header(header: &[u8; HEADER]) -> Option<(&str, u64)> {
    let name = std::str::from_utf8(&header[..16]).ok()?;
    let size = std::str::from_utf8(&header[48..58]).ok()?;
    if header[58..] != *HEADER_END {
        return None;
    }
    // some archivers end a name with `/`, others only pad it with blanks
    let name = name.trim_end().trim_end_matches('/');
    Some((name, size.trim_end().parse().ok()?))
}

/// Like [`changelog`], for the unpacked `data.tar`.
fn changelog_in_data(data: impl Read, name: &str) -> io::Result<Vec<String>> {
    let folder = format!("usr/share/doc/{name}/");
    let mut upstream = Vec::new();
    // raw: long names would cost memory, and the path of a changelog is short
    for entry in tar::Archive::new(data).entries()?.raw(true) {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let Some(file) = path.trim_start_matches("./").strip_prefix(&folder) else {
            continue;
        };
        // a package that was rebuilt for one architecture has a `changelog.Debian.amd64.gz` too,
        // which precedes `changelog.Debian.gz` in the archive and is newer
        let is_debian = file.starts_with("changelog.Debian");
        if is_debian || ["changelog", "changelog.gz"].contains(&file) {
            let Some(compression) = Compression::of(file) else {
                continue;
            };
            let mut text = Vec::new();
            decompressed(BufReader::new(&mut entry), compression, MAX_BYTES)?
                .take(CHANGELOG_BYTES)
                .read_to_end(&mut text)?;
            let lines = first_entry(&String::from_utf8_lossy(&text));
            if is_debian {
                return Ok(lines);
            }
            // Debian's native packages have their changelog in this file. In other packages, the
            // file is upstream's changelog, for which `first_entry` returns nothing.
            upstream = lines;
        }
    }
    Ok(upstream)
}

/// Returns the first lines of the newest entry of a changelog in Debian's format; nothing for other
/// texts.
fn first_entry(text: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    // `name (version) suites; urgency=low`
    if !lines.next().is_some_and(|line| {
        line.contains(" (") && line.contains(") ") && line.contains("; urgency=")
    }) {
        return Vec::new();
    }
    first_lines(
        lines
            // ` -- Name <address>  date` ends an entry
            .take_while(|line| !line.starts_with(" -- "))
            .filter(|line| !names_author(line)),
    )
}

/// Whether a line of a changelog says who made the changes, instead of what was changed.
fn names_author(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("[ ") && line.ends_with(" ]") || line.starts_with("* Non-maintainer upload")
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression as Level, write::GzEncoder};
    use std::io::Write;

    const CHANGELOG: &str = "a (1.0-1+b1) stable; urgency=high\n\n  * Non-maintainer upload by the LTS Team.\n\n  [ Somebody ]\n  * CVE-1: first\n    line\n\n  * second\n  * third\n\n -- Me <me@a.test>  Sat, 01 Jan 2022\n\na (0.9-1) stable; urgency=low\n\n  * old\n";

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            builder
                .append_data(&mut header, path, &content[..])
                .unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn deb(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, content) in members {
            bytes.extend(
                format!(
                    "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                    0,
                    0,
                    0,
                    100_644,
                    content.len()
                )
                .bytes(),
            );
            bytes.extend(*content);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    }

    fn changelog_of(files: &[(&str, Vec<u8>)]) -> Vec<String> {
        changelog(
            &mut &*deb(&[
                ("debian-binary", b"2.0\n\n"),
                ("control.tar.xz/", b"odd"),
                ("data.tar/", &tar(files)),
            ]),
            "a",
        )
        .unwrap()
    }

    #[test]
    fn the_newest_entry_is_returned() {
        let lines = ["* CVE-1: first", "line", "* second"];
        let other = (
            "./usr/share/doc/a-doc/changelog.Debian.gz",
            gzip("a-doc (1) s; urgency=low\n\n  * other\n"),
        );
        for path in [
            "changelog.Debian.gz",
            "changelog.Debian.amd64.gz",
            "changelog.gz",
        ] {
            assert_eq!(
                changelog_of(&[
                    other.clone(),
                    (&format!("./usr/share/doc/a/{path}"), gzip(CHANGELOG))
                ]),
                lines,
                "{path}"
            );
        }
        let upstream = ("usr/share/doc/a/changelog.gz", gzip("Version 1.0\n- new\n"));
        assert_eq!(
            changelog_of(&[
                upstream.clone(),
                ("usr/share/doc/a/changelog.Debian", CHANGELOG.into())
            ]),
            lines
        );
        assert!(changelog_of(&[upstream]).is_empty());
        assert!(changelog_of(&[other]).is_empty());
    }

    #[test]
    fn the_identity_is_read_from_the_control_file() {
        let read = |control: &str, path: &str| {
            let control = tar(&[("./md5sums", b"x".to_vec()), (path, control.into())]);
            package_identity(&mut &*deb(&[
                ("debian-binary", b"2.0\n"),
                ("control.tar/", &control),
                ("data.tar", b"x"),
            ]))
        };
        let control =
            "Package: a\nVersion: 1:2-3\nArchitecture: all\nDescription: x\n Version: 9\n";
        assert_eq!(
            read(control, "./control").unwrap().to_string(),
            "a 1:2-3 all"
        );
        assert_eq!(read(control, "control").unwrap().to_string(), "a 1:2-3 all");
        for (control, path) in [
            ("Package: a\nVersion: 1\n", "control"),
            (control, "other"),
            ("", "control"),
        ] {
            assert!(read(control, path).is_err(), "{control:?} at {path}");
        }
    }

    #[test]
    fn files_that_are_not_packages_and_damaged_packages_are_errors() {
        let whole = deb(&[("data.tar.gz", &gzip("x"))]);
        for package in [
            &b""[..],
            b"something else",
            &whole[..20],
            &whole[..HEADER + 12],
            &deb(&[("control.tar", b"x")]),
        ] {
            assert!(changelog(&mut &*package, "a").is_err(), "{package:?}");
        }
        assert!(
            changelog(&mut &*deb(&[("data.tar.lz4", b"x")]), "a")
                .unwrap_err()
                .to_string()
                .contains("compression")
        );
        let mut odd = whole.clone();
        odd[MAGIC.len() + 50] = b'x';
        assert!(changelog(&mut &*odd, "a").is_err());
    }
}
