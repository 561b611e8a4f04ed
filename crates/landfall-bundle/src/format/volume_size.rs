//! The size of volumes, as people give it.

use landfall_model::parse_size;
use std::str::FromStr;

/// The size that volumes may have, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSize(pub u64);

/// Why a text is no volume size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeSizeError {
    /// It is no size.
    #[error("{0}; or dvd, bd, fat32")]
    Text(String),
    /// Nothing fits.
    #[error("volumes have at least one byte")]
    Empty,
}

impl FromStr for VolumeSize {
    type Err = VolumeSizeError;

    /// Reads a size, or a medium: `dvd`, `bd`, `fat32`. A disc keeps some room beside the volume,
    /// for the program and what a file system needs.
    fn from_str(text: &str) -> Result<VolumeSize, VolumeSizeError> {
        let bytes = match text.to_ascii_lowercase().as_str() {
            // of 4.7 GB; ISO 9660 has files under 4 GiB, in sectors of 2 KiB
            "dvd" => (4 << 30) - 2048,
            // of 25.02 GB
            "bd" => 24_800_000_000,
            "fat32" => (4 << 30) - 1,
            _ => parse_size(text).map_err(|error| VolumeSizeError::Text(error.to_string()))?,
        };
        if bytes == 0 {
            Err(VolumeSizeError::Empty)
        } else {
            Ok(VolumeSize(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_volumes() {
        let size = |text: &str| text.parse::<VolumeSize>().map(|size| size.0);
        assert_eq!(
            (size("4.7G"), size("4GiB")),
            (Ok(4_700_000_000), Ok(4 << 30))
        );
        assert!(size("dvd").unwrap() < 4 << 30 && size("fat32").unwrap() < 4 << 30);
        assert!(size("BD").unwrap() < 25_000_000_000);
        for bad in ["0", "cd", "-1", ""] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
