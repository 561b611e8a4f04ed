//! landfall carries pinned software across an air gap.
//!
//! ```text
//! manifest ──lock──▶ lock ──pull──▶ store ──pack──▶ bundle ──push──▶ private registry
//! (people)         (digests)      (blobs)         (one file)  └serve─▶ nodes pull from the file
//!                                                    │
//!                                       rewrite: point everything at it
//! ```
//!
//! The folders follow the data's way; read them in this order: [`model`] (the words), [`manifest`]
//! (what is wanted), [`lock`] (what it is exactly), [`http`] and [`registry`] (the wire), [`store`]
//! (keep it), [`pull`] (get it), [`bundle`] (carry it), [`sign`] (sign it), [`push`] (deliver it), [`serve`] (serve it),
//! [`rewrite`] (point to it), [`site`] (set it up), [`doctor`] (find out why). [`cli`] is the only place
//! that prints.

pub mod bundle;
pub mod cli;
pub mod doctor;
pub mod document;
pub mod http;
pub mod lock;
pub mod manifest;
pub mod model;
pub mod pull;
pub mod push;
pub mod registry;
pub mod report;
pub mod rewrite;
pub mod serve;
pub mod sign;
pub mod site;
pub mod source;
pub mod store;
