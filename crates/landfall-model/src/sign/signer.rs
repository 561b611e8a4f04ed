//! Signing with a private key file, or with a public key through the SSH agent.

use super::private_key::{self, PrivateKeyFile, SshPrivateKey};
use super::public_key::{PublicKey, is_kind};
use super::signature::{Signature, data_to_sign};
use super::{SignatureError, agent};
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
    pub fn load(key: &str, agent: Option<&Path>) -> Result<Signer, SignatureError> {
        if key.split_once(' ').is_some_and(|(kind, _)| is_kind(kind)) {
            let public = PublicKey::from_line(key)
                .ok_or_else(|| SignatureError::NoKey { path: key.into() })?;
            return Signer::through_agent(public, agent, key);
        }
        let text = std::fs::read(key).map_err(|source| SignatureError::Read {
            path: key.into(),
            source,
        })?;
        let text = String::from_utf8(text).unwrap_or_default();
        let Some((public, content)) = private_key::parse(&text) else {
            return match PublicKey::from_line(&text) {
                Some(public) => Signer::through_agent(public, agent, key),
                None if text.contains("PRIVATE KEY-----") && !text.contains("BEGIN OPENSSH") => {
                    Err(SignatureError::OldKey { path: key.into() })
                }
                None => Err(SignatureError::NoKey { path: key.into() }),
            };
        };
        match content {
            PrivateKeyFile::Unlocked(secret) => Ok(Signer {
                public,
                method: SigningMethod::PrivateKey(secret),
            }),
            PrivateKeyFile::AgentOnly => match Signer::through_agent(public, agent, key) {
                Err(SignatureError::NoAgent { .. } | SignatureError::NotHeld { .. }) => {
                    Err(SignatureError::AgentOnly { path: key.into() })
                }
                other => other,
            },
            PrivateKeyFile::Encrypted => match Signer::through_agent(public, agent, key) {
                Err(SignatureError::NoAgent { .. } | SignatureError::NotHeld { .. }) => {
                    Err(SignatureError::Encrypted { path: key.into() })
                }
                other => other,
            },
        }
    }

    fn through_agent(
        public: PublicKey,
        agent: Option<&Path>,
        name: &str,
    ) -> Result<Signer, SignatureError> {
        let socket = agent.ok_or_else(|| SignatureError::NoAgent { path: name.into() })?;
        match agent::holds(socket, &public) {
            Ok(true) => Ok(Signer {
                public,
                method: SigningMethod::Agent(socket.into()),
            }),
            Ok(false) => Err(SignatureError::NotHeld {
                key: public,
                path: name.into(),
            }),
            Err(source) => Err(SignatureError::Agent {
                socket: socket.into(),
                source,
            }),
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
    pub fn sign(&self, namespace: &str, message: &[u8]) -> Result<String, SignatureError> {
        let data = data_to_sign(namespace, message);
        let signature = match &self.method {
            SigningMethod::PrivateKey(secret) => {
                secret
                    .sign(&data)
                    .ok_or_else(|| SignatureError::NoRandomNumbers {
                        key: self.public.clone(),
                    })?
            }
            SigningMethod::Agent(socket) => {
                agent::sign(socket, &self.public, &data).map_err(|source| {
                    SignatureError::Agent {
                        socket: socket.clone(),
                        source,
                    }
                })?
            }
        };
        let signature = Signature::new(self.public.clone(), namespace, signature);
        // verify it: an agent may return a wrong signature
        match signature.check(namespace, message) {
            Err(SignatureError::OtherContent { key }) => Err(SignatureError::Failed { key }),
            checked => checked.map(|()| signature.to_text()),
        }
    }
}
