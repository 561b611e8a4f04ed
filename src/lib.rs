//! landfall carries pinned software across an air gap.
//!
//! ```text
//! manifest ──lock──▶ lock ──pull──▶ store ──pack──▶ bundle ──push──▶ private registry
//! (people)         (digests)      (blobs)         (one file)  └serve─▶ nodes pull from the file
//!                                                    │
//!                                       rewrite: point everything at it
//! ```
//!
//! The folders follow the data's way; read them in this order: [`model`] (the words), [`manifest`] (what is
//! wanted), [`lockfile`] (what it is exactly) and [`lock`] (how that is found), [`item`] (one file a kind of item),
//! [`http`] and [`registry`] (the wire), [`content`] (the narrow waist: content by digest), [`upstream`] and
//! [`store`] (where it comes from and where it is kept), [`pull`] (get it), [`bundle`] (carry it), [`sign`] (sign
//! it), [`push`] (deliver it), [`serve`] (serve it), [`rewrite`] (point to it), [`config`] and [`render`] (set it
//! up), [`doctor`] (find out why). [`cli`] is the only place that prints.

pub mod bundle;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod config;
pub mod content;
pub mod doctor;
pub mod document;
pub mod http;
pub mod item;
pub mod lock;
pub mod lockfile;
pub mod manifest;
pub mod model;
pub mod pull;
pub mod push;
pub mod registry;
pub mod render;
pub mod report;
pub mod rewrite;
#[cfg(feature = "serve")]
pub mod serve;
pub mod sign;
pub mod store;
pub mod upstream;
