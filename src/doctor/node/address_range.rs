//! A range of IP addresses, for routes.

use std::net::IpAddr;
use std::str::FromStr;

/// A range of IP addresses. IPv4 addresses are the lower 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    pub(super) is_v6: bool,
    network: u128,
    bits: u32,
}

impl AddressRange {
    /// The range of `network` with a prefix of `bits`.
    pub(super) fn new(is_v6: bool, network: u128, bits: u32) -> AddressRange {
        let range = AddressRange {
            is_v6,
            network: 0,
            bits: bits.min(if is_v6 { 128 } else { 32 }),
        };
        AddressRange {
            network: network & range.mask(),
            ..range
        }
    }

    fn mask(self) -> u128 {
        let length = if self.is_v6 { 128 } else { 32 };
        let all = if self.is_v6 {
            u128::MAX
        } else {
            u128::from(u32::MAX)
        };
        match length - self.bits {
            128 => 0,
            free => all >> free << free & all,
        }
    }

    /// Whether all addresses of `other` are in this range.
    pub(super) fn contains(self, other: AddressRange) -> bool {
        self.is_v6 == other.is_v6
            && self.bits <= other.bits
            && other.network & self.mask() == self.network
    }

    /// Whether the range has all addresses, as that of a default route.
    pub(super) fn is_everything(self) -> bool {
        self.bits == 0
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressRange, String> {
        let wrong = || format!("'{text}' is not a range of addresses such as 10.96.0.0/12");
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let bits: u32 = bits.parse().map_err(|_| wrong())?;
        let (is_v6, network, most) = match address.parse().map_err(|_| wrong())? {
            IpAddr::V4(address) => (false, u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (true, u128::from(address), 128),
        };
        if bits > most {
            return Err(wrong());
        }
        Ok(AddressRange::new(is_v6, network, bits))
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
        for wrong in ["10.96.0.0", "10.96.0.0/33", "x/8", "::/129", "10.96.0.0/-1"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }
}
