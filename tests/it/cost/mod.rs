//! Cost per byte: what landfall needs for requests and documents of strangers.

mod readers;
