//! Repositories of RPM packages, generated from a short notation. They have only metadata, so
//! nothing can be installed from them.
//!
//! Each line is a package: `name [epoch:]version[-release] [arch]: provides x = 1; requires y; file
//! /bin/z`. The defaults are version 1, release 1 and the architecture `noarch`. A `file` is in the
//! primary index and in the list of all files. A `listed` file is only in the list of all files.
//! `createrepo_c` also omits files outside `/etc` and the folders of programs from the primary
//! index.

use super::images::sha256_hex;
use flate2::{Compression, write::GzEncoder};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// A package of the notation.
struct Line<'a> {
    name: &'a str,
    epoch: &'a str,
    version: &'a str,
    release: &'a str,
    arch: &'a str,
    relations: Vec<(&'a str, &'a str)>,
}

fn lines(packages: &str) -> impl Iterator<Item = Line<'_>> {
    packages
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (head, relations) = line
                .split_once(": ")
                .unwrap_or((line.trim_end_matches(':'), ""));
            let mut words = head.split(' ');
            let name = words.next().expect("a name");
            let evr = words.next().unwrap_or("1");
            let (epoch, evr) = evr.split_once(':').unwrap_or(("0", evr));
            let (version, release) = evr.split_once('-').unwrap_or((evr, "1"));
            let relations = relations
                .split(';')
                .map(str::trim)
                .filter_map(|one| one.split_once(' '));
            Line {
                name,
                epoch,
                version,
                release,
                arch: words.next().unwrap_or("noarch"),
                relations: relations.collect(),
            }
        })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn entry(relation: &str) -> String {
    let words: Vec<&str> = relation.split(' ').collect();
    let [name, sense, evr] = words[..] else {
        return format!("<rpm:entry name=\"{}\"/>", escaped(relation));
    };
    let flag = match sense {
        "<" => "LT",
        "<=" => "LE",
        "=" => "EQ",
        ">=" => "GE",
        ">" => "GT",
        _ => return format!("<rpm:entry name=\"{}\"/>", escaped(relation)),
    };
    let (epoch, evr) = evr.split_once(':').unwrap_or(("0", evr));
    let (version, release) = evr
        .split_once('-')
        .map_or((evr, String::new()), |(version, release)| {
            (version, format!(" rel=\"{release}\""))
        });
    format!(
        "<rpm:entry name=\"{name}\" flags=\"{flag}\" epoch=\"{epoch}\" ver=\"{version}\"{release}/>"
    )
}

/// The primary index of `packages`.
pub fn primary(packages: &str) -> String {
    let all: Vec<Line<'_>> = lines(packages).collect();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata xmlns=\"http://linux.duke.edu/metadata/common\" \
         xmlns:rpm=\"http://linux.duke.edu/metadata/rpm\" packages=\"{}\">\n",
        all.len()
    );
    for line in all {
        let Line {
            name,
            epoch,
            version,
            release,
            arch,
            relations,
        } = line;
        let file = format!("{name}-{version}-{release}.{arch}.rpm");
        let digest = sha256_hex(file.as_bytes());
        let _ = write!(
            text,
            "<package type=\"rpm\"><name>{name}</name><arch>{arch}</arch><version epoch=\"{epoch}\" ver=\"{version}\" \
             rel=\"{release}\"/><checksum type=\"sha256\" pkgid=\"YES\">{digest}</checksum><summary>s</summary>\
             <description>d</description><packager/><url/><time file=\"1\" build=\"1\"/><size package=\"100\" \
             installed=\"1\" archive=\"1\"/><location href=\"Packages/{file}\"/><format><rpm:license>MIT</rpm:license>\
             <rpm:sourcerpm>{name}.src.rpm</rpm:sourcerpm>"
        );
        let own = format!("{name} = {epoch}:{version}-{release}");
        for kind in [
            "provides",
            "requires",
            "conflicts",
            "obsoletes",
            "suggests",
            "enhances",
            "recommends",
            "supplements",
        ] {
            let of_kind = relations
                .iter()
                .filter(|(word, _)| *word == kind)
                .map(|(_, relation)| *relation);
            let own = (kind == "provides").then_some(own.as_str());
            let entries: String = own.into_iter().chain(of_kind).map(entry).collect();
            if !entries.is_empty() {
                let _ = write!(text, "<rpm:{kind}>{entries}</rpm:{kind}>");
            }
        }
        for (_, file) in relations.iter().filter(|(word, _)| *word == "file") {
            let _ = write!(text, "<file>{file}</file>");
        }
        text.push_str("</format></package>\n");
    }
    text + "</metadata>\n"
}

/// The list of all files of `packages`.
fn filelists(packages: &str) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <filelists xmlns=\"http://linux.duke.edu/metadata/filelists\">\n"
        .to_owned();
    for Line {
        name,
        epoch,
        version,
        release,
        arch,
        relations,
    } in lines(packages)
    {
        let digest = sha256_hex(format!("{name}-{version}-{release}.{arch}.rpm").as_bytes());
        let _ = write!(
            text,
            "<package pkgid=\"{digest}\" name=\"{name}\" arch=\"{arch}\"><version epoch=\"{epoch}\" ver=\"{version}\" \
             rel=\"{release}\"/>"
        );
        for (_, file) in relations
            .iter()
            .filter(|(word, _)| matches!(*word, "file" | "listed"))
        {
            let _ = write!(text, "<file>{file}</file>");
        }
        text.push_str("</package>\n");
    }
    text + "</filelists>\n"
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// Writes the metadata of `packages` below `folder`.
pub fn write(folder: &Path, packages: &str) {
    let primary = primary(packages);
    let files = filelists(packages);
    let indexes = [
        (
            "primary",
            "primary.xml.gz",
            gzip(&primary),
            primary.as_str(),
        ),
        (
            "filelists",
            "filelists.xml.gz",
            gzip(&files),
            files.as_str(),
        ),
    ];
    write_indexes(folder, &indexes);
}

/// Writes, below `folder`, the metadata of a repository with only this primary index.
pub fn write_primary(folder: &Path, text: &str) {
    write_indexes(folder, &[("primary", "primary.xml.gz", gzip(text), text)]);
}

/// Writes these indexes and `repomd.xml`, which lists them, below `folder`. Each index is given by
/// its kind, name, packed bytes and text.
pub fn write_indexes(folder: &Path, indexes: &[(&str, &str, Vec<u8>, &str)]) {
    let repodata = folder.join("repodata");
    std::fs::create_dir_all(&repodata).unwrap();
    let mut repomd =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<repomd xmlns=\"http://linux.duke.edu/metadata/repo\">\
                      <revision>1</revision>"
            .to_owned();
    for (kind, name, packed, text) in indexes {
        std::fs::write(repodata.join(name), packed).unwrap();
        let [digest, open] = [&packed[..], text.as_bytes()].map(sha256_hex);
        let _ = write!(
            repomd,
            "<data type=\"{kind}\"><checksum type=\"sha256\">{digest}</checksum><open-checksum type=\"sha256\">{open}\
             </open-checksum><location href=\"repodata/{name}\"/><timestamp>1</timestamp><size>{}</size>\
             <open-size>{}</open-size></data>",
            packed.len(),
            text.len()
        );
    }
    std::fs::write(repodata.join("repomd.xml"), repomd + "</repomd>\n").unwrap();
}
