//! Signing with a private key file of OpenSSH (PROTOCOL.key), or with a public key through the SSH
//! agent (draft-ietf-sshm-ssh-agent).

use super::public_key::{
    ED25519_KEY, P256_KEY, P384_KEY, PublicKey, RSA_KEY, SshReader, dearmor, is_kind, number,
    strings,
};
use super::signature::{Signature, data_to_sign};
use crate::Failure;
use landfall_os::connect_agent;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A key that can sign.
#[derive(Debug)]
pub struct Signer {
    public: PublicKey,
    method: SigningMethod,
}

#[derive(Debug)]
enum SigningMethod {
    PrivateKey(Box<SshPrivateKey>),
    Agent(PathBuf),
}

impl Signer {
    /// Loads a signer. `key` is the path of an OpenSSH private key file or `.pub` file, or a public
    /// key itself (`ssh-ed25519 AAAA…`). landfall itself signs with unencrypted private keys of the
    /// types Ed25519, P-256 and P-384; with all other keys, the agent at the socket `agent` signs.
    ///
    /// # Errors
    /// Fails if there is no such key, or neither landfall nor the agent can sign with it.
    pub fn load(key: &str, agent: Option<&Path>) -> Result<Signer, Failure> {
        if key.split_once(' ').is_some_and(|(kind, _)| is_kind(kind)) {
            let public = PublicKey::from_line(key).ok_or_else(|| no_key(key))?;
            return Signer::through_agent(public, agent, key, None);
        }
        let text = std::fs::read(key)
            .map_err(|error| Failure::usage(format!("cannot read the key {key}: {error}")))?;
        let text = String::from_utf8(text).unwrap_or_default();
        let Some((public, content)) = parse(&text) else {
            return match PublicKey::from_line(&text) {
                Some(public) => Signer::through_agent(public, agent, key, None),
                None if text.contains("PRIVATE KEY-----") && !text.contains("BEGIN OPENSSH") => {
                    Err(Failure::usage(format!(
                        "{key} is a private key in another format than OpenSSH's; `ssh-keygen -p \
                         -f {key}` converts most of them, and `ssh-keygen -t ed25519` makes a new \
                         key"
                    )))
                }
                None => Err(no_key(key)),
            };
        };
        let why = match content {
            PrivateKeyFile::Unlocked(secret) => {
                return Ok(Signer {
                    public,
                    method: SigningMethod::PrivateKey(secret),
                });
            }
            PrivateKeyFile::AgentOnly => format!(
                "{key} is of a type, such as RSA, with which landfall signs only through the SSH \
                 agent; add the key to the agent with `ssh-add {key}` and run this again, or use \
                 an ed25519 key"
            ),
            PrivateKeyFile::Encrypted => format!(
                "{key} needs a passphrase, for which landfall does not prompt; add the key to the \
                 agent with `ssh-add {key}` and run this again"
            ),
        };
        Signer::through_agent(public, agent, key, Some(why))
    }

    /// A signer that uses the agent. `why` replaces the message if the agent does not hold the key.
    fn through_agent(
        public: PublicKey,
        agent: Option<&Path>,
        name: &str,
        why: Option<String>,
    ) -> Result<Signer, Failure> {
        let Some(socket) = agent else {
            let why = why.unwrap_or_else(|| {
                format!(
                    "{name} has no private key that landfall can use, and there is no agent \
                     (SSH_AUTH_SOCK is not set); start one, `ssh-add` the key, or name the private \
                     key file"
                )
            });
            return Err(Failure::usage(why));
        };
        match holds(socket, &public) {
            Ok(true) => Ok(Signer {
                public,
                method: SigningMethod::Agent(socket.into()),
            }),
            Ok(false) => Err(Failure::usage(why.unwrap_or_else(|| {
                format!(
                    "the agent does not hold {public} of {name}; `ssh-add` it, or name the private \
                     key file"
                )
            }))),
            Err(error) => Err(agent_failure(socket, &error)),
        }
    }

    /// The public key of the signer.
    pub fn key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `message` for `namespace`. Returns the text that `ssh-keygen -Y sign -n NAMESPACE`
    /// would write.
    ///
    /// # Errors
    /// Fails if the agent does not sign, the system has no random numbers, or the signature is not
    /// valid.
    pub fn sign(&self, namespace: &str, message: &[u8]) -> Result<String, Failure> {
        let data = data_to_sign(namespace, message);
        let signature = match &self.method {
            SigningMethod::PrivateKey(secret) => secret.sign(&data).ok_or_else(|| {
                Failure::failed(format!(
                    "signing with {} failed: the system returned no random numbers; run \
                             the command again, or use an ed25519 key, which needs none",
                    self.public
                ))
            })?,
            SigningMethod::Agent(socket) => {
                sign(socket, &self.public, &data).map_err(|error| agent_failure(socket, &error))?
            }
        };
        let signature = Signature::new(self.public.clone(), namespace, signature);
        // verify it: an agent may return a wrong signature
        if signature.is_for(namespace, message)? {
            return Ok(signature.to_text());
        }
        Err(Failure::failed(format!(
            "signing with {} failed: the signature is not valid; use another key",
            self.public
        )))
    }
}

fn no_key(key: &str) -> Failure {
    Failure::usage(format!(
        "{key} is not an OpenSSH key; `ssh-keygen -t ed25519 -f KEY` makes one"
    ))
}

fn agent_failure(socket: &Path, error: &io::Error) -> Failure {
    let socket = socket.display();
    Failure::failed(format!("the SSH agent at {socket} does not sign: {error}"))
}

// Private key files of OpenSSH (PROTOCOL.key), and signing with keys that are not encrypted.

/// A private key with which landfall signs without an agent.
#[derive(Debug)]
pub(super) enum SshPrivateKey {
    Ed25519(Ed25519KeyPair),
    /// The type of the key, and the key.
    Ecdsa(String, EcdsaKeyPair),
}

/// The result of reading a private key file.
#[derive(Debug)]
pub(super) enum PrivateKeyFile {
    Unlocked(Box<SshPrivateKey>),
    /// The file needs a passphrase.
    Encrypted,
    /// landfall signs with a key of this type, such as RSA, only through an agent.
    AgentOnly,
}

/// Parses a private key file. Returns `None` if `text` is not one, or is damaged.
pub(super) fn parse(text: &str) -> Option<(PublicKey, PrivateKeyFile)> {
    let bytes = dearmor("OPENSSH PRIVATE KEY", text)?;
    let mut file = SshReader(bytes.strip_prefix(b"openssh-key-v1\0")?);
    let cipher = file.string()?;
    let _kdf = file.string()?;
    let _kdf_options = file.string()?;
    let keys = file.u32()?;
    let public = PublicKey::from_blob(file.string()?)?;
    if keys != 1 {
        return None;
    }
    if cipher != b"none" {
        return Some((public, PrivateKeyFile::Encrypted));
    }
    let mut inside = SshReader(file.string()?);
    // OpenSSH writes a random number twice: the copies differ if the passphrase was wrong
    if inside.u32()? != inside.u32()? || inside.text()? != public.kind() {
        return None;
    }
    let secret = match public.kind() {
        ED25519_KEY => {
            let public = inside.string()?;
            let pair = inside.string()?;
            SshPrivateKey::Ed25519(
                Ed25519KeyPair::from_seed_and_public_key(pair.get(..32)?, public).ok()?,
            )
        }
        kind @ (P256_KEY | P384_KEY) => {
            let (algorithm, size) = match kind {
                P256_KEY => (&ECDSA_P256_SHA256_FIXED_SIGNING, 32),
                _ => (&ECDSA_P384_SHA384_FIXED_SIGNING, 48),
            };
            let _curve = inside.string()?;
            let point = inside.string()?;
            let scalar = inside.number()?;
            // the number may be shorter, but ring requires its full length
            let padded = [&vec![0; size - scalar.len().min(size)][..], scalar].concat();
            let random = SystemRandom::new();
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &padded, point, &random);
            SshPrivateKey::Ecdsa(kind.into(), pair.ok()?)
        }
        _ => return Some((public, PrivateKeyFile::AgentOnly)),
    };
    Some((public, PrivateKeyFile::Unlocked(Box::new(secret))))
}

impl SshPrivateKey {
    /// Returns the signature of `message` in SSH encoding, with its algorithm first, or `None` if
    /// the system has no random numbers.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        Some(match self {
            SshPrivateKey::Ed25519(pair) => {
                strings(&[ED25519_KEY.as_bytes(), pair.sign(message).as_ref()])
            }
            SshPrivateKey::Ecdsa(kind, pair) => {
                let fixed = pair.sign(&random, message).ok()?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                strings(&[kind.as_bytes(), &[number(r), number(s)].concat()])
            }
        })
    }
}

// A client of the SSH agent (draft-ietf-sshm-ssh-agent).

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
    let mut agent = connect_agent(socket)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_a_key_is_rejected() {
        for text in [
            "",
            "x",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
