//! Plans -> files ([`write`]). Pure: nothing here touches a disk.

pub mod write;
