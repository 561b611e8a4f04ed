//! A file of more than 4 GiB, which is sparse, so that it takes no space.

use crate::support::peers::nginx;
use crate::support::{Place, need};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;

const SIZE: u64 = 5 << 30;
const END: &[u8] = b"the end of it\n";
/// The digest of a file of `SIZE` bytes: zeros, followed by `END`.
const DIGEST: &str = "ded05c24b1f13833e64bb01b556566a1a67e5d939d540c6eacb6e69e8b0f8b9d";

#[test]
fn a_file_beyond_four_gib_is_resumed_where_it_stopped() {
    if !need(&["nginx"]) {
        return;
    }
    let place = Place::new();
    place.write("www/disk.img.sha256", format!("{DIGEST}  disk.img\n"));
    let mut file = File::create(place.path("www/disk.img")).unwrap();
    file.seek(SeekFrom::Start(SIZE - END.len() as u64)).unwrap();
    file.write_all(END).unwrap();
    let upstream = nginx(&place.path("www"));
    let url = format!("{}/disk.img", upstream.url());
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    place.write(
        "m.yaml",
        format!("{head}files: [{{url: \"{url}\", checksum: \"${{url}}.sha256\"}}]\n"),
    );
    place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    assert_eq!(
        upstream.requests("\"GET /disk.img HTTP"),
        0,
        "the checksum file suffices"
    );

    // an earlier run was stopped shortly before the end
    let lacking = 1_000_003;
    let partial =
        File::create(place.path(format!("store/.landfall/partial/sha256-{DIGEST}"))).unwrap();
    partial.set_len(SIZE - lacking).unwrap();
    drop(partial);
    let report = place.json(0, &["pull", "--store", "store"]);
    assert_eq!(report["totals"]["bytes_transferred"], lacking, "{report}");
    assert_eq!(
        upstream.requests(&format!("\"GET /disk.img HTTP/1.1\" 206 {lacking}")),
        1,
        "{}",
        upstream.log()
    );
    let blob = std::fs::metadata(place.path(format!("store/blobs/sha256/{DIGEST}"))).unwrap();
    assert_eq!(blob.len(), SIZE);
    assert!(
        blob.blocks() * 512 < 64 << 20,
        "existing content is not written again"
    );
}
