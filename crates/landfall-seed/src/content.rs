//! The content of the generated images: programs of this machine, or incompressible bytes.

use anyhow::{Context, Result, ensure};
use landfall_model::Digest;
use oci_client::manifest::IMAGE_CONFIG_MEDIA_TYPE as OCI_CONFIG;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
pub(crate) const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// The media types of OCI or of Docker.
#[derive(Clone, Copy)]
pub(crate) struct MediaTypes {
    pub(crate) index: &'static str,
    pub(crate) manifest: &'static str,
    pub(crate) config: &'static str,
}

pub(crate) const OCI: MediaTypes = MediaTypes {
    index: OCI_INDEX,
    manifest: OCI_MANIFEST,
    config: OCI_CONFIG,
};
pub(crate) const DOCKER: MediaTypes = MediaTypes {
    index: DOCKER_LIST,
    manifest: DOCKER_MANIFEST,
    config: DOCKER_CONFIG,
};

/// A layer as the registry stores it.
#[derive(Clone)]
pub(crate) struct SeedLayer {
    pub(crate) bytes: Vec<u8>,
    /// The digest of the uncompressed tar.
    pub(crate) diff_id: String,
    pub(crate) media_type: &'static str,
}

/// The programs of this machine that have not been used yet, the next one last.
pub(crate) struct ProgramFiles(Vec<PathBuf>);

impl ProgramFiles {
    /// Lists programs of moderate size, so that a layer contains several of them.
    pub(crate) fn list() -> Result<ProgramFiles> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for folder in ["/usr/bin", "/bin", "/usr/sbin"] {
            let Ok(entries) = std::fs::read_dir(folder) else {
                continue;
            };
            paths.extend(entries.flatten().map(|entry| entry.path()));
        }
        // no symbolic links, because some programs are links to other programs
        paths.retain(|path| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|data| data.is_file() && (10_000..2_000_000).contains(&data.len()))
        });
        paths.sort();
        paths.reverse();
        ensure!(
            !paths.is_empty(),
            "found no program of 10 kB to 2 MB in /usr/bin, /bin and /usr/sbin"
        );
        Ok(ProgramFiles(paths))
    }

    /// Removes and returns the next files until they have `size` bytes in total, or no file is
    /// left.
    pub(crate) fn take(&mut self, size: usize) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut files = Vec::new();
        let mut total = 0;
        while total < size
            && let Some(path) = self.0.pop()
        {
            // some programs are readable by root only
            let Ok(content) = std::fs::read(&path) else {
                continue;
            };
            total += content.len();
            files.push((path.strip_prefix("/")?.to_path_buf(), content));
        }
        Ok(files)
    }
}

/// Returns a layer with these files: compressed with zstd for OCI, an uncompressed tar for Docker.
pub(crate) fn layer(files: &[(PathBuf, Vec<u8>)], types: MediaTypes) -> Result<SeedLayer> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        // a fixed time, so that equal files give equal digests
        header.set_mtime(1_700_000_000);
        tar.append_data(&mut header, path, &content[..])?;
    }
    let tar = tar.into_inner()?;
    let diff_id = sha256(&tar);
    let (bytes, media_type) = if types.index == OCI_INDEX {
        (zstd::encode_all(&tar[..], 1)?, OCI_LAYER)
    } else {
        (tar, DOCKER_LAYER)
    };
    Ok(SeedLayer {
        bytes,
        diff_id,
        media_type,
    })
}

/// Returns incompressible bytes, the same for the same seed (xorshift64*).
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    // the generator must not start at 0, because it would return only zeros
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    })
    .take(len.div_ceil(8))
    .flatten()
    .collect();
    bytes.truncate(len);
    bytes
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Digest::sha256(bytes).to_string()
}

// Uploads blobs by POST and PUT over 8 connections, without any other request or check. The time
// that these uploads take is a lower bound for the time of a push.

/// The number of concurrent uploads.
const CONNECTIONS: usize = 8;

/// Uploads the files of `dir`, which are named by the SHA-256 of their content, as blobs.
pub(crate) async fn upload(address: &str, dir: &Path) -> Result<()> {
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    // the largest file is popped first, as in a push
    files.sort();
    let count = files.len();
    let bytes: u64 = files.iter().map(|(size, _)| size).sum();
    let files = Arc::new(Mutex::new(files));
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let files = files.clone();
        let client = client.clone();
        let address = address.to_owned();
        tasks.push(tokio::spawn(async move {
            loop {
                let next = files.lock().ok().and_then(|mut files| files.pop());
                let Some((size, path)) = next else {
                    return Ok(());
                };
                send(&client, &address, size, &path).await?;
            }
        }));
    }
    for task in tasks {
        let result: Result<()> = task.await?;
        result?;
    }
    println!("{count} blobs, {} MB", bytes / 1_000_000);
    Ok(())
}

/// Uploads one blob in a single PUT.
async fn send(client: &reqwest::Client, address: &str, size: u64, path: &Path) -> Result<()> {
    let begun = client
        .post(format!("http://{address}/v2/floor/blobs/uploads/"))
        .send()
        .await?;
    let location = begun
        .headers()
        .get("location")
        .context("an upload without a location")?
        .to_str()?;
    // the location may be relative, and may have a query with the state of the upload
    let base = reqwest::Url::parse(&format!("http://{address}/"))?;
    let mut url = base.join(location)?;
    let hex = path.file_name().context("no file name")?.to_string_lossy();
    url.query_pairs_mut()
        .append_pair("digest", &format!("sha256:{hex}"));
    let file = tokio::fs::File::open(path).await?;
    let body =
        reqwest::Body::wrap_stream(tokio_util::io::ReaderStream::with_capacity(file, 1 << 18));
    let put = client
        .put(url)
        .header("content-length", size)
        .body(body)
        .send()
        .await?;
    ensure!(
        put.status() == 201,
        "{}: {}",
        path.display(),
        put.text().await?
    );
    Ok(())
}
