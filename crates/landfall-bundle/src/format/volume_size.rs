//! The size of volumes, as users write it.

use landfall_model::parse_size;
use std::str::FromStr;

/// The number of bytes that the last volume reserves for the end of the tar, the signatures and the
/// footer, so that signatures can be added later.
pub(crate) const TAIL: u64 = 4 << 10;

/// The maximum size of a volume, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSize(pub u64);

/// Why a text is not a volume size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeSizeError {
    /// The text is not a size.
    #[error("{0}; or dvd, bd, fat32")]
    Text(String),
    /// No bundle fits into volumes of this size.
    #[error("volumes have at least {TAIL} bytes")]
    TooSmall,
}

impl FromStr for VolumeSize {
    type Err = VolumeSizeError;

    /// Parses a size, or a medium: `dvd`, `bd`, `fat32`. On a disc some space is left for the
    /// program and the file system.
    fn from_str(text: &str) -> Result<VolumeSize, VolumeSizeError> {
        let bytes = match text.to_ascii_lowercase().as_str() {
            // a disc has 4.7 GB, but files in ISO 9660 must be smaller than 4 GiB, in sectors of 2
            // KiB
            "dvd" => (4 << 30) - 2048,
            // a disc has 25.02 GB
            "bd" => 24_800_000_000,
            "fat32" => (4 << 30) - 1,
            _ => parse_size(text).map_err(|error| VolumeSizeError::Text(error.to_string()))?,
        };
        if bytes < TAIL {
            Err(VolumeSizeError::TooSmall)
        } else {
            Ok(VolumeSize(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_sizes_are_parsed() {
        let size = |text: &str| text.parse::<VolumeSize>().map(|size| size.0);
        assert_eq!(
            (size("4.7G"), size("4GiB")),
            (Ok(4_700_000_000), Ok(4 << 30))
        );
        assert!(size("dvd").unwrap() < 4 << 30 && size("fat32").unwrap() < 4 << 30);
        assert!(size("BD").unwrap() < 25_000_000_000);
        assert_eq!(size("4KiB"), Ok(TAIL));
        for bad in ["0", "10", "4095", "cd", "-1", ""] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
