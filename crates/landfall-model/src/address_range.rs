//! Ranges of IP addresses.

use std::net::IpAddr;
use std::str::FromStr;

/// The service network of kubeadm.
pub const DEFAULT_SERVICES: &str = "10.96.0.0/12";

/// A range of IP addresses, as in CIDR notation. IPv4 addresses are the lower 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    is_v6: bool,
    network: u128,
    bits: u32,
}

impl AddressRange {
    /// Returns the range of all addresses that have the first `bits` bits of `address`; a larger
    /// number means all bits.
    pub fn new(address: IpAddr, bits: u32) -> AddressRange {
        let (is_v6, address, length) = match address {
            IpAddr::V4(address) => (false, u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (true, address.to_bits(), 128),
        };
        let range = AddressRange {
            is_v6,
            network: 0,
            bits: bits.min(length),
        };
        AddressRange {
            network: address & range.mask(),
            ..range
        }
    }

    fn mask(self) -> u128 {
        let (length, all) = if self.is_v6 {
            (128, u128::MAX)
        } else {
            (32, u128::from(u32::MAX))
        };
        // a range of 0 bits would shift by all 128 bits, which `<<` does not allow
        all.checked_shl(length - self.bits).unwrap_or(0) & all
    }

    /// Whether the range is one of IPv6.
    pub fn is_v6(self) -> bool {
        self.is_v6
    }

    /// Whether all addresses of `other` are in this range.
    pub fn contains(self, other: AddressRange) -> bool {
        self.is_v6 == other.is_v6
            && self.bits <= other.bits
            && other.network & self.mask() == self.network
    }

    /// Whether `address` is in this range.
    pub fn has(self, address: IpAddr) -> bool {
        self.contains(AddressRange::new(address, 128))
    }

    /// Whether the range has all addresses, as that of a default route.
    pub fn is_everything(self) -> bool {
        self.bits == 0
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressRange, String> {
        let wrong = || format!("'{text}' is not a range of addresses such as {DEFAULT_SERVICES}");
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u32 = bits.parse().map_err(|_| wrong())?;
        if bits > if address.is_ipv4() { 32 } else { 128 } {
            return Err(wrong());
        }
        Ok(AddressRange::new(address, bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_smaller_ranges_of_its_family() {
        let range = |text: &str| text.parse::<AddressRange>().unwrap();
        for (outer, inner, is_inside) in [
            ("0.0.0.0/0", "10.96.0.0/12", true),
            ("10.96.0.0/12", "10.96.0.0/12", true),
            ("10.0.0.0/8", "10.96.0.0/12", true),
            ("10.96.0.0/16", "10.96.0.0/12", false),
            ("172.20.0.0/24", "10.96.0.0/12", false),
            ("::/0", "10.96.0.0/12", false),
            ("::/0", "fd00::/108", true),
            ("fd00::/64", "fd00::1:0/112", true),
        ] {
            assert_eq!(
                range(outer).contains(range(inner)),
                is_inside,
                "{outer} {inner}"
            );
        }
        assert!(range("10.96.0.0/12").has("10.111.255.255".parse().unwrap()));
        assert!(!range("10.96.0.0/12").has("10.112.0.0".parse().unwrap()));
        assert!(range("0.0.0.0/0").has("255.255.255.255".parse().unwrap()));
        for wrong in ["10.96.0.0", "10.96.0.0/33", "x/8", "::/129", "10.96.0.0/-1"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }
}
