//! The packets and messages of the smart HTTP protocol (gitprotocol-v2, gitprotocol-http).
//!
//! As a client, landfall fetches with version 2 only, and pushes with version 0, because version 2
//! has no push. As a server, it speaks version 2 and, because the git clients of some `GitOps`
//! controllers still use it, version 0.

mod offered;
mod pack_stream;
mod packet;
mod receive;
mod server_request;

pub use self::offered::{
    OfferedRef, OfferedRepository, RefListStream, RemoteRef, advertise_version_0,
    advertise_version_2, error_answer, list_refs_answer, ls_refs_request,
};
pub use self::pack_stream::{MAX_ADVERTISEMENT, PackStream, check_advertisement};
pub use self::packet::{Packet, Packets, push_data, push_delimiter, push_flush, push_text};
pub use self::receive::{ReceiveAdvertisement, RefUpdate, check_report};
pub use self::server_request::{
    FetchRequest, RefsRequest, UploadPackReader, UploadPackRequest, fetch_request,
};
