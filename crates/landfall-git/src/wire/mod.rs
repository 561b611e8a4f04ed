//! The packets and messages of the smart HTTP protocol (gitprotocol-v2, gitprotocol-http).
//!
//! As a client, landfall fetches with version 2 only, and pushes with version 0, because version 2
//! has no push. As a server, it speaks version 2 and, because the git clients of some `GitOps`
//! controllers still use it, version 0.

mod advertise;
mod advertisement;
mod fetch;
mod ls_refs;
mod offered;
mod pack_stream;
mod packet;
mod receive;
mod server_request;

pub use advertise::{advertise_version_2, error_answer};
pub use advertisement::{MAX_ADVERTISEMENT, check_advertisement};
pub use fetch::fetch_request;
pub use ls_refs::{RefListStream, RemoteRef, ls_refs_request};
pub use offered::{OfferedRef, OfferedRepository, advertise_version_0, list_refs_answer};
pub use pack_stream::PackStream;
pub use packet::{Packet, Packets, push_data, push_delimiter, push_flush, push_text};
pub use receive::{ReceiveAdvertisement, RefUpdate, check_report};
pub use server_request::{FetchRequest, RefsRequest, UploadPackReader, UploadPackRequest};
