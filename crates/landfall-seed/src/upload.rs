//! Uploads blobs by POST and PUT over 8 connections, without any other request or check. The time
//! that these uploads take is a lower bound for the time of a push.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

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
