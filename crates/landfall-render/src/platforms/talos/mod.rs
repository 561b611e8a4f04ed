//! `talos`: patches of the machine configuration with mirrors, certificates, account, proxy and
//! installer.

mod platform;

pub(super) use self::platform::TalosPlatform;
