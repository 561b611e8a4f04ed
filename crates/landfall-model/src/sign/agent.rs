//! A client of the SSH agent (draft-ietf-sshm-ssh-agent).

use super::public_key::{PublicKey, RSA_KEY};
use super::ssh_encoding::{SshReader, strings};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// The flag of [`SIGN_REQUEST`] that requests an RSA signature with SHA-512.
const RSA_SHA2_512: u32 = 4;
/// The maximum size of a message, as in OpenSSH.
const MAX_MESSAGE: u32 = 256 << 10;

/// Whether the agent at `socket` holds the private half of `key`.
pub(super) fn holds(socket: &Path, key: &PublicKey) -> io::Result<bool> {
    let answer = send_request(socket, REQUEST_IDENTITIES, &[])?;
    let mut reader = response_body(&answer, IDENTITIES_ANSWER)?;
    let count = reader.u32().ok_or_else(invalid_response)?;
    for _ in 0..count {
        let blob = reader.string();
        let _comment = reader.string().ok_or_else(invalid_response)?;
        if blob == Some(&key.blob) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the signature of `message` with `key` in SSH encoding. The agent may prompt its user
/// first.
pub(super) fn sign(socket: &Path, key: &PublicKey, message: &[u8]) -> io::Result<Vec<u8>> {
    let flags = if key.kind() == RSA_KEY {
        RSA_SHA2_512
    } else {
        0
    };
    let request = [strings(&[&key.blob, message]), flags.to_be_bytes().into()].concat();
    let answer = send_request(socket, SIGN_REQUEST, &request)?;
    let signature = response_body(&answer, SIGN_RESPONSE)?.string();
    signature.map(<[u8]>::to_vec).ok_or_else(invalid_response)
}

fn send_request(socket: &Path, kind: u8, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut agent = UnixStream::connect(socket)?;
    agent.write_all(&strings(&[&[&[kind], request].concat()]))?;
    let mut length = [0; 4];
    agent.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_MESSAGE {
        return Err(invalid_response());
    }
    let mut answer = vec![0; length as usize];
    agent.read_exact(&mut answer)?;
    Ok(answer)
}

fn response_body(answer: &[u8], kind: u8) -> io::Result<SshReader<'_>> {
    match answer.split_first() {
        Some((&found, rest)) if found == kind => Ok(SshReader(rest)),
        // for example SSH_AGENT_FAILURE
        Some(_) => Err(io::Error::other("the agent refused")),
        None => Err(invalid_response()),
    }
}

fn invalid_response() -> io::Error {
    io::Error::other("it does not respond like an SSH agent")
}
