//! The SSH agent (draft-ietf-sshm-ssh-agent): which keys it holds, and signatures by them.

use super::key::{PublicKey, RSA_KEY};
use super::wire::{Reader, strings};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Flag of a request: RSA with SHA-512.
const RSA_SHA2_512: u32 = 4;
/// OpenSSH's own bound on a message.
const LONGEST: u32 = 256 << 10;

/// Whether the agent at `socket` holds the private half of `key`.
pub(super) fn holds(socket: &Path, key: &PublicKey) -> io::Result<bool> {
    let answer = ask(socket, REQUEST_IDENTITIES, &[])?;
    let mut reader = body(&answer, IDENTITIES_ANSWER)?;
    let count = reader.u32().ok_or_else(nonsense)?;
    for _ in 0..count {
        let (blob, _comment) = (reader.string(), reader.string().ok_or_else(nonsense)?);
        if blob == Some(&key.blob) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The agent's signature of `message` with `key`, in SSH's form. It may ask its owner first.
pub(super) fn sign(socket: &Path, key: &PublicKey, message: &[u8]) -> io::Result<Vec<u8>> {
    let flags = if key.kind() == RSA_KEY {
        RSA_SHA2_512
    } else {
        0
    };
    let request = [strings(&[&key.blob, message]), flags.to_be_bytes().into()].concat();
    let answer = ask(socket, SIGN_REQUEST, &request)?;
    let signature = body(&answer, SIGN_RESPONSE)?.string();
    signature.map(<[u8]>::to_vec).ok_or_else(nonsense)
}

fn ask(socket: &Path, kind: u8, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut agent = UnixStream::connect(socket)?;
    agent.write_all(&strings(&[&[&[kind], request].concat()]))?;
    let mut length = [0; 4];
    agent.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(nonsense());
    }
    let mut answer = vec![0; length as usize];
    agent.read_exact(&mut answer)?;
    Ok(answer)
}

fn body(answer: &[u8], kind: u8) -> io::Result<Reader<'_>> {
    match answer.split_first() {
        Some((&found, rest)) if found == kind => Ok(Reader(rest)),
        // SSH_AGENT_FAILURE and the like
        Some(_) => Err(io::Error::other("the agent refused")),
        None => Err(nonsense()),
    }
}

fn nonsense() -> io::Error {
    io::Error::other("its answer is none of an SSH agent")
}
