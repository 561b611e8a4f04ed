//! Opens a sparse bundle of 4 TiB, which the test writes by the documentation of the format.
//! Opening it needs less than 64 MiB of memory.

use super::{code, shown};
use crate::support::library::Digest;
use crate::support::{need, run};
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use xxhash_rust::xxh64::xxh64;

const CHUNK: u64 = 1 << 20;

/// Returns a stored frame with this content.
fn frame(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50];
    out.extend((content.len() as u32).to_le_bytes());
    let blocks = content.chunks(128 << 10).count();
    for (number, block) in content.chunks(128 << 10).enumerate() {
        out.extend(
            &((block.len() as u32) << 3 | u32::from(number + 1 == blocks)).to_le_bytes()[..3],
        );
        out.extend(block);
    }
    out.extend(&xxh64(content, 0).to_le_bytes()[..4]);
    out
}

/// The number of bytes that `size` bytes of content occupy as stored frames in a bundle.
fn stored(size: u64) -> u64 {
    let one = |n: u64| 14 + 3 * n.div_ceil(128 << 10).max(1) + n;
    size / CHUNK * one(CHUNK)
        + if size.is_multiple_of(CHUNK) {
            0
        } else {
            one(size % CHUNK)
        }
}

fn tar_header(name: &str, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).unwrap();
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    Digest::sha256(bytes).hex()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Writes a bundle of four files of 1 TiB each. Their content is a hole in the sparse file.
fn write(file: &File) {
    let digests: Vec<Digest> = (0..4).map(|n| Digest::sha256(&[n])).collect();
    let mut lock = "# landfall.lock, written by `landfall lock`\nversion: 1\nfiles:\n".to_owned();
    for (n, digest) in digests.iter().enumerate() {
        lock += &format!(
            "- name: https://h.example/f{n}\n  digest: {digest}\n  size: {}\n",
            1u64 << 40
        );
    }
    lock += "...\n";
    let index = json!({"schemaVersion": 2, "manifests": []}).to_string();
    let front = [
        ("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        ("index.json", &index),
        ("landfall.lock", &lock),
    ];
    let mut end = 0u64;
    let mut rows = Vec::new();
    let mut count = 0u64;
    let mut entries = Vec::new();
    for (name, content) in front {
        let offset = end;
        let padding = vec![0; (512 - content.len() % 512) % 512];
        for piece in [
            tar_header(name, content.len() as u64),
            content.as_bytes().to_vec(),
            padding,
        ] {
            let frame = frame(&piece);
            file.write_all_at(&frame, end).unwrap();
            rows.extend(end.to_le_bytes());
            rows.extend(unhex(&hex(&frame)));
            end += frame.len() as u64;
        }
        entries
            .push(json!({"name": name, "digest": Digest::sha256(content.as_bytes()), "size": content.len(),
            "mediaType": "x", "form": "stored", "offset": offset, "length": end - offset, "frame": count}));
        count += 3;
    }
    for digest in &digests {
        let length = stored(512) + stored(1 << 40);
        entries.push(json!({"name": digest.layout_path(), "digest": digest, "size": 1u64 << 40,
            "mediaType": "application/octet-stream", "form": "stored", "offset": end, "length": length,
            "frame": count}));
        end += length;
        count += 1 + (1 << 20);
    }
    let table = end;
    let size = 40 * count;
    rows.resize(CHUNK as usize, 0);
    let mut hashes = vec![
        hex(b"a hole");
        1 + size.div_ceil(CHUNK) as usize + usize::from(!size.is_multiple_of(512))
    ];
    hashes[1] = hex(&frame(&rows));
    file.write_all_at(&frame(&rows), table + stored(512))
        .unwrap();
    end += stored(512)
        + stored(size)
        + if size.is_multiple_of(512) {
            0
        } else {
            stored(512 - size % 512)
        };
    let index = json!({"version": 1, "landfall": "1", "options": {"level": 3}, "requires": [],
        "locks": [{"name": "landfall.lock", "fingerprint": Digest::sha256(lock.as_bytes())}], "partial": [],
        "frames": {"offset": table, "size": size, "hashes": hashes}, "entries": entries});
    let index = index.to_string() + "\n";
    let offset = end + stored(512);
    let frames: Vec<u8> = index
        .as_bytes()
        .chunks(CHUNK as usize)
        .flat_map(frame)
        .collect();
    let padding = (512 - index.len() % 512) % 512;
    let mut rest = [
        frame(&tar_header("landfall-contents.json", index.len() as u64)),
        frames.clone(),
    ]
    .concat();
    rest.extend(if padding > 0 {
        frame(&vec![0; padding])
    } else {
        vec![]
    });
    rest.extend(frame(&[0; 1024]));
    let footer = format!(
        "landfall bundle 1\noffset {offset:020}\nlength {:020}\nframes {}\nsize   {:020}\nsha256 {}\nsigned {:020}\nsigs   {}\n",
        frames.len(),
        hex(&frames),
        index.len(),
        hex(index.as_bytes()),
        0,
        hex(b"")
    );
    rest.extend([0x5c, 0x2a, 0x4d, 0x18]);
    rest.extend((footer.len() as u32).to_le_bytes());
    rest.extend(footer.as_bytes());
    file.write_all_at(&rest, end).unwrap();
}

#[test]
fn opening_four_tebibytes_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("huge.tar.zst");
    write(&File::create(&path).unwrap());
    assert!(std::fs::metadata(&path).unwrap().len() > 4 << 40);
    let ls = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"));
        command
            .args(["ls", "huge.tar.zst"])
            .env_clear()
            .current_dir(dir.path());
        command
    };
    let output = ls().output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert_eq!(
        shown(&output).matches("https://h.example/f").count(),
        4,
        "{}",
        shown(&output)
    );
    if !need(&["python3"]) {
        return;
    }
    let script = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let mut measured = Command::new("python3");
    measured
        .args(["-c", script])
        .arg(ls().get_program())
        .args(ls().get_args())
        .current_dir(dir.path());
    let kilobytes: u64 = String::from_utf8(run(&mut measured))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(kilobytes < 64 << 10, "{kilobytes} KiB");
}
