//! The table of forms. A new form is a file beside this one, its `mod` line, a row here, and its
//! word in `landfall export`.

use super::form::Form;
use super::{hauler, images_txt, imgpkg_lock, regsync, skopeo_sync, sources, zarf};

/// All forms.
pub const FORMS: &[Form] = &[
    Form {
        name: "hauler",
        write: hauler::write,
    },
    Form {
        name: "images-txt",
        write: images_txt::write,
    },
    Form {
        name: "skopeo-sync",
        write: skopeo_sync::write,
    },
    Form {
        name: "regsync",
        write: regsync::write,
    },
    Form {
        name: "zarf",
        write: zarf::write,
    },
    Form {
        name: "imgpkg-lock",
        write: imgpkg_lock::write,
    },
    Form {
        name: "sources",
        write: sources::write,
    },
];
