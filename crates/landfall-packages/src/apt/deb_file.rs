//! The file of a package: what it is, and what its changelog says of its version.
//!
//! The format is that of deb(5): an archive of ar(5) whose member `control.tar`, compressed as the
//! end of its name says, has the fields of the package, and `data.tar` the files. Debian's policy
//! 12.7 says where a changelog is, and 4.4 what it looks like. What a name in the package says is
//! read, and nothing is written.

use super::paragraph::paragraphs;
use crate::PackageIdentity;
use crate::changelog::{READ_BYTES, first_lines};
use crate::decompress::{Compression, decompressed};
use std::io::{self, BufReader, Read};

const MAGIC: &[u8; 8] = b"!<arch>\n";
/// Bytes of the header of a member: its name, four fields that say nothing here, its size, and an
/// end.
const HEADER: usize = 60;
const HEADER_END: &[u8; 2] = b"`\n";
/// How much a package may unpack to, in bytes: a bomb costs time up to here, and no memory.
const MOST: u64 = 64 << 30;
/// How much of a control file is read, in bytes.
const CONTROL_BYTES: u64 = 1 << 20;

/// The first lines of what the package `name` says of its newest version; none where it has no
/// changelog, as many of other vendors.
///
/// # Errors
/// When it is no package, or cannot be read.
pub fn changelog(package: &mut dyn Read, name: &str) -> io::Result<Vec<String>> {
    in_data(open_member(package, "data.tar")?, name)
}

/// Returns what `package` is, by its control file.
///
/// # Errors
/// When it is no package, or cannot be read.
pub fn package_identity(package: &mut dyn Read) -> io::Result<PackageIdentity> {
    let lacks = |what: &str| wrong(&format!("the package has no {what} in its control file"));
    for entry in tar::Archive::new(open_member(package, "control.tar")?)
        .entries()?
        .raw(true)
    {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        if path.trim_start_matches("./") != "control" {
            continue;
        }
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
    Err(wrong("the package has no control file"))
}

/// The content of the first member of `package` whose name begins with `start`, decompressed.
fn open_member<'p>(mut package: &'p mut dyn Read, start: &str) -> io::Result<Box<dyn Read + 'p>> {
    let mut magic = [0; MAGIC.len()];
    package.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(wrong("it is no package of Debian"));
    }
    loop {
        let mut header = [0; HEADER];
        package.read_exact(&mut header)?;
        let (member, size) =
            member(&header).ok_or_else(|| wrong("it is no package of Debian, or a damaged one"))?;
        if member.starts_with(start) {
            let compression =
                Compression::of(member).ok_or_else(|| wrong("its compression is not read here"))?;
            return decompressed(BufReader::new(package.take(size)), compression, MOST);
        }
        // members begin at even places
        let skipped = size + size % 2;
        if io::copy(&mut (&mut package).take(skipped), &mut io::sink())? != skipped {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The name and the size of a member.
fn member(header: &[u8; HEADER]) -> Option<(&str, u64)> {
    let (name, size) = (
        std::str::from_utf8(&header[..16]).ok()?,
        std::str::from_utf8(&header[48..58]).ok()?,
    );
    let is_whole = header[58..] == *HEADER_END;
    is_whole.then_some((
        name.trim_end().trim_end_matches('/'),
        size.trim_end().parse().ok()?,
    ))
}

/// As [`changelog`], in the tar of the files.
fn in_data(data: impl Read, name: &str) -> io::Result<Vec<String>> {
    let folder = format!("usr/share/doc/{name}/");
    let mut upstream = Vec::new();
    // raw, as long names cost memory, and that of a changelog is short
    for entry in tar::Archive::new(data).entries()?.raw(true) {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let Some(file) = path.trim_start_matches("./").strip_prefix(&folder) else {
            continue;
        };
        // one that was built again for an architecture has `changelog.Debian.amd64.gz` too, which
        // comes first and is newer
        let is_debian = file.starts_with("changelog.Debian");
        if is_debian || ["changelog", "changelog.gz"].contains(&file) {
            let Some(compression) = Compression::of(file) else {
                continue;
            };
            let mut text = Vec::new();
            decompressed(BufReader::new(&mut entry), compression, MOST)?
                .take(READ_BYTES)
                .read_to_end(&mut text)?;
            let lines = first_entry(&String::from_utf8_lossy(&text));
            if is_debian {
                return Ok(lines);
            }
            // that of a package that Debian itself makes; others have upstream's own text there
            upstream = lines;
        }
    }
    Ok(upstream)
}

/// The first lines of the newest entry of a changelog in Debian's form; none of another text.
fn first_entry(text: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let is_title =
        |line: &str| line.contains(" (") && line.contains(") ") && line.contains("; urgency=");
    if !lines.next().is_some_and(is_title) {
        return Vec::new();
    }
    // `[ Name ]` and words of procedure say who made the changes, and not what they are
    let is_about_people = |line: &str| {
        let line = line.trim();
        line.starts_with("[ ") && line.ends_with(" ]")
            || line.starts_with("* Non-maintainer upload")
    };
    first_lines(
        lines
            .take_while(|line| !line.starts_with(" -- "))
            .filter(|line| !is_about_people(line)),
    )
}

fn wrong(why: &str) -> io::Error {
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

    fn told(files: &[(&str, Vec<u8>)]) -> Vec<String> {
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
    fn the_newest_entry_is_told() {
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
                told(&[
                    other.clone(),
                    (&format!("./usr/share/doc/a/{path}"), gzip(CHANGELOG))
                ]),
                lines,
                "{path}"
            );
        }
        let upstream = ("usr/share/doc/a/changelog.gz", gzip("Version 1.0\n- new\n"));
        assert_eq!(
            told(&[
                upstream.clone(),
                ("usr/share/doc/a/changelog.Debian", CHANGELOG.into())
            ]),
            lines
        );
        assert!(told(&[upstream]).is_empty());
        assert!(told(&[other]).is_empty());
    }

    #[test]
    fn the_control_file_says_what_a_package_is() {
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
    fn what_is_no_package_or_a_damaged_one_is_an_error() {
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
            changelog(&mut &*deb(&[("data.tar.bz2", b"x")]), "a")
                .unwrap_err()
                .to_string()
                .contains("compression")
        );
        let mut odd = whole.clone();
        odd[MAGIC.len() + 50] = b'x';
        assert!(changelog(&mut &*odd, "a").is_err());
    }
}
