//! Who signs: a private key file, or the agent for a public key.

use super::key::{PublicKey, is_kind};
use super::private::{self, Content, Secret};
use super::signature::{Signature, to_sign};
use super::{SignatureError, agent};
use std::path::{Path, PathBuf};

/// A key that can sign.
#[derive(Debug)]
pub struct Signer {
    public: PublicKey,
    by: By,
}

#[derive(Debug)]
enum By {
    Key(Box<Secret>),
    Agent(PathBuf),
}

impl Signer {
    /// The signer that `key` names: a private key file of OpenSSH's; a `.pub` file or a public key
    /// itself (`ssh-ed25519 AAAA…`), whose private half the agent at the socket `agent` holds. The
    /// agent also signs for a private key file that is encrypted, or of RSA.
    ///
    /// # Errors
    /// When there is no such key, or neither landfall nor the agent can sign with it.
    pub fn load(key: &str, agent: Option<&Path>) -> Result<Signer, SignatureError> {
        if key.split_once(' ').is_some_and(|(kind, _)| is_kind(kind)) {
            let public = PublicKey::from_line(key)
                .ok_or_else(|| SignatureError::NoKey { path: key.into() })?;
            return Signer::held(public, agent, key);
        }
        let text = std::fs::read(key).map_err(|source| SignatureError::Read {
            path: key.into(),
            source,
        })?;
        let text = String::from_utf8(text).unwrap_or_default();
        let Some((public, content)) = private::parse(&text) else {
            return match PublicKey::from_line(&text) {
                Some(public) => Signer::held(public, agent, key),
                None if text.contains("PRIVATE KEY-----") && !text.contains("BEGIN OPENSSH") => {
                    Err(SignatureError::OldKey { path: key.into() })
                }
                None => Err(SignatureError::NoKey { path: key.into() }),
            };
        };
        match content {
            Content::Open(secret) => Ok(Signer {
                public,
                by: By::Key(secret),
            }),
            Content::ByAgent => match Signer::held(public, agent, key) {
                Err(SignatureError::NoAgent { .. } | SignatureError::NotHeld { .. }) => {
                    Err(SignatureError::ByAgent { path: key.into() })
                }
                other => other,
            },
            Content::Encrypted => match Signer::held(public, agent, key) {
                Err(SignatureError::NoAgent { .. } | SignatureError::NotHeld { .. }) => {
                    Err(SignatureError::Encrypted { path: key.into() })
                }
                other => other,
            },
        }
    }

    fn held(public: PublicKey, agent: Option<&Path>, name: &str) -> Result<Signer, SignatureError> {
        let socket = agent.ok_or_else(|| SignatureError::NoAgent { path: name.into() })?;
        match agent::holds(socket, &public) {
            Ok(true) => Ok(Signer {
                public,
                by: By::Agent(socket.into()),
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

    /// Its public key.
    pub fn key(&self) -> &PublicKey {
        &self.public
    }

    /// The signature of `message` for `namespace`, as text: what `ssh-keygen -Y sign -n NAMESPACE`
    /// writes.
    ///
    /// # Errors
    /// When the agent does not sign.
    pub fn sign(&self, namespace: &str, message: &[u8]) -> Result<String, SignatureError> {
        let data = to_sign(namespace, message);
        let signature = match &self.by {
            By::Key(secret) => secret.sign(&data).ok_or_else(|| SignatureError::Failed {
                key: self.public.clone(),
            })?,
            By::Agent(socket) => agent::sign(socket, &self.public, &data).map_err(|source| {
                SignatureError::Agent {
                    socket: socket.clone(),
                    source,
                }
            })?,
        };
        let signature = Signature::new(self.public.clone(), namespace, signature);
        // the agent may err: only a good signature is written
        match signature.check(namespace, message) {
            Err(SignatureError::OtherContent { key }) => Err(SignatureError::Failed { key }),
            checked => checked.map(|()| signature.to_text()),
        }
    }
}
