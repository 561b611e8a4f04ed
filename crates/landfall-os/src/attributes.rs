//! Modes, owners and extended attributes of files.

use std::fs::{File, Metadata};
use std::io::Result;
use std::path::Path;
use tempfile::Builder;

#[cfg(unix)]
use crate::files::check_writable;
#[cfg(unix)]
use std::fs::Permissions;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

/// The bit of a mode that lets the owner execute the file.
pub const EXECUTABLE: u32 = 0o100;

/// The bits of a mode that let everybody read the file.
#[cfg(unix)]
const READABLE: u32 = 0o444;

/// Returns the permissions of a file as a mode of Unix, such as 0644. On Windows, every file can be
/// read by all and executed by nobody, and the attribute "read-only" decides who may write.
pub fn mode_of(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    return metadata.permissions().mode() & 0o7777;
    #[cfg(windows)]
    return if metadata.permissions().readonly() {
        0o444
    } else {
        0o644
    };
}

/// Whether a file has this mode, as far as the system has modes.
pub fn has_mode(metadata: &Metadata, mode: u32) -> bool {
    cfg!(windows) || mode_of(metadata) == mode
}

/// Gives the file at `path` a mode. Has no effect on Windows, whose files inherit the access
/// control list of their folder.
///
/// # Errors
/// If the system refuses.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    #[cfg(unix)]
    return std::fs::set_permissions(path, Permissions::from_mode(mode));
    #[cfg(windows)]
    return {
        let _ = (path, mode);
        Ok(())
    };
}

/// Like [`set_mode`], for an open file. On a file system whose files have no modes of their own,
/// such as a USB stick with FAT, the present mode is accepted if it includes `mode` and everybody
/// may read the file in both.
///
/// # Errors
/// If the system refuses.
pub fn set_file_mode(file: &File, mode: u32) -> Result<()> {
    #[cfg(unix)]
    return match file.set_permissions(Permissions::from_mode(mode)) {
        // unless the file belongs to this user, such a file system refuses every change; some in
        // user space (FUSE) cannot change modes at all
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported
            ) =>
        {
            let is_included =
                mode & READABLE == READABLE && mode & !mode_of(&file.metadata()?) == 0;
            if is_included { Ok(()) } else { Err(error) }
        }
        set => set,
    };
    #[cfg(windows)]
    return {
        let _ = (file, mode);
        Ok(())
    };
}

/// Lets the temporary files of a builder have the permissions that the umask gives to other files;
/// by default, only this user can read them.
pub fn public_temporary_file() -> Builder<'static, 'static> {
    #[cfg(unix)]
    {
        let mut builder = Builder::new();
        builder.permissions(Permissions::from_mode(0o666));
        builder
    }
    // they have the permissions of their folder
    #[cfg(windows)]
    return Builder::new();
}

/// The extended attribute that holds the access control list. If a file has one, the group bits of
/// its mode are the mask of the list, not rights of the group.
#[cfg(unix)]
const ACL: &str = "system.posix_acl_access";
#[cfg(unix)]
const GROUP_BITS: u32 = 0o070;
/// The bits that let a program run with the rights of its owner or group.
#[cfg(unix)]
const SET_ID_BITS: u32 = 0o6000;

/// Copies the extended attributes and the mode of `from` to `to`, and its owner and group too if
/// `to` shall replace it at the path `replaced`. Returns the attributes that could not be copied.
/// On Windows, only the attribute "read-only" is copied, and `to` has the access control list of
/// its folder.
///
/// # Errors
/// If an attribute that protects the content cannot be copied, such as the owner of a file to which
/// this user may not write.
#[cfg(unix)]
pub fn copy_attributes(from: &File, to: &File, replaced: Option<&Path>) -> Result<Vec<String>> {
    let metadata = from.metadata()?;
    let mut mode = metadata.permissions().mode();
    let mut lost: Vec<String> = Vec::new();
    if let Some(path) = replaced {
        let created = to.metadata()?;
        let (uid, gid) = (metadata.uid(), metadata.gid());
        let is_own = (uid, gid) == (created.uid(), created.gid());
        // only root may give a file to another user, and others only to a group of their own
        if !is_own && fchown(to, Some(uid), Some(gid)).is_err() {
            // the folder may be writable for more users than the file
            check_writable(path)?;
            mode &= !SET_ID_BITS;
            if uid != created.uid() {
                lost.push("its owner".into());
            }
            if gid != created.gid() && fchown(to, None, Some(gid)).is_err() {
                mode &= !GROUP_BITS;
                lost.push("its group; the new one has no rights".into());
            }
        }
    }
    let wanted = extended::names(from)?;
    // the folder may have given the new file a default access control list
    for name in extended::names(to)?
        .iter()
        .filter(|name| *name == ACL && !wanted.contains(name))
    {
        rustix::fs::fremovexattr(to, name.as_str())?;
    }
    for name in &wanted {
        if extended::copy(from, to, name).is_ok() {
            continue;
        }
        if name == ACL {
            // without the list, its mask would become the rights of the group
            mode &= !GROUP_BITS;
            lost.push("its access control list; its group has no rights now".into());
        } else {
            lost.push(format!("its attribute {name}"));
        }
    }
    // after the owner, because a change of owner clears the set-user-ID and set-group-ID bits
    let set = to.set_permissions(Permissions::from_mode(mode));
    // a file system whose files have no modes of their own may refuse every change
    if mode_of(&to.metadata()?) != mode & 0o7777 {
        set?;
    }
    Ok(lost)
}

#[cfg(unix)]
mod extended {
    use rustix::fs::{
        XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr,
    };
    use rustix::io::{Errno, Result};
    use std::fs::File;

    pub(super) fn copy(from: &File, to: &File, name: &str) -> Result<()> {
        let mut value = vec![0; fgetxattr_query(from, name)?];
        let len = fgetxattr(from, name, &mut value[..])?;
        fsetxattr(to, name, &value[..len], XattrFlags::empty())
    }

    /// Returns the names of the extended attributes of a file; none if its file system has no such
    /// attributes.
    pub(super) fn names(file: &File) -> std::io::Result<Vec<String>> {
        let list = match list(file) {
            Ok(list) => list,
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        Ok(list
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    /// Returns the names of the extended attributes of a file, each with a NUL at its end.
    fn list(file: &File) -> Result<Vec<u8>> {
        let mut list = vec![0; flistxattr_query(file)?];
        let length = flistxattr(file, &mut list[..])?;
        list.truncate(length);
        Ok(list)
    }
}

/// Copies the attribute "read-only" of `from` to `to`, which has the owner and the access control
/// list that its folder gives to new files.
///
/// # Errors
/// If the system refuses.
#[cfg(windows)]
pub fn copy_attributes(from: &File, to: &File, _replaced: Option<&Path>) -> Result<Vec<String>> {
    to.set_permissions(from.metadata()?.permissions())?;
    Ok(Vec::new())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_a_file_that_has_none_of_its_own_is_accepted_if_it_suffices() {
        // no change is allowed there, as on a file system with the same mode for all files
        let file = File::open("/proc/self/status").unwrap();
        assert_eq!(mode_of(&file.metadata().unwrap()), 0o444);
        set_file_mode(&file, 0o444).unwrap();
        // others could read it, or its owner could not write to it
        for mode in [0o400, 0o440, 0o644, 0o555] {
            let error = set_file_mode(&file, mode).unwrap_err();
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied,
                "{mode:o}"
            );
        }
    }
}
